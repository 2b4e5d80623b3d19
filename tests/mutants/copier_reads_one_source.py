"""A copier reads all entries of a fragment from one bookie, although others have them, too."""

from __future__ import annotations

from collections.abc import Callable, Collection

from triplicate.autorecovery.ledger_copier import CopyJob

TESTS = ["tests/unit/autorecovery/test_ledger_copier.py::test_the_copies_share_the_reads"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    original = CopyJob.sources

    def first_only(job: CopyJob, entry_id: int, failing: Collection[str], turn: int = 0) -> list[str]:
        return original(job, entry_id, failing)

    patch(CopyJob, "sources", first_only)
