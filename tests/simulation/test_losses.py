"""Circumstances in which a replicated log is known to lose entries, each forced for a handful of seeds.

Most of them are in BookKeeper's history; the mutants of `tests/mutants` that put the loss back in turn these tests red.
"""

from __future__ import annotations

from dataclasses import replace

from triplicate.sim import BookieCrash, LinkFault, Plan, Result, plan_of, run_seed

SEEDS = range(1, 9)


def calm(seed: int) -> Plan:
    """The seed's own plan without any fault but the writer's end."""
    plan = plan_of(seed)
    return replace(
        plan,
        ensemble_size=3,
        write_quorum=3,
        ack_quorum=2,
        entries=120,
        pause_mean_s=0.01,
        window_entries=100,
        writer_crash_s=0.3,
        writer_silent=False,
        recovery_s=0.5,
        recoverers=1,
        bookie_crashes=(),
        power_loss=False,
        link_faults=(),
        sync_high_s=0.030,
        expiries=(),
        metadata_loss_rate=0.0,
    )


def play(seed: int, plan: Plan) -> Result:
    result = run_seed(seed, plan)
    assert result.ok, str(result)
    assert result.counts["acknowledged"] > 0
    return result


def test_what_was_acknowledged_survives_a_power_loss_of_all_bookies() -> None:
    """An acknowledgement means a synced journal: SIGKILL alone would not show the difference, the kernel keeps what was written."""
    lost = 0
    for seed in SEEDS:
        lost += play(seed, replace(calm(seed), power_loss=True)).counts["lost_bytes"]
    assert lost > 0, "the power cuts met no unsynced byte"


def test_a_writer_that_lives_on_gets_no_acknowledgement_behind_the_end() -> None:
    """BookKeeper's fencing: the recovery closes the ledger while its writer is in full swing."""
    for seed in SEEDS:
        plan = replace(calm(seed), entries=400, pause_mean_s=0.03, writer_crash_s=2.0, recovery_s=0.2)
        result = play(seed, plan)
        assert 0 < result.counts["acknowledged"] < 400, "the writer was fenced in the midst of its work"


def test_a_tail_that_few_bookies_have_is_whole_after_recovery() -> None:
    """The writer reaches one bookie faster than the others, then dies; readers may have seen its tail only if it stays."""
    for seed in SEEDS:
        slow = [LinkFault("slow", "writer", f"bookie-{number}", 0.0, 10.0) for number in range(1, 5) if number != 1 + seed % 4]
        play(seed, replace(calm(seed), pause_mean_s=0.003, writer_crash_s=0.15, link_faults=tuple(slow), tailers=2))


def test_a_tail_whose_only_bookie_is_gone_was_never_shown_to_a_reader() -> None:
    """The only bookie with the unacknowledged tail is cut off from the recoverer: what it alone has may end, unless somebody read it."""
    for seed in SEEDS:
        only = f"bookie-{1 + seed % 4}"
        faults = [LinkFault("block", "writer", f"bookie-{number}", 0.10, 5.0) for number in range(1, 5) if f"bookie-{number}" != only]
        faults.append(LinkFault("block", "recoverer-1", only, 0.0, 5.0))
        play(seed, replace(calm(seed), pause_mean_s=0.003, writer_crash_s=0.2, link_faults=tuple(faults), tailers=2))


def test_what_was_flushed_survives_crashes_in_the_midst_of_a_flush() -> None:
    """Every bookie crashes at a drawn point of its flush: no order of writes to logs, index and mark may leave an entry nowhere."""
    for seed in SEEDS:
        crashes = tuple(BookieCrash(f"bookie-{number}", 0.3, "flush", 4 + (seed + 2 * number) % 8, True, 0.5) for number in range(1, 5))
        plan = replace(calm(seed), payload_high_bytes=1000, writer_crash_s=1.0, recovery_s=3.0, bookie_crashes=crashes)
        assert play(seed, plan).counts["bookie_crash_at_flush"] > 0


def test_a_fence_survives_the_restart_of_its_bookie() -> None:
    """An idle writer is fenced, all bookies restart, then it goes on: it must be refused, although nobody but the disks remembers.

    Source: BookKeeper's `LedgerDescriptorImpl.fenceAndLogInLedger`.
    """
    for seed in SEEDS:
        # The recovery comes a while after the writer's first burst, so that the fence is not flushed along with the ledger's first entries.
        crashes = tuple(BookieCrash(f"bookie-{number}", 3.0, "", 0, False, 0.05) for number in range(1, 5))
        plan = replace(calm(seed), pause_mean_s=4.0, writer_crash_s=15.0, recovery_s=2.0, bookie_crashes=crashes)
        play(seed, plan)
