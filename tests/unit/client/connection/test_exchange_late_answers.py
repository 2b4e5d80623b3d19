"""Answers that come late, and ends that nobody planned: nothing is mistaken for something else, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.client.cluster import fake_cluster, run
from triplicate.client import WRITER_AWAITED
from triplicate.errors import ArgumentError, BookieUnavailable, ConnectionLost, HandleClosed, OutcomeUnknown, ReadFailed, RequestTimeout
from triplicate.metadata import InjectedFault
from triplicate.wire import AddRequest, ReadRequest, ReadResponse, Status


def test_a_late_no_entry_is_not_taken_for_the_answer_to_a_later_read() -> None:
    async def main() -> None:
        async with fake_cluster("a") as cluster, cluster.client() as client:
            writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
            reader = await client.open(writer.ledger_id)
            bookie = cluster["a"]
            bookie.when(ReadRequest, "hold", entry_id=0)
            first = asyncio.ensure_future(reader.read_from("a", 0))
            while not first.done():
                # Other answers keep coming, so the connection looks alive.
                await reader.read_last_confirmed()
                await asyncio.sleep(0.02)
            assert isinstance(first.exception(), RequestTimeout)
            await writer.append(b"acknowledged")
            second = asyncio.ensure_future(reader.read_from("a", 0))
            await asyncio.sleep(0.02)
            (connection, request, transaction), *more = bookie.held
            assert isinstance(request, ReadRequest)
            bookie.rules.clear()
            # The state when the first request arrived; this answer comes before that to any other.
            connection.answer(ReadResponse(Status.NO_ENTRY, request.ledger_id, 0), transaction)
            for connection, request, transaction in more:
                connection.answer(bookie.serve(request), transaction)
            entry = await second
            assert entry is not None
            assert entry.payload == b"acknowledged"

    run(main())


def test_a_bookie_that_never_answers_a_read_is_left_for_a_new_connection() -> None:
    async def main() -> None:
        async with fake_cluster("a") as cluster, cluster.client() as client:
            writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
            await writer.append(b"kept")
            reader = await client.open(writer.ledger_id)
            bookie = cluster["a"]
            rule = bookie.when(ReadRequest, "drop", entry_id=0)
            with pytest.raises(RequestTimeout):
                await reader.read_from("a", 0)
            bookie.rules.remove(rule)
            while True:
                try:
                    # Other answers keep coming, so the connection looks alive.
                    await reader.read_last_confirmed()
                    entry = await reader.read_from("a", 0)
                    break
                except (RequestTimeout, BookieUnavailable, ReadFailed):
                    continue
            assert entry is not None
            assert entry.payload == b"kept"

    run(main())


def test_closing_a_writer_of_a_closed_client_fails_every_time_it_is_asked() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster:
            async with cluster.client() as client:
                writer = await client.create()
                await writer.append(b"one")
            for _ in range(2):
                with pytest.raises(HandleClosed):
                    await asyncio.wait_for(writer.close(), 2.0)

    run(main())


def test_an_unforeseen_failure_of_an_ensemble_change_ends_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster:
            client_closed = False
            try:
                async with cluster.client() as client:
                    writer = await client.create()
                    await writer.append(b"one")

                    async def broken() -> dict[str, Any]:
                        raise ZeroDivisionError("a fault of ours")

                    monkeypatch.setattr(cluster.metadata.bookies, "writable", broken)
                    victim = writer.metadata.last_segment.ensemble[0]
                    cluster[victim].when(AddRequest, Status.IO_ERROR)
                    with pytest.raises((OutcomeUnknown, HandleClosed)):
                        await asyncio.wait_for(writer.append(b"two"), 2.0)
                    client_closed = True
            except ZeroDivisionError:
                assert client_closed, "the fault is raised at the end, and was not swallowed"

    run(main())


def test_a_lost_answer_never_makes_two_clients_of_one_name_the_writer() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client, cluster.client() as other:
            ledger_id = (await client.create(custom=WRITER_AWAITED)).ledger_id
            lost: list[str] = []

            def lose_the_first(_: int, operation: str, path: str) -> InjectedFault | None:
                if operation != "set" or lost:
                    return None
                lost.append(path)
                return InjectedFault(raise_before=ConnectionLost("the connection broke"))

            cluster.store.fault = lose_the_first
            first = asyncio.ensure_future(client.take_up(ledger_id))
            while not lost:
                await asyncio.sleep(0)
            await other.take_up(ledger_id)
            with pytest.raises(ArgumentError, match="has a writer already"):
                await first

    run(main())
