"""A ledger is undeleted after its period in the trash, when bookies may have deleted its entries."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_garbage_trash.py::test_an_undelete_comes_too_late_before_the_bookies_delete"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.metadata import TrashedLedger

    patch(TrashedLedger, "undelete_until_ms", lambda self: 1 << 62)
