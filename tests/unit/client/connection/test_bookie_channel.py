"""One connection over either version: who gets which answer, what is late, surplus, or never comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.client.channel_rig import Asked, pool_of
from tests.unit.client.cluster import QUICK, FakeBookie, FakeCluster, fake_cluster, run
from tests.waiting import eventually
from triplicate.client import Client
from triplicate.client.connection.bookie_channel import BookieChannel
from triplicate.errors import (
    ArgumentError,
    BookieUnavailable,
    ConnectionBroken,
    HandleClosed,
    LedgerFenced,
    ReadFailed,
    RequestTimeout,
    Unauthorized,
)
from triplicate.wire import (
    AddRequest,
    AddResponse,
    BatchReadRequest,
    BookieInfoRequest,
    ForceRequest,
    ForceResponse,
    ListEntriesRequest,
    ReadLacRequest,
    ReadRequest,
    ReadResponse,
    Request,
    Response,
    Status,
    encode_response,
    v3,
)

WIRES = ("v2", "v3")


async def entry_in(cluster: FakeCluster) -> int:
    """A ledger of three entries; its id."""
    async with cluster.client() as client, await client.create() as writer:
        await writer.append_many([b"a", b"b", b"c"])
        await cluster.settled(writer.ledger_id, 2)
    return writer.ledger_id


def say(bookie: FakeBookie, frame: bytes) -> None:
    for connection in bookie.connections:
        assert connection.transport is not None
        connection.transport.write(frame)


def test_every_request_of_version_3_gets_its_own_answer() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster) as pool:
            ledger_id = await entry_in(cluster)
            channel, asked = pool.v3_channel("a"), Asked([])
            requests: list[Request] = [
                ReadRequest(ledger_id, 0),
                ReadRequest(ledger_id, 0),
                ReadRequest(ledger_id, 1),
                ReadLacRequest(ledger_id),
                ForceRequest(ledger_id),
                ListEntriesRequest(ledger_id),
                BookieInfoRequest(),
            ]
            cluster["a"].when(object, "hold")
            for token, request in enumerate(requests):
                channel.call(request, asked, token)
            await eventually(lambda: len(cluster["a"].held) == len(requests))
            cluster["a"].held.reverse()
            cluster["a"].release()
            await asked.wait(len(requests))
            assert [token for token, _, _ in asked.answers] == [6, 5, 4, 3, 2, 1, 0]
            kinds = [type(response).__name__.removesuffix("Response") for _, response, _ in reversed(asked.answers)]
            assert kinds == [type(request).__name__.removesuffix("Request") for request in requests]

    run(main())


def test_equal_reads_of_version_2_share_the_next_request() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster) as pool:
            ledger_id = await entry_in(cluster)
            channel, asked = pool.channel("a"), Asked([])
            cluster["a"].when(ReadRequest, "hold")
            for token in range(3):
                channel.read(ledger_id, 0, asked, token)
            await eventually(lambda: len(cluster["a"].held) == 1)
            cluster["a"].release()
            await eventually(lambda: len(cluster["a"].held) == 1)
            assert [token for token, _, _ in asked.answers] == [0]
            cluster["a"].release()
            await asked.wait(3)

    run(main())


def test_the_two_versions_have_connections_of_their_own() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster) as pool, pool_of(cluster, replace(QUICK, wire="v3")) as other:
            assert [pool.channel("a").wire, pool.v3_channel("a").wire, pool.batch_channel("a").wire] == ["v2", "v3", "v2"]
            assert pool.channel("a") is pool.channel("a")
            assert len({id(pool.channel("a")), id(pool.v3_channel("a")), id(pool.batch_channel("a"))}) == 3
            assert other.channel("a") is other.v3_channel("a")
            assert other.channel("a").wire == "v3"

    run(main())


@pytest.mark.parametrize(
    ("wire", "request_"), [("v2", ForceRequest(1)), ("v2", ReadLacRequest(1)), ("v3", BatchReadRequest(1, 0, 0, 1, 1000))]
)
def test_what_a_version_cannot_carry_is_refused_at_once(wire: str, request_: Request) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster, replace(QUICK, wire=wire)) as pool:
            with pytest.raises(ArgumentError):
                pool.channel("a").call(request_, Asked([]), None)

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_an_answer_that_comes_too_late_belongs_to_nobody(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster, replace(QUICK, wire=wire)) as pool:
            ledger_id = await entry_in(cluster)
            channel, asked = pool.channel("a"), Asked([])
            channel.read(ledger_id, 0, asked, "warm up")
            await asked.wait(1)
            cluster["a"].when(ReadRequest, "hold", entry_id=1)
            channel.read(ledger_id, 1, asked, "late")
            # Another answer meanwhile shows that the connection lives, or it would be given up.
            for _ in range(10):
                await asyncio.sleep(0.05)
                channel.read(ledger_id, 0, asked, "other")
            await eventually(lambda: any(token == "late" for token, _, _ in asked.answers))
            assert [type(error) for token, _, error in asked.answers if token == "late"] == [RequestTimeout]
            cluster["a"].rules.clear()
            channel.read(ledger_id, 1, asked, "again")
            cluster["a"].release()
            await eventually(lambda: any(token == "again" for token, _, _ in asked.answers))
            assert sum(token == "late" for token, _, _ in asked.answers) == 1
            assert channel.losses == 0

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_answers_that_nobody_asked_for_do_no_harm(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster, replace(QUICK, wire=wire)) as pool:
            ledger_id = await entry_in(cluster)
            channel, asked = pool.channel("a"), Asked([])
            channel.read(ledger_id, 0, asked, 0)
            await asked.wait(1)
            surplus: list[Response] = [
                ReadResponse(Status.NO_ENTRY, ledger_id, 0),
                AddResponse(Status.FENCED, ledger_id, 7),
                AddResponse(Status.OK, 77, 7),
            ]
            for number, response in enumerate(surplus):
                say(cluster["a"], encode_response(response) if wire == "v2" else v3.encode_response(response, 1 + number))
            await asyncio.sleep(0.02)
            channel.read(ledger_id, 0, asked, 1)
            await asked.wait(2)
            assert [response.status for _, response, _ in asked.answers if isinstance(response, ReadResponse)] == [Status.OK, Status.OK]
            assert channel.losses == 0

    run(main())


def test_an_answer_to_another_operation_under_the_same_number_is_nobodys() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster) as pool:
            ledger_id = await entry_in(cluster)
            channel, asked = pool.v3_channel("a"), Asked([])
            cluster["a"].when(ReadRequest, "hold")
            channel.read(ledger_id, 0, asked, "read")
            await eventually(lambda: bool(cluster["a"].held))
            number = cluster["a"].held[0][2]
            assert number is not None
            say(cluster["a"], v3.encode_response(ForceResponse(Status.OK, ledger_id), number))
            await asyncio.sleep(0.02)
            assert not asked.answers
            cluster["a"].release()
            await asked.wait(1)
            assert isinstance(asked.answers[0][1], ReadResponse)

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_a_connection_that_breaks_leaves_every_outcome_unknown(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster, replace(QUICK, wire=wire)) as pool:
            ledger_id = await entry_in(cluster)
            channel, asked = pool.channel("a"), Asked([])
            cluster["a"].when(ReadRequest, "hold")
            for entry_id in range(3):
                channel.read(ledger_id, entry_id, asked, entry_id)
            await eventually(lambda: len(cluster["a"].held) == 3)
            await cluster["a"].stop()
            await asked.wait(3)
            assert all(isinstance(error, ConnectionBroken) for _, _, error in asked.answers)
            assert channel.losses == 1
            channel.read(ledger_id, 0, asked, "refused")
            await asked.wait(4)
            error = asked.answers[3][2]
            assert isinstance(error, BookieUnavailable)
            assert not isinstance(error, ConnectionBroken), "it never was on the way"

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_a_bookie_that_closes_connections_at_once_is_tried_again(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster, replace(QUICK, wire=wire)) as pool:
            ledger_id = await entry_in(cluster)
            channel, asked = pool.channel("a"), Asked([])
            cluster["a"].is_starting = True
            for token in range(20):
                channel.read(ledger_id, 0, asked, token)
                await asked.wait(token + 1)
                await asyncio.sleep(0.004)
            assert all(isinstance(error, BookieUnavailable) for _, _, error in asked.answers)
            cluster["a"].is_starting = False
            while asked.answers[-1][2] is not None:
                channel.read(ledger_id, 0, asked, "now")
                await asked.wait(len(asked.answers) + 1)
            assert isinstance(asked.answers[-1][1], ReadResponse)

    run(main())


def test_a_connection_that_is_gone_before_it_is_used_does_not_block_the_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster) as pool:
            ledger_id = await entry_in(cluster)
            connect = type(cluster.host.network).connect

            async def too_late(*arguments: Any) -> Any:
                transport, protocol = await connect(*arguments)
                transport.abort()
                await asyncio.sleep(0.01)
                return transport, protocol

            monkeypatch.setattr(type(cluster.host.network), "connect", too_late)
            channel, asked = pool.channel("a"), Asked([])
            channel.read(ledger_id, 0, asked, 0)
            await asked.wait(1)
            assert isinstance(asked.answers[0][2], BookieUnavailable)
            monkeypatch.undo()
            while asked.answers[-1][2] is not None:
                channel.read(ledger_id, 0, asked, "now")
                await asked.wait(len(asked.answers) + 1)

    run(main())


def test_a_closed_pool_fails_its_waiters() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, pool_of(cluster) as pool:
            ledger_id = await entry_in(cluster)
            channel, asked = pool.v3_channel("a"), Asked([])
            cluster["a"].when(object, "drop")
            channel.call(ForceRequest(ledger_id), asked, "before")
            await asyncio.sleep(0.02)
            pool.close()
            channel.call(ForceRequest(ledger_id), asked, "after")
            await asked.wait(2)
            assert all(isinstance(error, BookieUnavailable) for _, _, error in asked.answers)
            with pytest.raises(HandleClosed):
                pool.v3_channel("a")

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_everything_works_over_either_version(wire: str) -> None:
    async def main() -> None:
        async with fake_cluster("abcd") as cluster, cluster.client(replace(QUICK, wire=wire)) as client:
            writer = await client.create()
            await writer.append_many([b"%d" % number for number in range(299)])
            await writer.append(b"299")
            reader = await client.open(writer.ledger_id)
            async with reader.tail() as tail:
                assert (await tail.next_entries(1))[0].payload == b"0"
            await cluster[writer.metadata.last_segment.ensemble[1]].stop()
            await writer.append(b"300")
            assert writer.ensemble_changes == 1
            recovered = await client.recover(writer.ledger_id)
            assert recovered.last_add_confirmed == 300
            assert [entry.payload for entry in await recovered.read(0, 300)] == [b"%d" % number for number in range(301)]
            with pytest.raises(LedgerFenced):
                await writer.append(b"too late")
            seen = [request for bookie in cluster.bookies.values() for request in bookie.seen if isinstance(request, AddRequest)]
            assert seen

    run(main())


def test_a_refusal_without_ids_ends_the_writers_of_that_connection() -> None:
    async def main() -> None:
        async with fake_cluster("abc") as cluster, cluster.client(replace(QUICK, wire="v3")) as client:
            writer = await client.create()
            await writer.append(b"x")
            for bookie in cluster.bookies.values():
                bookie.when(AddRequest, "drop")
            appending = asyncio.ensure_future(writer.append(b"y"))
            await asyncio.sleep(0.02)
            asked = v3.V3Request(99, None, v3.OperationType.ADD)
            for bookie in cluster.bookies.values():
                say(bookie, v3.encode_unauthenticated(asked))
            with pytest.raises(Unauthorized, match="authentication"):
                await appending

    run(main())


class Token:
    """Counts from a first token to a last."""

    plugin = "counting"

    def __init__(self, rounds: int = 2) -> None:
        self.rounds = rounds

    def first_token(self) -> bytes:
        return b"1"

    def answer(self, token: bytes) -> bytes | None:
        return None if int(token) >= self.rounds else b"%d" % (int(token) + 1)


@asynccontextmanager
async def guarded(wire: str, plugin: str = "counting", *, refuse: bool = False) -> AsyncIterator[tuple[FakeCluster, Client]]:
    async with fake_cluster("abc") as cluster:
        for bookie in cluster.bookies.values():
            bookie.plugin, bookie.refuses_tokens = plugin, refuse
        async with Client(cluster.host, cluster.metadata, replace(QUICK, wire=wire), authenticate=Token()) as client:
            yield cluster, client


@pytest.mark.parametrize("plugin", ["counting", v3.AUTH_DISABLED])
@pytest.mark.parametrize("wire", WIRES)
def test_a_connection_authenticates_before_anything_else_is_sent(wire: str, plugin: str) -> None:
    async def main() -> None:
        async with guarded(wire, plugin) as (cluster, client):
            async with await client.create() as writer:
                await writer.append(b"x")
            reader = await client.open(writer.ledger_id)
            assert (await reader.read(0, 0))[0].payload == b"x"
            expected = [b"1", b"2"] if plugin == "counting" else [b"1"]
            for bookie in cluster.bookies.values():
                # One of the three is not needed, and may not have come so far.
                while bookie.connections and len(bookie.tokens) < len(expected):
                    await asyncio.sleep(0.001)
                if bookie.connections:
                    assert bookie.tokens[: len(expected)] == expected

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_a_refused_token_says_so(wire: str) -> None:
    async def main() -> None:
        async with guarded(wire, refuse=True) as (_, client):
            writer = await client.create()
            with pytest.raises(ReadFailed, match="plugin 'counting'"):
                await client.open(writer.ledger_id)

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_a_bookie_that_never_answers_a_token_is_not_waited_for_forever(wire: str) -> None:
    async def main() -> None:
        async with guarded(wire, "silent") as (_, client):
            writer = await client.create()
            with pytest.raises(ReadFailed, match="no connection within"):
                await client.open(writer.ledger_id)

    run(main())


def test_channels_count_what_they_owe(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        monkeypatch.setattr("triplicate.client.connection.bookie_channel.MOST_REQUESTS", 2)
        async with fake_cluster("abc") as cluster, pool_of(cluster) as pool:
            channel: BookieChannel = pool.v3_channel("a")
            asked = Asked([])
            for token in range(3):
                channel.call(BookieInfoRequest(), asked, token)
            await asked.wait(3)
            assert [token for token, _, error in asked.answers if error is not None] == [2]
            channel.call(BookieInfoRequest(), asked, 3)
            await asked.wait(4)
            assert asked.answers[3][2] is None

    run(main())
