"""Bytes that came in clear behind START_TLS are handled after the TLS handshake, as if they had come through it."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_doorkeeper_tls.py::test_plain_text_behind_start_tls_ends_the_connection"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.doorkeeper import Doorkeeper

    patch(Doorkeeper, "_rest_is_greeting", lambda self: True)
