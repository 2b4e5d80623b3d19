"""The decisions of the auditor, on a clock that the test moves on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.autorecovery.auditor_rig import AUDITED, Audited, audited
from tests.unit.autorecovery.recovery_rig import lose, write_ledger
from tests.unit.client.cluster import run
from triplicate.autorecovery import AuditorMetrics, CopyPace, LedgerAudits
from triplicate.autorecovery.auditor import AUDITS, Auditor
from triplicate.autorecovery.core.check_schedule import FIRST_CHECK_AFTER_S
from triplicate.metadata import ObservedAbsences, PeriodicCheck, bookie_service, machine_of, own_paths
from triplicate.metadata.core.paths import underreplicated_path
from triplicate.metadata.core.repair_formats import encode_mark


async def ledger_on(one: Audited, *names: str) -> int:
    """A closed ledger on exactly these bookies."""
    ledger_id = await write_ledger(one.client, 5)
    found = await one.cluster.metadata.ledgers.get(ledger_id)
    segment = replace(found.value.segments[0], ensemble=names)
    await one.cluster.metadata.ledgers.update(ledger_id, replace(found.value, segments=(segment,)), found.version)
    return ledger_id


def test_ledgers_of_a_lost_bookie_are_marked_after_the_delay() -> None:
    async def main() -> None:
        async with audited() as one:
            with_b, without_b = await ledger_on(one, "a", "b", "c"), await ledger_on(one, "a", "c", "d")
            assert with_b != without_b
            await one.auditor.audit_lost()
            await lose(one.cluster, "b")
            wake_at = await one.auditor.audit_lost()
            assert wake_at is not None
            assert 30 < wake_at - one.clock.monotonic() <= 60
            one.clock.ahead_s += 40
            await one.auditor.audit_lost()
            assert await one.marked() == {}
            one.clock.ahead_s += 21
            await one.auditor.audit_lost()
            assert await one.marked() == {with_b: ("b",)}

    run(main())


def test_a_bookie_that_returns_in_time_costs_nothing() -> None:
    async def main() -> None:
        async with audited() as one:
            await ledger_on(one, "a", "b", "c")
            await one.auditor.audit_lost()
            await lose(one.cluster, "b")
            await one.auditor.audit_lost()
            one.clock.ahead_s += 40
            await one.cluster.add("b")
            await one.auditor.audit_lost()
            one.clock.ahead_s += 40
            await one.auditor.audit_lost()
            assert await one.marked() == {}
            assert "auditor_NUM_DELAYED_BOOKIE_AUDITS_CANCELLED_total 1.0" in one.metrics.expose().decode()

    run(main())


def test_the_delay_can_be_changed_while_a_bookie_is_lost() -> None:
    async def main() -> None:
        async with audited() as one:
            ledger_id = await ledger_on(one, "a", "b", "c")
            await one.auditor.audit_lost()
            await lose(one.cluster, "b")
            await one.auditor.audit_lost()
            one.clock.ahead_s += 2
            await one.cluster.metadata.under_replication.set_lost_bookie_recovery_delay_s(1)
            await one.auditor.audit_lost()
            assert await one.marked() == {ledger_id: ("b",)}

    run(main())


def test_several_bookies_that_leave_are_audited_without_delay() -> None:
    async def main() -> None:
        async with audited() as one:
            ledger_id = await ledger_on(one, "a", "b", "c")
            await one.auditor.audit_lost()
            await lose(one.cluster, "b")
            await lose(one.cluster, "c")
            await one.auditor.audit_lost()
            assert await one.marked() == {ledger_id: ("b", "c")}

    run(main())


def test_a_read_only_bookie_is_not_lost() -> None:
    async def main() -> None:
        async with audited() as one:
            await ledger_on(one, "a", "b", "c")
            await one.auditor.audit_lost()
            await one.cluster.set_readonly("b", True)
            await one.auditor.audit_lost()
            one.clock.ahead_s += 1000
            await one.auditor.audit_lost()
            assert await one.marked() == {}

    run(main())


def test_a_bookie_that_only_a_ledger_names_is_lost() -> None:
    async def main() -> None:
        async with audited() as one:
            ledger_id = await ledger_on(one, "a", "b", "old")
            await one.auditor.audit_lost()
            one.clock.ahead_s += 61
            await one.auditor.audit_lost()
            assert await one.marked() == {ledger_id: ("old",)}

    run(main())


def test_the_machines_of_registered_bookies_are_recorded() -> None:
    """Bookies of Apache do not record theirs."""

    async def main() -> None:
        async with audited() as one:
            machines = one.cluster.metadata.machines
            await one.auditor.audit_lost()
            assert all([await machines.get(name) is not None for name in "abcd"])
            await one.cluster.metadata.bookies.set_readonly("a", bookie_service("10.0.0.9", 3181), True)
            await one.auditor.audit_lost()
            moved = await machines.get("a")
            assert moved is not None
            assert machine_of("a", moved) == "10.0.0.9"

    run(main())


def test_nothing_is_audited_while_auto_recovery_is_disabled() -> None:
    async def main() -> None:
        async with audited() as one:
            ledger_id = await ledger_on(one, "a", "b", "c")
            await one.auditor.audit_lost()
            await lose(one.cluster, "b")
            await one.auditor.audit_lost()
            marks = one.cluster.metadata.under_replication
            await marks.disable()
            one.clock.ahead_s += 1000
            assert await one.auditor.audit_lost() is None
            await one.auditor.check_due()
            assert await one.marked() == {}
            assert await marks.check_time_ms(PeriodicCheck.ALL_LEDGERS) is None
            await marks.enable()
            await one.auditor.audit_lost()
            assert await one.marked() == {ledger_id: ("b",)}

    run(main())


def test_nothing_is_lost_while_no_bookie_is_registered() -> None:
    async def main() -> None:
        async with audited("abc") as one:
            await ledger_on(one, "a", "b", "c")
            await one.auditor.audit_lost()
            for name in "abc":
                await lose(one.cluster, name)
            one.clock.ahead_s += 1000
            assert await one.auditor.audit_lost() is None
            assert await one.marked() == {}

    run(main())


def test_an_unreadable_delay_is_that_of_the_settings() -> None:
    async def main() -> None:
        async with audited() as one:
            await ledger_on(one, "a", "b", "c")
            await one.cluster.tree.set("/ledgers/underreplication/lostBookieRecoveryDelay", b"soon")
            await one.auditor.audit_lost()
            await lose(one.cluster, "b")
            wake_at = await one.auditor.audit_lost()
            assert wake_at is not None
            assert 30 < wake_at - one.clock.monotonic() <= 60
            assert one.cluster.told("autorecovery.delay_unreadable")

    run(main())


def test_two_auditors_at_once_are_harmless() -> None:
    async def main() -> None:
        async with audited() as one:
            ledger_id = await ledger_on(one, "a", "b", "c")
            other = Auditor(one.client, AUDITED, one.auditor._audits, one.auditor._metrics)
            for auditor in (one.auditor, other):
                await auditor.audit_lost()
            await lose(one.cluster, "b")
            for auditor in (one.auditor, other):
                await auditor.audit_lost()
            one.clock.ahead_s += 61
            await one.auditor.audit_lost()
            before = await one.cluster.metadata.under_replication.get(ledger_id)
            await other.audit_lost()
            assert await one.cluster.metadata.under_replication.get(ledger_id) == before

    run(main())


def test_the_search_forgets_notes_of_ledgers_that_are_not_marked_any_more() -> None:
    async def main() -> None:
        async with audited() as one:
            notes, marks = one.cluster.metadata.repair_notes, one.cluster.metadata.under_replication
            await marks.mark(7, ["b"])
            await notes.record(7, "no copy", "w")
            await notes.record(8, "no copy", "w")
            await one.auditor.audit_lost()
            assert await notes.ledger_ids() == [7]

    run(main())


def test_the_search_marks_ledgers_whose_recorded_damage_has_lost_its_mark() -> None:
    """A worker of BookKeeper's may delete the mark without a repair. The damage then stayed until the next pass of a scrubber."""

    async def main() -> None:
        async with audited() as one:
            damaged = one.cluster.metadata.damaged_copies
            await damaged.report(7, "b", [range(2, 3)])
            await damaged.report(8, "c", [range(1)])
            await one.cluster.metadata.tree.set(own_paths.damaged_ledger_path(one.cluster.metadata.own_root, 8), b"{}")
            await one.auditor.audit_lost()
            assert await one.marked() == {7: ("b",)}, "a record of a later release is left to it"

    run(main())


