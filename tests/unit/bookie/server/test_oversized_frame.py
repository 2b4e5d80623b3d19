"""Frames over the limit are refused by their ids, without being held in memory; beyond a second bound the connection is closed."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import RawClient, Rig, run_rig
from triplicate.config import BookieSettings
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import BOOKIE_FRAME_BYTES, AddRequest, AddResponse, ReadRequest, ReadResponse, Status, encode_request, v3

MIB = 1 << 20
LIMIT, EXCESS = 100_000, 50_000
V2_ENVELOPE = 4 + 4 + 20


def codec(digest_type: DigestType = DigestType.CRC32C) -> EntryCodec:
    return EntryCodec(5, digest_type, b"")


def add(entry_id: int, size: int, **flags: bool) -> AddRequest:
    """An add whose frame has this size over version 2."""
    payload = bytes(size - V2_ENVELOPE - codec().overhead)
    return AddRequest(5, entry_id, codec().master_key, codec().encode(entry_id, entry_id - 1, len(payload), payload), **flags)


async def answers(client: RawClient, count: int) -> list[AddResponse]:
    """Each answer once, in the order of the entries: a refusal need not wait for the syncs of the adds before it."""
    found = [await client.answer() for _ in range(count)]
    assert client.answers.empty()
    added = [answer for answer in found if isinstance(answer, AddResponse)]
    assert len(added) == count
    return sorted(added, key=lambda answer: answer.entry_id)


REFUSED = Status.UNAUTHORIZED


def test_the_default_limit_is_the_one_that_pulsar_ships() -> None:
    assert BookieSettings().frame_limit_bytes == BOOKIE_FRAME_BYTES == 5_253_120


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("digest_type", [DigestType.HMAC, DigestType.DUMMY])
def test_five_mebibytes_of_payload_fit_into_every_envelope(version: int, digest_type: DigestType) -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect() if version == 2 else await rig.connect_v3()
        ledger = codec(digest_type)
        payload = b"p" * (5 * MIB)
        flags: list[dict[str, bool]] = [{}, {"recovery": True, "high_priority": True}]
        if version == 3:
            flags += [{"deferred_sync": True}, {"deferred_sync": True, "recovery": True, "high_priority": True}]
        for entry_id, flag in enumerate(flags):
            assert await client.add(ledger, entry_id, payload, **flag) is Status.OK
        found = await client.read(5, len(flags) - 1)
        assert found.body is not None
        assert found.body.endswith(payload)

    run_rig(body, frame_limit_bytes=BookieSettings().frame_limit_bytes, write_cache_bytes=64 * MIB)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("size", [LIMIT + 1, LIMIT + EXCESS - 100])
@pytest.mark.parametrize("chunk", [7, 4096, 1 << 20])
def test_an_add_above_the_limit_is_refused_by_its_ids_and_the_connection_goes_on(version: int, size: int, chunk: int) -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect() if version == 2 else await rig.connect_v3()
        stream = b"".join(map(client.encode, (add(0, 500), add(1, size), add(2, 500), add(3, size), add(4, 500))))
        for start in range(0, len(stream), chunk):
            client.send_bytes(stream[start : start + chunk])
            if start % 1000 == 0:
                await asyncio.sleep(0.0001)
        expected = [AddResponse(REFUSED if entry_id % 2 else Status.OK, 5, entry_id) for entry_id in range(5)]
        assert await answers(client, 5) == expected
        assert not client.closed
        assert [(await client.read(5, entry_id)).status for entry_id in range(5)] == [Status.OK, Status.NO_ENTRY] * 2 + [Status.OK]
        refused = rig.facts("bookie.add_too_large")
        assert [dict(fact.facts)["entry_id"] for fact in refused] == [1, 3]

    run_rig(body, frame_limit_bytes=LIMIT, frame_excess_bytes=EXCESS)


def test_the_answer_of_version_3_carries_the_transaction() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        client.send(add(0, LIMIT + 10, deferred_sync=True), add(1, LIMIT + 10, recovery=True, high_priority=True))
        assert await answers(client, 2) == [AddResponse(REFUSED, 5, entry_id) for entry_id in range(2)]
        assert client.answered == client.txn_ids

    run_rig(body, frame_limit_bytes=LIMIT, frame_excess_bytes=EXCESS)


def test_a_frame_beyond_the_second_bound_closes() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        client.send(add(0, 500), add(1, LIMIT + EXCESS + 1))
        await client.until_closed()
        assert (await (await rig.connect()).read(5, 1)).status is Status.NO_ENTRY

    run_rig(body, frame_limit_bytes=LIMIT, frame_excess_bytes=EXCESS)


@pytest.mark.parametrize("version", [2, 3])
def test_a_large_frame_that_is_no_add_closes(version: int) -> None:
    async def body(rig: Rig) -> None:
        client, other = await rig.connect(), await rig.connect_v3()
        read = encode_request(ReadRequest(5, 0)) if version == 2 else v3.encode_request(ReadRequest(5, 0), 1)
        client.send_bytes((LIMIT + 10).to_bytes(4, "big") + read[4:] + bytes(1000))
        await client.until_closed()
        assert client.bodies == []
        assert await other.add(codec(), 0) is Status.OK

    run_rig(body, frame_limit_bytes=LIMIT, frame_excess_bytes=EXCESS)


def test_a_refused_frame_is_not_held_in_memory() -> None:
    async def body(rig: Rig) -> None:
        limit = rig.bookie.settings.frame_limit_bytes
        client = await rig.connect()
        frame = encode_request(add(0, limit + 4 * MIB))
        most = 0
        for start in range(0, len(frame), 65536):
            client.send_bytes(frame[start : start + 65536])
            await asyncio.sleep(0.01)
            most = max(most, rig.bookie.connections.frames.held_bytes, rig.bookie.connections.frames.reserved_bytes)
        assert await answers(client, 1) == [AddResponse(REFUSED, 5, 0)]
        assert most <= 65536

    run_rig(body, frame_limit_bytes=MIB, frame_excess_bytes=5 * MIB)


def test_a_frame_that_arrives_while_its_connection_is_held_is_not_gathered() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        # The read makes the connection wait for the ledger's state, with the beginning of the large frame behind it.
        client.send_bytes(encode_request(ReadRequest(77, 0)) + encode_request(add(1, LIMIT + EXCESS))[:1000])
        assert isinstance(await client.answer(), ReadResponse)
        assert await answers(client, 1) == [AddResponse(REFUSED, 5, 1)]
        client.send_bytes(encode_request(add(1, LIMIT + EXCESS))[1000:])
        assert await client.add(codec(), 2) is Status.OK

    run_rig(body, frame_limit_bytes=LIMIT, frame_excess_bytes=EXCESS)
