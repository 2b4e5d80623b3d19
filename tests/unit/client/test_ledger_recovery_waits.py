"""The traces and errors of a recovery that waits or cannot go on, and its fault points."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import combinations

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import ledger_recovery
from triplicate.errors import RecoveryFailed
from triplicate.ledger import LedgerState
from triplicate.runtime import fault_points
from triplicate.wire import LAST_ENTRY, AddRequest, ReadRequest, Status


def test_a_recovery_says_which_bookies_it_waits_for_and_for_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_recovery, "FIRST_REPORT_S", 0.05)

    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            writer = await client.create()
            await writer.append_many([b"x"] * 3)
            silent = list(writer.metadata.last_segment.ensemble[:2])
            for name in silent:
                cluster[name].when(ReadRequest, "drop")
            with pytest.raises(RecoveryFailed, match=r"not possible now, after \d+\.\d s: .* unknown are") as caught:
                await other.recover(writer.ledger_id)
            for name in silent:
                assert f"{name} (bookie {name} did not answer" in str(caught.value)
            told = cluster.told("client.recovery_waits")
            assert [facts["ledger"] for facts in told] == [writer.ledger_id] * len(told)
            awaited = [facts["awaited"] for facts in told]
            assert f"last entry: {', '.join(silent)}" in awaited
            # The reads of both are overdue at almost the same time, and a late report may come between.
            assert awaited[-1] in [f"last entry: {', '.join(names)}" for names in (silent, silent[:1], silent[1:])]
            seconds = [facts["seconds"] for facts in told]
            assert seconds == sorted(seconds)  # type: ignore[type-var]
            assert len(told) >= 2, "and again, with growing pauses"

    run(main())


def test_a_recovery_that_reads_or_copies_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_recovery, "FIRST_REPORT_S", 0.02)
    monkeypatch.setattr(ledger_recovery, "REPORT_PAUSE_MAXIMUM_S", 0.02)

    async def main() -> None:
        patient = replace(QUICK, read_timeout_s=10.0, add_timeout_s=10.0)
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client(patient) as other:
            writer = await client.create()
            await writer.append_many([b"x"] * 3)
            await cluster.settled(writer.ledger_id, 2)
            for name in "abc":
                cluster[name].when(ReadRequest, "hold", entry_id=2)
                cluster[name].when(AddRequest, "hold")
            recovering = asyncio.ensure_future(other.recover(writer.ledger_id))

            def awaited() -> list[str]:
                return [str(facts["awaited"]) for facts in cluster.told("client.recovery_waits")]

            await eventually(lambda: any("entry 2: " in words for words in awaited()))
            for name in "abc":
                cluster[name].rules = [rule for rule in cluster[name].rules if rule(ReadRequest(0, 2)) is None]
                cluster[name].release()
            await eventually(lambda: any("storing copies: " in words for words in awaited()))
            for name in "abc":
                cluster[name].obey()
            assert (await recovering).last_add_confirmed == 2
            told = len(awaited())
            await asyncio.sleep(0.06)
            assert len(awaited()) == told, "it is done"

    run(main())


@pytest.mark.parametrize("unknown", [pair for count in (1, 2) for pair in combinations(range(6), count)])
def test_coverage_is_per_write_quorum(unknown: tuple[int, ...]) -> None:
    """Six bookies, three copies, two acknowledgements: two unknown bookies may hide an entry only where they share a write quorum."""

    async def main() -> None:
        async with fake_cluster("abcdef") as cluster, cluster.client() as client, cluster.client() as other:
            writer = await client.create(ensemble_size=6, write_quorum=3, ack_quorum=2)
            await writer.append_many([b"x"] * 7)
            ensemble = writer.metadata.last_segment.ensemble
            for position in unknown:
                cluster[ensemble[position]].when(ReadRequest, Status.IO_ERROR, entry_id=LAST_ENTRY)
            shared = any(len({(first + step) % 6 for step in range(3)} & set(unknown)) >= 2 for first in range(6))
            if not shared:
                assert (await other.recover(writer.ledger_id)).last_add_confirmed == 6
                return
            with pytest.raises(RecoveryFailed):
                await other.recover(writer.ledger_id)
            assert (await cluster.metadata_of(writer.ledger_id)).state == LedgerState.IN_RECOVERY

    run(main())


def test_the_moments_of_the_protocol_have_names() -> None:
    points = {name: point for name, point in fault_points().items() if name.startswith("client.")}
    moments = ["ensemble_change.chosen", "ensemble_change.written", "close.writing"]
    moments += [f"recovery.{moment}" for moment in ("marked", "fenced", "read_on", "copying", "copied", "closing")]
    assert {f"client.{moment}" for moment in moments} <= set(points)
    assert all(point.is_async for point in points.values()), "so that a node can be held there"
