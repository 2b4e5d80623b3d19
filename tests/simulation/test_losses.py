"""Circumstances in which a replicated log is known to lose entries, each forced for a handful of seeds.

Most of them occurred in BookKeeper. Mutants of `tests/mutants` that bring the loss back make these tests fail. Schedules that must be
forced step by step are in `test_schedules`.
"""

from __future__ import annotations

from dataclasses import replace

from tests.examples import examples
from triplicate_simulator import Fault, Plan, Result, run_seed
from triplicate_simulator.workloads.ledger.ledger_load import LedgerLoad

SEEDS = range(1, 1 + examples(8))
BOOKIES = tuple(f"bookie-{number}" for number in range(1, 6))

CALM = LedgerLoad(
    writers=("plain",),
    ledgers=1,
    entries=10_000,
    pause_mean_s=0.01,
    window_entries=100,
    close_share=0.0,
    dormant_share=0.0,
    zombie_share=0.0,
    recovery_delay_s=0.1,
    probe_pause_s=0.05,
)
"""One writer that writes one ledger until its fault."""


def crash(node: str, at_s: float, lasts_s: float = 1.0) -> Fault:
    return Fault("crash", at_s, node, lasts_s=lasts_s, options={"silent": False})


def run_workload(seed: int, load: LedgerLoad, *faults: Fault, duration_s: float = 2.0) -> Result:
    result = run_seed(seed, Plan("ledgers", load, faults, duration_s, sync_high_s=0.030, metadata_high_s=0.004))
    assert result.ok, str(result)
    assert result.counts["acknowledged"] > 0
    return result


def test_acknowledged_entries_survive_a_power_loss_of_all_bookies() -> None:
    """An acknowledgement means a synced journal. SIGKILL alone would not show the difference, since the kernel keeps unsynced writes."""
    lost = 0
    for seed in SEEDS:
        cut = Fault("power_loss", 0.3, BOOKIES[seed % 5], lasts_s=0.5, options={"clients": True, "after": seed % 4})
        result = run_workload(seed, CALM, cut)
        assert result.struck["power_loss"] == 1
        lost += result.counts["lost_bytes"]
    assert lost > 0, "the power cuts met no unsynced byte"


def test_a_living_writer_gets_no_acknowledgement_after_the_ledgers_end() -> None:
    """BookKeeper's fencing: the recovery closes the ledger while its writer appends at full speed."""
    for seed in SEEDS:
        result = run_workload(seed, replace(CALM, zombie_share=1.0, zombie_delay_s=0.2, recoverers=2))
        assert result.counts["fenced"] > 0, "the writer was fenced in the midst of its work"
        assert result.counts["recoveries_of_living"] > 0


def test_a_tail_stored_by_few_bookies_is_complete_after_recovery() -> None:
    """The writer reaches one bookie faster than the others, then dies. Readers may have seen its tail only if recovery keeps it."""
    for seed in SEEDS:
        fast = BOOKIES[seed % 5]
        slow = [Fault("link_slow", 0.0, "writer-1", name, 5.0, {"factor": 20.0}) for name in BOOKIES if name != fast]
        run_workload(seed, replace(CALM, pause_mean_s=0.003, tailers=2), *slow, crash("writer-1", 0.15))


def test_a_lost_tail_was_never_shown_to_a_reader() -> None:
    """The only bookie with the unacknowledged tail is cut off from the recoverer: the tail may be lost unless a reader saw it."""
    for seed in SEEDS:
        only = BOOKIES[seed % 5]
        faults = [Fault("link_block", 0.10, "writer-1", name, 5.0) for name in BOOKIES if name != only]
        faults.append(Fault("link_block", 0.0, "recoverer-1", only, 5.0))
        run_workload(seed, replace(CALM, pause_mean_s=0.003, tailers=2), *faults, crash("writer-1", 0.2), duration_s=3.0)


def test_flushed_entries_survive_crashes_during_a_flush() -> None:
    """Every bookie crashes at a random point of its flush: no order of writes to logs, index and mark may lose an entry."""
    for seed in SEEDS:
        faults = [
            Fault("crash_at", 0.3, name, lasts_s=0.5, options={"operation": "flush", "after": 4 + (seed + 2 * number) % 8, "silent": True})
            for number, name in enumerate(BOOKIES)
        ]
        result = run_workload(seed, replace(CALM, payload_high_bytes=1000), *faults, crash("writer-1", 1.0), duration_s=4.0)
        assert result.struck["crash_at"] > 0


def test_a_fence_survives_the_restart_of_its_bookie() -> None:
    """An idle writer is fenced, all bookies restart, then it continues: it must be refused, although only the disks record the fence.

    Source: BookKeeper's `LedgerDescriptorImpl.fenceAndLogInLedger`.
    """
    idle = replace(CALM, ledgers=4, entries=3, dormant_share=1.0, recovery_delay_s=1.0)
    for seed in SEEDS:
        cuts = [Fault("power_loss", at_s, BOOKIES[0], lasts_s=0.05, options={"clients": False}) for at_s in (1.5, 2.5, 3.5)]
        result = run_workload(seed, idle, *cuts, duration_s=9.0)
        assert result.counts["woken"] > 0
        assert result.counts["recoveries"] > 0


def test_an_idle_writer_stays_fenced_when_its_ledger_is_deleted_and_forgotten() -> None:
    """BookKeeper issue 4462: after fence, deletion and collection, bookies without memory of the ledger acknowledged its old writer."""
    idle = replace(CALM, ledgers=4, entries=3, dormant_share=1.0, delete_share=1.0)
    deletions = 0
    for seed in SEEDS:
        result = run_workload(seed, idle, duration_s=9.0)
        assert result.counts["woken"] > 0
        deletions += result.counts["deleted"]
    assert deletions > len(SEEDS)
