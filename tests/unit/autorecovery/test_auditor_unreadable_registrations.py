"""A bookie that is registered, and whose registration cannot be decoded, is neither lost nor repaired away."""

from __future__ import annotations

import pytest

from tests.unit.autorecovery.auditor_rig import audited, give_cookie
from tests.unit.autorecovery.recovery_rig import PROMPT, garble, is_marked, ledger_that_lacks_b, lose, repair, write_ledger
from tests.unit.client.cluster import fake_cluster, run
from triplicate.autorecovery import LedgerChecker, RepairOutcome, decommission_bookie, mark_copies, recover_bookies
from triplicate.errors import ArgumentError

REASON = "its registration cannot be decoded"


def test_the_auditor_does_not_take_it_for_lost() -> None:
    async def main() -> None:
        async with audited("abc") as one:
            await write_ledger(one.client, 5)
            await one.auditor.audit_lost()
            await garble(one.cluster, "b")
            for _ in range(3):
                await one.auditor.audit_lost()
                one.clock.ahead_s += 86_400
            assert await one.marked() == {}
            await lose(one.cluster, "b")
            await one.auditor.audit_lost()
            one.clock.ahead_s += 61
            await one.auditor.audit_lost()
            assert list((await one.marked()).values()) == [("b",)], "without a registration it is lost"

    run(main())


def test_a_pass_over_all_lost_bookies_leaves_it_out() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5)
            await cluster.settled(ledger_id, 4)
            await cluster.add("d")
            before = await cluster.metadata.ledgers.get(ledger_id)
            await garble(cluster, "b")
            report = await recover_bookies(client, settings=PROMPT)
            assert (report.needs, report.unrepaired) == ((), ())
            with pytest.raises(ArgumentError, match=REASON):
                await recover_bookies(client, ["b"], settings=PROMPT)
            assert await cluster.metadata.ledgers.get(ledger_id) == before

    run(main())


def test_a_worker_leaves_its_fragments_and_the_mark() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5)
            await cluster.settled(ledger_id, 4)
            await cluster.add("d")
            before = await cluster.metadata.ledgers.get(ledger_id)
            await cluster.metadata.damaged_copies.report(ledger_id, "b", [range(1, 2)])
            await garble(cluster, "b")
            repaired = await repair(client, ledger_id, "b")
            assert repaired.outcome is RepairOutcome.FAILED
            assert f"the bookie is registered, and {REASON}" in repaired.reason
            assert await cluster.metadata.ledgers.get(ledger_id) == before
            assert await is_marked(cluster, ledger_id)

    run(main())


def test_other_fragments_of_the_ledger_are_repaired() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await ledger_that_lacks_b(cluster, client, 5)
            await garble(cluster, "a")
            repaired = await repair(client, ledger_id, "a b")
            assert repaired.outcome is RepairOutcome.FAILED
            assert set((await cluster.metadata_of(ledger_id)).last_segment.ensemble) == set("acd")

    run(main())


def test_a_check_does_not_mark_it_for_its_silence() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client() as client:
            ledger_id = await write_ledger(client, 5)
            await cluster.settled(ledger_id, 4)
            await garble(cluster, "b")
            async with cluster.client() as other:
                copies = await LedgerChecker(other, ledger_id, 5.0).check()
                assert "BookieServiceInfo" in next(one.silence for one in copies.bookies if one.bookie_id == "b")
                assert await mark_copies(other, copies) == ()

    run(main())


def test_it_is_not_decommissioned_while_it_runs() -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client() as client:
            for name in "abcd":
                await give_cookie(cluster, name)
            await garble(cluster, "b")
            with pytest.raises(ArgumentError, match=REASON):
                await decommission_bookie(client, ["b"], settings=PROMPT)
            assert await cluster.metadata.cookies.get("b") is not None

    run(main())
