"""The greeting of a client of version 2 makes the START_TLS behind it a request of version 2."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.server.doorkeeper import Doorkeeper

TESTS = ["tests/unit/bookie/server/test_doorkeeper_tls.py::test_the_greeting_of_javas_client_in_clear_is_answered_inside_tls"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    real = Doorkeeper._handle_v2

    def decided(doorkeeper: Doorkeeper, body: bytes) -> None:
        real(doorkeeper, body)
        doorkeeper._is_older = True

    patch(Doorkeeper, "_handle_v2", decided)
