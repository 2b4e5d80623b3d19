"""An error that nobody foresaw, in what only tidies up, does not end the bookie; one of the storage does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from triplicate.bookie.background import FIRST_PAUSE_S
from triplicate.wire import Status

TASKS = ["garbage collection", "compaction"]


@pytest.mark.parametrize("task", TASKS)
def test_a_task_that_met_an_unexpected_error_begins_again_after_a_growing_pause(task: str) -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(5)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK
        await rig.bookie.storage.flush()
        on, name = (rig.bookie.parts.garbage, "_missing") if task == "garbage collection" else (rig.bookie.parts.compactor, "_below")
        right: Any = getattr(on, name)
        seen: list[float] = []

        async def fails_three_times(*arguments: Any) -> Any:
            seen.append(asyncio.get_running_loop().time())
            if len(seen) <= 3:
                raise KeyError("metadata that nobody foresaw")
            return await right(*arguments)

        setattr(on, name, fails_three_times)
        await rig.delete_ledger(5)
        await asyncio.sleep(10 * FIRST_PAUSE_S)
        told = [dict(fact.facts) for fact in rig.facts("bookie.task_failed")]
        assert [fact["task"] for fact in told] == [task] * 3
        assert "KeyError" in str(told[0]["error"])
        assert rig.bookie.parts.metrics.task_failures.labels(task)._value.get() == 3
        assert seen[1] - seen[0] >= FIRST_PAUSE_S / 2
        assert seen[3] - seen[2] > seen[1] - seen[0]
        assert rig.facts("bookie.failed") == []
        assert await client.add(ledger, 1) is Status.OK
        await asyncio.sleep(5)
        assert len(seen) > 4, "it goes on as before"

    run_rig(body, gc_interval_s=1.0, compaction_interval_s=1.0, major_compaction_interval_s=2.0)


@pytest.mark.parametrize("where", ["delete_runs", "dead_logs", "finished_logs"])
def test_an_unexpected_error_of_the_storage_ends_the_bookie(where: str) -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(5)
        assert await (await rig.connect()).add(ledger, 0) is Status.OK
        await rig.bookie.storage.flush()
        stored = rig.bookie.storage.stored

        def fails(*arguments: Any) -> Any:
            raise ValueError("half written")

        setattr(stored.index if where == "delete_runs" else stored, where, fails)
        await rig.delete_ledger(5)
        async with asyncio.timeout(30):
            error = await rig.bookie.wait_failed()
        assert "half written" in str(error)
        assert rig.facts("bookie.task_failed") == []

    run_rig(body, gc_interval_s=1.0, compaction_interval_s=1.0)


def test_metadata_that_nobody_foresaw_leave_their_ledger_unverified_and_the_bookie_alone() -> None:
    async def body(rig: Rig) -> None:
        ledger, other = await rig.create_ledger(5), await rig.create_ledger(6)
        ledgers = rig.bookie.parts.metadata.ledgers
        right = ledgers.get

        async def broken(ledger_id: int) -> Any:
            if ledger_id == 5:
                raise KeyError("a digest of next year")
            return await right(ledger_id)

        ledgers.get = broken  # type: ignore[method-assign]
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK
        assert await client.add(other, 0) is Status.OK
        await asyncio.sleep(2)
        assert rig.facts("bookie.failed") == []
        assert await client.add(ledger, 1) is Status.OK
        handles = rig.bookie.storage.ledgers
        assert [(handles.get(ledger_id) or pytest.fail("gone")).verifier is not None for ledger_id in (5, 6)] == [False, True]

    run_rig(body)
