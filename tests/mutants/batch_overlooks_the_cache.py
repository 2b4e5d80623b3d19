"""A batch read takes entries from the entry logs although the write cache has newer copies."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/bookie/storage/test_run_cache.py::test_an_entry_added_again_is_read_as_it_is_now"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.core.write_cache import WriteCache

    patch(WriteCache, "lacks", lambda self, ledger_id, entry_ids: True)
