"""A bookie continues the count of a missing ledger after its undeletion, and deletes it at once the next time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

TESTS = [
    "tests/unit/bookie/storage/test_garbage_deletions_without_trash.py::test_the_note_about_an_undeleted_ledger_goes_with_the_round_that_finds_it"
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    from triplicate.bookie.storage.index import Index

    note = Index.note_missing

    def keep(self: Index, since_ms: int, ledger_ids: Iterable[int], found_again: Iterable[int] = ()) -> None:
        note(self, since_ms, ledger_ids)

    patch(Index, "note_missing", keep)
