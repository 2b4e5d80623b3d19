"""The storage in whole clusters: lost and replaced disks, rebuilt indexes, full directories, deletion and undeletion."""

from __future__ import annotations

import pytest

from triplicate_simulator import Fault, Plan, Result, run_seed
from triplicate_simulator.cluster.plan import KIB, PLAIN_SETUP, BookieSetup, Value
from triplicate_simulator.workloads.ledger.ledger_load import LedgerLoad

LOAD = LedgerLoad(entries=20, pause_mean_s=0.2, recovery_delay_s=0.3, clears=True)
SMALL = BookieSetup(ledger_directories=3, journal_directories=2, write_cache_bytes=64 * KIB, flush_interval_s=0.5, entry_log_bytes=16 * KIB)
DURATION_S = 8.0


def run_workload(
    *strikes: Fault, storage: BookieSetup = PLAIN_SETUP, load: LedgerLoad = LOAD, seed: int = 1, duration_s: float = DURATION_S
) -> Result:
    result = run_seed(seed, Plan("ledgers", load, strikes, duration_s, storage=storage))
    assert result.ok, str(result)
    return result


def kinds_of(result: Result, node: str) -> list[str]:
    return [fact.kind for fact in result.facts if fact.node == node]


@pytest.mark.parametrize("seed", [1, 2])
def test_a_bookie_that_lost_its_disks_refuses_empty_ones_and_is_replaced(seed: int) -> None:
    result = run_workload(Fault("wipe", 3.0, "bookie-1", lasts_s=0.2, options={"unformatted": True}), seed=seed)
    kinds = kinds_of(result, "bookie-1")
    assert kinds.index("bookie.start_refused") < kinds.index("bookie.replaced") < kinds.index("bookie.entries_may_be_missing")
    assert result.struck["wipe"] == result.counts["refused_starts"] == 1
    assert result.counts["doubtful_copies"] > 0, "it was asked about what it had held, and said that it cannot know"
    decided = {verdict.checker: verdict.decided for verdict in result.verdicts}
    assert decided["replaced_bookies_deny_nothing"] > 0


def test_a_replacement_interrupted_by_a_crash_is_repeated() -> None:
    wipe = Fault("wipe", 3.0, "bookie-1", lasts_s=0.1)
    crashes = [Fault("crash_at", at_s, "bookie-1", lasts_s=0.1, options={"operation": "any", "after": 2}) for at_s in (3.2, 4.2, 5.2, 6.2)]
    result = run_workload(wipe, *crashes, seed=3)
    assert kinds_of(result, "bookie-1").count("bookie.replaced") == 1


@pytest.mark.parametrize("tool", [True, False])
def test_a_lost_index_is_rebuilt_from_several_directories(tool: bool) -> None:
    options: dict[str, Value] = {"how": "gone", "tool": tool, "crashes": True}
    result = run_workload(
        *(Fault("index_lost", 3.0 + at, f"bookie-{at + 1}", lasts_s=0.1, options=options) for at in range(3)), storage=SMALL
    )
    assert result.struck["index_lost"] == 3
    assert result.counts["rebuilds"] >= 3
    assert sum(kinds_of(result, f"bookie-{number}").count("bookie.index_made") for number in (1, 2, 3)) == (3 if tool else 0)


def test_writes_use_other_directories_while_one_is_full() -> None:
    options: dict[str, Value] = {"free_bytes": 16 * KIB, "prefix": "/data/ledgers-2/"}
    strikes = [Fault("directory_full", 2.0, f"bookie-{number}", lasts_s=5.0, options=options) for number in range(1, 6)]
    result = run_workload(
        *strikes, storage=BookieSetup(ledger_directories=2, flush_interval_s=0.5, entry_log_bytes=64 * KIB, disk_usage_threshold=1.0)
    )
    assert result.struck["directory_full"] == 5
    assert result.counts["directories_passed_over"] > 0
    assert not any(
        kind in ("bookie.disks_full", "bookie.failed") for number in range(1, 6) for kind in kinds_of(result, f"bookie-{number}")
    )


def test_undeleted_ledgers_are_complete_and_deleted_ones_leave_no_entry_log() -> None:
    load = LedgerLoad(entries=20, pause_mean_s=0.2, recovery_delay_s=0.1, delete_share=0.9, undelete_share=0.6, clears=True)
    storage = BookieSetup(gc_interval_s=1.0, trash_period_s=10.0, entry_log_bytes=16 * KIB, compaction_interval_s=2.0)
    result = run_workload(storage=storage, load=load, duration_s=20.0)
    counts = result.counts
    assert counts["undeletions"] > 0
    assert counts["ledgers_dropped"] > 0
    assert counts["logs_given_back"] > 0
    assert counts["compactions"] > 0
    assert counts["clearances"] == 1