def test_checks_run_at_their_intervals_and_their_times_are_bookkeepers() -> None:
    async def main() -> None:
        async with audited() as one:
            marks = one.cluster.metadata.under_replication
            assert await one.auditor.check_due() == pytest.approx(FIRST_CHECK_AFTER_S, abs=30)
            one.clock.ahead_s += FIRST_CHECK_AFTER_S
            assert await one.auditor.check_due() == pytest.approx(86_400, abs=30)
            times = {check: await marks.check_time_ms(check) for check in AUDITS}
            assert all(times.values())
            one.clock.ahead_s += 86_401
            await one.auditor.check_due()
            again = {check: await marks.check_time_ms(check) for check in AUDITS}
            assert [check for check in AUDITS if again[check] != times[check]] == [PeriodicCheck.PLACEMENT_POLICY]

    run(main())


def test_a_time_that_a_wrong_clock_wrote_does_not_put_a_check_off() -> None:
    async def main() -> None:
        async with audited() as one:
            marks, year_ms = one.cluster.metadata.under_replication, 365 * 86_400_000
            for check in AUDITS:
                await marks.set_check_time_ms(check, one.client.host.clock.wall_us() // 1000 + year_ms)
            assert await one.auditor.check_due() == pytest.approx(86_400, abs=30)
            one.clock.ahead_s += 8 * 86_400
            before_ms = one.client.host.clock.wall_us() // 1000
            await one.auditor.check_due()
            times = [await marks.check_time_ms(check) for check in AUDITS]
            assert all(time is not None and before_ms <= time < before_ms + 60_000 for time in times)

    run(main())


def test_checks_without_an_interval_never_run() -> None:
    async def main() -> None:
        none = replace(AUDITED, ledgers_check_interval_s=0, replicas_check_interval_s=0, placement_check_interval_s=0)
        async with audited(settings=none) as one:
            one.clock.ahead_s += 1e6
            assert await one.auditor.check_due() == float("inf")
            assert await one.cluster.metadata.under_replication.check_time_ms(PeriodicCheck.REPLICAS) is None

    run(main())


def next_auditor(one: Audited) -> Auditor:
    counts = AuditorMetrics(None)
    return Auditor(one.client, AUDITED, LedgerAudits(one.client, CopyPace(one.clock, 0), counts, obeys_disable=True), counts)


def test_the_delay_goes_on_under_the_next_auditor() -> None:
    async def main() -> None:
        async with audited() as one:
            ledger_id = await ledger_on(one, "a", "b", "c")
            await one.auditor.audit_lost()
            await lose(one.cluster, "b")
            auditor = one.auditor
            await auditor.audit_lost()
            for _ in range(3):
                one.clock.ahead_s += 19
                await auditor.record_absences()
                one.clock.ahead_s += 30
                auditor = next_auditor(one)
                await auditor.audit_lost()
                assert await one.marked() == {}, "the time between two auditors does not count"
            one.clock.ahead_s += 4
            await auditor.audit_lost()
            assert await one.marked() == {ledger_id: ("b",)}
            assert await one.cluster.metadata.absences.read() is None

    run(main())


def test_a_record_of_a_cluster_that_was_stopped_does_not_count() -> None:
    async def main() -> None:
        async with audited() as one:
            await ledger_on(one, "a", "b", "c")
            await one.auditor.audit_lost()
            await lose(one.cluster, "b")
            await one.auditor.audit_lost()
            one.clock.ahead_s += 59
            await one.auditor.record_absences()
            one.clock.ahead_s += 3600
            auditor = next_auditor(one)
            wake_at = await auditor.audit_lost()
            assert wake_at is not None
            assert 30 < wake_at - one.clock.monotonic() <= 60
            assert await one.marked() == {}

    run(main())


def test_a_bookie_that_returned_between_two_auditors_has_the_whole_delay_again() -> None:
    async def main() -> None:
        async with audited() as one:
            await ledger_on(one, "a", "b", "c")
            await one.auditor.audit_lost()
            await lose(one.cluster, "b")
            await one.auditor.audit_lost()
            one.clock.ahead_s += 55
            await one.auditor.record_absences()
            await one.cluster.add("b")
            auditor = next_auditor(one)
            await auditor.audit_lost()
            assert await one.cluster.metadata.absences.read() is None
            await lose(one.cluster, "b")
            await auditor.audit_lost()
            one.clock.ahead_s += 30
            await auditor.audit_lost()
            assert await one.marked() == {}

    run(main())


def test_an_unreadable_record_of_absences_is_passed_over() -> None:
    async def main() -> None:
        async with audited() as one:
            await ledger_on(one, "a", "b", "c")
            await lose(one.cluster, "b")
            tree = one.cluster.metadata.tree
            await tree.create(own_paths.absences_path(one.cluster.metadata.own_root), b'{"v":2}', parents=True)
            await one.auditor.audit_lost()
            found = await one.cluster.metadata.absences.read()
            assert found is not None
            assert list(found.absent_s) == ["b"]

    run(main())


def test_a_return_during_a_pause_begins_the_delay_again() -> None:
    """A bookie that came back meanwhile and left again was audited at once, because of its earlier absence."""

    async def main() -> None:
        async with audited("abc") as rig:
            await write_ledger(rig.client, 5)
            marks, bookies = rig.client.metadata.under_replication, rig.cluster.metadata.bookies
            await rig.auditor.audit_lost()
            await bookies.unregister("a")
            await rig.auditor.audit_lost()
            await marks.disable()
            await bookies.register("a", bookie_service("127.0.0.1", rig.cluster.ports["a"]))
            await rig.auditor.audit_lost()
            rig.clock.ahead_s += 100
            await bookies.unregister("a")
            await marks.enable()
            due = await rig.auditor.audit_lost()
            assert await rig.marked() == {}
            assert due is not None
            rig.clock.ahead_s = due - rig.cluster.host.clock.monotonic() + 0.1
            await rig.auditor.audit_lost()
            assert "a" in {name for missing in (await rig.marked()).values() for name in missing}

    run(main())


def test_a_return_during_a_pause_ends_a_recorded_absence() -> None:
    async def main() -> None:
        async with audited("abcd") as rig:
            marks = rig.client.metadata.under_replication
            now_ms = rig.clock.wall_us() // 1000
            await rig.client.metadata.absences.write(ObservedAbsences(now_ms, {"a": 59.9, "lost": 30.0}))
            await marks.disable()
            await rig.auditor.audit_lost()
            found = await rig.client.metadata.absences.read()
            assert found is not None
            assert found.absent_s == {"lost": 30.0}

    run(main())


def test_marked_ledgers_and_the_age_of_the_oldest_are_metrics() -> None:
    async def main() -> None:
        async with audited("abc") as rig:
            marks, tree = rig.client.metadata.under_replication, rig.cluster.metadata.tree

            def shown() -> tuple[float, float]:
                values = dict(line.split() for line in rig.metrics.expose().decode().splitlines() if line.startswith("triplicate_under"))
                return float(values["triplicate_underreplicated_ledgers"]), float(values["triplicate_underreplicated_oldest_seconds"])

            await rig.auditor.count_marks()
            assert shown() == (0, 0)
            path = f"/ledgers/underreplication/ledgers{underreplicated_path(7)}"
            for ledger_id in (7, 8):
                await marks.mark(ledger_id, ["a"])
            await tree.set(path, encode_mark(("a",), rig.clock.wall_us() // 1000 - 100_000))
            await marks.disable()
            await rig.auditor.count_marks()
            count, age = shown()
            assert count == 2
            assert 100 <= age < 160
            await tree.set(path, b"\xff")
            await rig.auditor.count_marks()
            count, age = shown()
            assert count == 2
            assert age < 60

    run(main())
