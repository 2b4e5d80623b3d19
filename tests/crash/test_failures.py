"""The short form of full disks and failed syncs: at every so many writes and syncs of a play. `make crash-test` tries all."""

from __future__ import annotations

import pytest

from tests.crash.counts import Counts
from tests.crash.failures import try_failed_syncs, try_full_disks


def nothing_lost(counts: Counts) -> None:
    assert not counts.losses, "\n".join(counts.shown)
    assert counts.tried.total() > 10


@pytest.mark.parametrize(("directories", "step"), [(1, 11), (2, 17)])
def test_a_full_disk_at_any_write_loses_nothing(directories: int, step: int) -> None:
    nothing_lost(try_full_disks(directories, 1, step, 3))


@pytest.mark.parametrize(("directories", "step"), [(1, 13), (2, 23)])
def test_a_failed_sync_ends_the_bookie_and_loses_nothing(directories: int, step: int) -> None:
    nothing_lost(try_failed_syncs(directories, 1, step, 2))


def test_an_index_whose_commit_was_not_synced_is_not_built_upon() -> None:
    counts = try_failed_syncs(1, 1, 6, 3, path="/ledgers-1/current/index.db-commits")
    assert not counts.losses, "\n".join(counts.shown)
    assert counts.tried["failed syncs"] > 10
