"""The long polls of a closed connection keep waiting."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/server/test_long_polls.py::test_polls_of_a_connection_that_goes_are_forgotten"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.server.long_polls import LongPolls

    patch(LongPolls, "forget", lambda self, peer: None)
