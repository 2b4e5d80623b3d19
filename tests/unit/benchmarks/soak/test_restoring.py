"""Copies that a check of a ledger finds missing, damaged or unknown become evidence."""

from __future__ import annotations

from benchmarks.soak.restoring import Restored, problems_of
from triplicate.autorecovery import CopiesOnBookie, LedgerCopies


def test_every_kind_of_missing_copy_is_a_problem() -> None:
    bookies = (
        CopiesOnBookie("good", 3),
        CopiesOnBookie("lacks", 3, missing=(range(1, 3),)),
        CopiesOnBookie("damaged", 3, bad=(2,)),
        CopiesOnBookie("silent", 3, silence="no answer"),
        CopiesOnBookie("silent and not needed", 0, silence="no answer"),
    )
    problems = problems_of(LedgerCopies(5, 2, True, bookies, ()))
    assert problems == (
        "lacks lacks 2 copies, 0 are damaged",
        "damaged lacks 0 copies, 1 are damaged",
        "silent lacks 0 copies, 0 are damaged no answer",
    )


def test_the_copies_of_decommissions_are_counted() -> None:
    restored = Restored()
    restored.count({"size_bytes": 12, "entries": 3, "removed": False})
    restored.count({"size_bytes": 100, "entries": 10, "removed": True})
    assert (restored.size_bytes, restored.entries) == (112, 13)
