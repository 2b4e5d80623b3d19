"""Full disks and failed syncs, short form: at every n-th write and sync of a workload. `make crash-test` tries all."""

from __future__ import annotations

import pytest

from tests.crash.counts import Counts
from tests.crash.failures import FailedOperation, may_be_ignored, try_failed_syncs, try_full_disks
from tests.examples import stride
from triplicate.bookie.journal.journal_files import PREPARED_NAME


def nothing_lost(counts: Counts) -> None:
    assert not counts.losses, "\n".join(counts.shown)
    assert counts.tried.total() > 10


@pytest.mark.parametrize(("directories", "step"), [(1, 11), (2, 17)])
def test_a_full_disk_at_any_write_loses_nothing(directories: int, step: int) -> None:
    nothing_lost(try_full_disks(directories, 1, stride(step), 3))


@pytest.mark.parametrize(("directories", "step"), [(1, 13), (2, 23)])
def test_a_failed_sync_ends_the_bookie_and_loses_nothing(directories: int, step: int) -> None:
    nothing_lost(try_failed_syncs(directories, 1, stride(step), 2))


def test_a_start_does_not_use_index_commits_of_a_failed_sync() -> None:
    counts = try_failed_syncs(1, 1, 6, 3, path="/ledgers-1/current/index.db-commits")
    assert not counts.losses, "\n".join(counts.shown)
    assert counts.tried["failed syncs"] > 10


def test_only_a_stopping_bookie_survives_the_failed_sync_of_an_unfinished_spare() -> None:
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
def test_only_listed_failed_syncs_may_be_ignored(path: str, stopping: bool, expected: bool) -> None:
    assert may_be_ignored(FailedOperation("sync", path, 0, stopping), []) is expected
