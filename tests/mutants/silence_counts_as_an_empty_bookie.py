"""A bookie that does not answer a read of the last-add-confirmed counts as empty."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/client/read/test_lac_read.py::test_a_silent_bookie_is_unknown_and_not_empty"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.ledger import LastConfirmed

    patch(LastConfirmed, "failed", lambda self, position, reason: self.nothing_there(position))
