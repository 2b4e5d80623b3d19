"""A damaged run is dropped although one of its entries is stored nowhere else on the bookie."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.storage.run_copier import RunCopier

TESTS = ["tests/unit/bookie/storage/test_compaction.py::test_a_damaged_run_goes_when_all_of_its_entries_are_stored_again[1]"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(RunCopier, "_is_superseded", lambda self, run: True)
