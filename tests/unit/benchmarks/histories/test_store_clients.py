"""Clients of a store on a server in this process: what they record is what the judge needs to see the server's faults."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.histories.clients import Shared
from benchmarks.histories.final_state import judge_stages
from benchmarks.histories.judge import Report
from benchmarks.histories.stages import Blame, Kind, Result
from benchmarks.histories.store_clients import StoreClient
from benchmarks.histories.store_model import Step, Unchanged, apply_parts
from tests.unit.kv.resp.resp_rig import Stand, play
from tests.waiting import eventually

CLIENTS = 4
OPERATIONS = 1500


async def work(stand: Stand, operations: int) -> Shared:
    """Run clients until they have done some operations."""
    shared = Shared(lambda: [("127.0.0.1", stand.port)], "shop")
    clients = [StoreClient(shared, number, wanders=number == 0) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        await eventually(lambda: shared.stages.total((Kind.KEY_VALUE,), *Result) >= operations)
    finally:
        shared.over.set()
        await asyncio.gather(*(asyncio.to_thread(client.join) for client in clients))
    assert [client.failure for client in clients] == [None] * CLIENTS
    assert not shared.strange
    return shared


def test_the_history_of_a_server_is_linearizable_and_has_every_kind_of_operation(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        shared = await work(stand, OPERATIONS)
        report, blame = Report(), Blame()
        judge_stages(Kind.KEY_VALUE, shared.seen.operations, report, blame, apply=apply_parts)
        assert report.violations == report.undecided == []
        assert not blame.wrong
        operations = [operation for group in shared.seen.operations.values() for operation in group]
        parts = [part for operation in operations for part in operation.arguments]
        commands = {part.command for part in parts if isinstance(part, Step)}
        assert commands == {"get", "set", "setnx", "cas", "del", "incr", "getset", "getdel"}
        assert any(isinstance(part, Unchanged) for part in parts)
        assert all(operation.returned_s is not None for operation in operations)
        compared = [
            operation.result[0]
            for operation in operations
            if len(operation.arguments) == 1 and isinstance(step := operation.arguments[0], Step) and step.command == "cas"
        ]
        assert set(compared) == {True, False}, "both outcomes are compared"

    play(tmp_path, scene)


def test_an_answer_that_does_not_come_leaves_an_unknown_outcome(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        stand.log.held = True
        shared = Shared(lambda: [("127.0.0.1", stand.port)], "shop")
        client = StoreClient(shared, 1)
        client.start()
        await eventually(lambda: shared.stages.total((Kind.KEY_VALUE,), Result.UNKNOWN) > 0)
        shared.over.set()
        stand.log.held = False
        stand.log.release()
        await asyncio.to_thread(client.join)
        unknown = [one for group in shared.seen.operations.values() for one in group if one.returned_s is None]
        assert unknown
        assert all(one.result is None for one in unknown)

    play(tmp_path, scene)


def test_what_a_follower_refuses_is_counted_and_not_recorded(tmp_path: Path) -> None:
    async def scene(stand: Stand) -> None:
        await stand.follow()
        shared = await work(stand, 50)
        assert not shared.seen.operations
        assert shared.stages.total((Kind.KEY_VALUE,), Result.REFUSED) >= 50

    play(tmp_path, scene)
