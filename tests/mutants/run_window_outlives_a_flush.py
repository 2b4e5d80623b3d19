"""Index rows cached for one read are used for later reads although a flush has changed the index."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_run_cache.py::test_an_entry_added_again_is_read_as_it_is_now"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.run_cache import RunCache

    look = RunCache._window

    def same_version(self: RunCache, ledger_id: int, entry_id: int, *, reads_on: bool) -> object:
        for window in self._windows.values():
            window.version = self._index.version
        return look(self, ledger_id, entry_id, reads_on=reads_on)

    patch(RunCache, "_window", same_version)
