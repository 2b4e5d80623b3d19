"""Full disks and failed syncs, short form: at every n-th write and sync of a workload. `make crash-test` tries all."""

from __future__ import annotations

import pytest

from tests.crash.counts import Counts
from tests.crash.failures import Strike, may_go_unheard, try_failed_syncs, try_full_disks
from triplicate.bookie.journal.journal_files import PREPARED_NAME


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


def test_only_a_bookie_that_stops_goes_on_after_the_failed_sync_of_a_spare_in_the_making() -> None:
    counts = try_failed_syncs(2, 1, 1, 0, path=f"/journal-1/current/{PREPARED_NAME}")
    nothing_lost(counts)


@pytest.mark.parametrize(
    ("path", "stopping", "expected"),
    [
        (f"/journal-1/current/{PREPARED_NAME}", True, True),
        (f"/journal-1/current/{PREPARED_NAME}", False, False),
        ("/journal-1/current/0000000000000003.journal", True, False),
        ("/journal-1/current", True, False),
        ("/ledgers-1/current/RESERVE.new", False, True),
    ],
)
def test_what_goes_unheard_is_named_exactly(path: str, stopping: bool, expected: bool) -> None:
    assert may_go_unheard(Strike("sync", path, 0, stopping), []) is expected
