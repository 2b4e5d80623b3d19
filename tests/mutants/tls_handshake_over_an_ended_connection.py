"""A TLS handshake begins over a connection that has ended already, and in uvloop it never ends."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.runtime import real

TESTS = ["tests/unit/runtime/test_real_start_tls.py::test_a_handshake_over_a_connection_that_has_ended_fails_at_once"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(real, "_check_open", lambda transport: None)
