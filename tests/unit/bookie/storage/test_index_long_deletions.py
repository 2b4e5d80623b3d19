"""Ledgers of many runs are deleted in pages: each is one bounded commit, others have their turn between, and a crash leaves no half."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.index_rig import CACHE, PATH, Machine, run_of
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.storage import index as index_module
from triplicate.bookie.storage.index import Index
from triplicate.ledger import EntryCodec
from triplicate.wire import Status
from triplicate_simulator.cluster.simulated_cluster import LEDGER_DIRECTORY


async def ledger_of_runs(rig: Rig, ledger_id: int, runs: int) -> EntryCodec:
    ledger = await rig.create_ledger(ledger_id)
    client = await rig.connect()
    for entry_id in range(runs):
        assert await client.add(ledger, entry_id) is Status.OK
        await rig.bookie.storage.flush()
    return ledger


def test_no_commit_holds_more_than_a_page_of_a_deletion() -> None:
    async def body(rig: Rig) -> None:
        await ledger_of_runs(rig, 4, 1)
        index = rig.bookie.storage.stored.index
        for ledger_id in (5, 6):
            runs = [(9, run_of(ledger_id, number, number, 1, 4096 + number)) for number in range(8000)]
            index.add(1, [(9, LedgerData(ledger_id, b"k" * 20))], runs, [])
        commits = f"{LEDGER_DIRECTORY}/current/index.db-commits"
        sizes: list[int] = []

        def look(kind: str, path: str) -> None:
            if kind == "sync" and path == commits:
                sizes.append(rig.disk.names.live[commits].live.size)

        rig.disk.before_operation = look
        assert await rig.bookie.collect_garbage() == 2
        assert len(sizes) >= 16
        assert max(after - before for before, after in pairwise(sizes)) < 500_000
        assert index.count("runs") == 1
        assert index.ledger_ids() == [4]

    run_rig(body, flush_interval_s=3600.0)


def test_a_crash_at_any_step_leaves_a_ledger_that_is_found_missing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "PAGE_OF_IDS", 2)
    tried = half = 0
    for step in range(200):
        happened: list[str] = []

        async def body(rig: Rig, step: int = step, happened: list[str] = happened) -> None:
            kept = await ledger_of_runs(rig, 3, 2)
            ledger = await ledger_of_runs(rig, 2, 7)
            fenced = step % 2 == 1
            if fenced:
                assert (await (await rig.connect()).fence(ledger)).status is Status.OK
                await rig.bookie.storage.flush()
            await rig.delete_ledger(2)
            rig.kill_at(step, happened)
            deletion = asyncio.ensure_future(rig.bookie.collect_garbage())
            await asyncio.sleep(3)
            rig.disk.before_operation = None
            deletion.cancel()
            if not happened:
                return
            await rig.node.start()
            index = rig.bookie.storage.stored.index
            if 0 < len(index.runs_of(2)) < 7:
                nonlocal half
                half += 1
                assert index.ledger_ids() == [2, 3]
            await rig.bookie.collect_garbage()
            for _ in range(2):
                index = rig.bookie.storage.stored.index
                assert index.ledger_ids() == [3]
                assert index.runs_of(2) == []
                client = await rig.connect()
                for entry_id in range(2):
                    assert (await client.read(3, entry_id)).status is Status.OK
                if fenced:
                    assert await client.add(ledger, 9) is Status.FENCED
                assert kept.ledger_id == 3
                await rig.restart()

        run_rig(body, seed=step, flush_interval_s=3600.0)
        if not happened:
            break
        tried += 1
    assert tried >= 6
    assert half >= 2


@pytest.mark.parametrize("flushed", [False, True])
def test_what_is_added_between_two_pages_is_no_part_of_the_deletion(monkeypatch: pytest.MonkeyPatch, flushed: bool) -> None:
    monkeypatch.setattr(index_module, "PAGE_OF_IDS", 2)

    async def body(rig: Rig) -> None:
        ledger = await ledger_of_runs(rig, 2, 9)
        storage = rig.bookie.storage
        delete_runs, pages = storage.stored.index.delete_runs, [0]
        reached, between = asyncio.Event(), asyncio.Event()

        def counted(ledger_ids: list[int], up_to_flush: int) -> bool:
            pages[0] += 1
            return delete_runs(ledger_ids, up_to_flush)

        storage.stored.index.delete_runs = counted  # type: ignore[method-assign,assignment]
        run = storage.workers.writer.run

        async def run_and_wait(function: Callable[..., Any], *arguments: Any) -> Any:
            result = await run(function, *arguments)
            if function is counted and pages[0] == 2:
                reached.set()
                await between.wait()
            return result

        storage.workers.writer.run = run_and_wait  # type: ignore[method-assign, assignment]
        deletion = asyncio.ensure_future(storage.delete_ledgers([2]))
        await reached.wait()
        client = await rig.connect()
        assert await client.add(ledger, 100) is Status.OK
        if flushed:
            await storage.flush()
        between.set()
        await deletion
        assert pages[0] >= 3
        for _ in range(2):
            client = await rig.connect()
            assert (await client.read(2, 100)).status is Status.OK
            assert (await client.read(2, 1)).status is Status.NO_ENTRY
            assert await rig.bookie.storage.ledger_ids() == [2]
            await rig.bookie.storage.flush()
            assert rig.bookie.storage.stored.index.ledger_ids() == [2]
            await rig.restart()
        await rig.delete_ledger(2)
        assert await rig.bookie.collect_garbage() == 1
        assert rig.bookie.storage.stored.index.count("runs") == 0

    run_rig(body, flush_interval_s=3600.0)


def test_a_look_at_a_ledger_while_it_is_deleted_does_not_bring_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "PAGE_OF_IDS", 2)

    async def body(rig: Rig) -> None:
        await ledger_of_runs(rig, 2, 9)
        storage = rig.bookie.storage
        write_deletion = storage.flusher.write_deletion

        def load_first(*arguments: object) -> None:
            storage.ledgers.add(storage.stored.load(2))
            write_deletion(*arguments)  # type: ignore[arg-type]

        storage.flusher.write_deletion = load_first  # type: ignore[method-assign,assignment]
        await storage.delete_ledgers([2])
        assert (await (await rig.connect()).read(2, 1)).status is Status.NO_LEDGER
        assert await storage.ledger_ids() == []

    run_rig(body, flush_interval_s=3600.0)


def test_a_deletion_leaves_what_later_flushes_have_written() -> None:
    machine = Machine()
    index = Index(machine.disk, PATH, CACHE)
    state = LedgerData(5, b"k" * 20)
    index.add(1, [(1, state)], [(1, run_of(5, 0, 9, 1))], [(1, 9000)])
    index.add(2, [], [(1, run_of(5, 10, 19, 2, 6000))], [(1, 9999)])
    index.note_missing(77, [5])
    index.delete_ledgers([5], 1)
    assert index.runs_of(5) == [(1, run_of(5, 10, 19, 2, 6000))]
    assert index.ledger(5) == (state, 19)
    assert index.missing() == {}
    index.delete_ledgers([5], 2)
    assert index.ledger(5) is None
    assert index.count("runs") == 0
    index.close()
