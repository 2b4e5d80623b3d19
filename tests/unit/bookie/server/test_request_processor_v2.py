"""Answers of a bookie to raw v2 packets."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.waiting import eventually
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import (
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BatchReadRequest,
    ReadRequest,
    ReadResponse,
    Status,
    encode_request,
)

OTHER_KEY = b"?" * 20


def codec(ledger_id: int = 5) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


def test_an_unknown_ledger_is_no_ledger_and_a_missing_entry_no_entry() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert (await client.read(5, 0)).status is Status.NO_LEDGER
        assert (await client.read(5, -1)).status is Status.NO_LEDGER
        assert (await client.batch(5, 0)).status is Status.NO_LEDGER
        assert await client.add(codec(), 0) is Status.OK
        assert (await client.read(5, 1)).status is Status.NO_ENTRY
        assert (await client.read(5, 0)).status is Status.OK
        assert (await client.read(6, 0)).status is Status.NO_LEDGER

    run_rig(body)


def test_reading_entry_minus_one_gives_the_greatest_id_and_echoes_minus_one() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for entry_id in (0, 7, 3):
            assert await client.add(codec(), entry_id, b"%d" % entry_id) is Status.OK
        for _ in range(2):
            answer = await client.read(5, -1)
            assert answer.entry_id == -1
            assert answer.body is not None
            assert codec().decode(answer.body).entry_id == 7
            await rig.flushed() if rig.bookie.storage.cache.active else None

    run_rig(body)


def test_a_wrong_key_is_unauthorized_also_after_a_restart() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await client.add(codec(), 0)

        async def refused() -> None:
            entry = codec().encode(1, 0, 1, b"x")
            for request in (
                AddRequest(5, 1, OTHER_KEY, entry),
                AddRequest(5, 1, OTHER_KEY, entry, recovery=True),
                ReadRequest(5, -1, fence=True, master_key=OTHER_KEY),
                BatchReadRequest(5, 0, 1, 1, 100, fence=True, master_key=OTHER_KEY),
            ):
                answer = await client.ask(request)
                assert answer.status is Status.UNAUTHORIZED

        await refused()
        await rig.restart()
        client = await rig.connect()
        await refused()
        assert await client.add(codec(), 1) is Status.OK

    run_rig(body)


def test_a_wrong_key_does_not_create_a_ledger_and_a_right_one_does() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert (await client.ask(ReadRequest(9, -1, fence=True, master_key=OTHER_KEY))).status is Status.NO_ENTRY
        assert await client.add(codec(9), 0) is Status.UNAUTHORIZED

    run_rig(body)


def test_a_fenced_ledger_takes_only_the_adds_of_a_recovery() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await client.add(codec(), 0)
        answer = await client.fence(codec())
        assert answer.status is Status.OK
        assert answer.entry_id == -1
        assert await client.add(codec(), 1) is Status.FENCED
        assert await client.add(codec(), 1, recovery=True) is Status.OK
        assert (await client.read(5, 1)).status is Status.OK
        assert (await client.fence(codec(), 1)).status is Status.OK

    run_rig(body)


def test_a_fencing_read_of_an_unknown_ledger_answers_no_entry_and_fences_it_for_good() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert (await client.fence(codec(8))).status is Status.NO_ENTRY
        await rig.restart()
        client = await rig.connect()
        assert await client.add(codec(8), 0) is Status.FENCED
        assert (await client.read(8, 0)).status is Status.NO_ENTRY
        assert (await client.ask(ReadRequest(8, -1, fence=True, master_key=OTHER_KEY))).status is Status.UNAUTHORIZED

    for seed in range(4):
        run_rig(body, seed)


def test_an_add_between_two_others_and_a_fence_keeps_its_place() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        ledger = codec()

        def add(entry_id: int) -> AddRequest:
            return AddRequest(5, entry_id, ledger.master_key, ledger.encode(entry_id, -1, 1, b"x"))

        client.send(add(0), add(1), ReadRequest(5, 1, fence=True, master_key=ledger.master_key), add(2))
        answers = [await client.answer() for _ in range(4)]
        adds = {answer.entry_id: answer.status for answer in answers if isinstance(answer, AddResponse)}
        assert adds == {0: Status.OK, 1: Status.OK, 2: Status.FENCED}
        reads = [answer.status for answer in answers if isinstance(answer, ReadResponse)]
        assert reads == [Status.OK]

    run_rig(body)


def test_the_second_write_of_an_entry_is_acknowledged_and_the_newest_copy_is_read() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for payload in (b"old", b"new"):
            assert await client.add(codec(), 0, payload, recovery=True) is Status.OK
            body = (await client.read(5, 0)).body
            assert body is not None
            assert codec().decode(body).payload == payload
            await rig.flushed()
            body = (await client.read(5, 0)).body
            assert body is not None
            assert codec().decode(body).payload == payload

    run_rig(body)


def test_batch_reads_keep_to_count_and_bytes_and_always_give_the_first() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        for entry_id in range(6):
            await client.add(codec(), entry_id, b"x" * 100)
        size = codec().overhead + 100
        for _ in range(2):
            assert len((await client.batch(5, 0)).bodies) == 6
            assert len((await client.batch(5, 2, count=3)).bodies) == 3
            assert len((await client.batch(5, 0, size=36 + 2 * (size + 4))).bodies) == 2
            assert len((await client.batch(5, 0, size=1)).bodies) == 1
            assert (await client.batch(5, 6)).status is Status.NO_ENTRY
            assert (await client.batch(5, -1)).status is Status.BAD_REQUEST
            if rig.bookie.storage.cache.active:
                await rig.flushed()

    run_rig(body)


def test_negative_entry_ids_are_refused() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        entry = bytearray(codec().encode(0, -1, 1, b"x"))
        entry[8:16] = (-7).to_bytes(8, "big", signed=True)
        answer = await client.ask(AddRequest(5, -7, codec().master_key, bytes(entry)))
        assert answer.status is Status.BAD_REQUEST
        await client.add(codec(), 0)
        assert (await client.read(5, -2)).status is Status.BAD_REQUEST

    run_rig(body)


def test_authentication_is_answered_as_switched_off() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        assert await client.ask(AuthRequest("sasl", b"token")) == AuthResponse(Status.OK, "AuthDisabledPlugin", b"")

    run_rig(body)


@pytest.mark.parametrize(
    "packet",
    [
        b"\x00\x00\x00\x04\x02\x63\x00\x00",  # An unknown operation.
        b"\x7f\xff\xff\xff",  # A frame beyond every limit.
        b"\x00\x00\x00\x02\x02\x02",  # Too short for a header.
        b"\x00\x00\x00\x14\x02\x02\x00\x01" + bytes(16),  # A fencing read without its key.
    ],
)
def test_what_is_no_request_closes_the_connection_and_nothing_else(packet: bytes) -> None:
    async def body(rig: Rig) -> None:
        client, other = await rig.connect(), await rig.connect()
        client.send_bytes(packet)
        await eventually(lambda: client.closed)
        assert await other.add(codec(), 0) is Status.OK

    run_rig(body)


def test_a_version_beyond_two_is_answered_with_bad_version() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        frame = bytearray(encode_request(ReadRequest(5, 0)))
        frame[4] = 3
        client.send_bytes(bytes(frame))
        # The answer names the version that was asked for, as Apache's does.
        assert (await client.body(0)).hex() == "03020000" + "00000067" + "0000000000000005" + "0000000000000000"
        assert await client.add(codec(), 0) is Status.OK

    run_rig(body)


def test_a_wrong_digest_is_refused_named_and_not_stored() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(5)
        client = await rig.connect()
        assert await client.add(ledger, 0) is Status.OK
        await asyncio.sleep(1)
        good = [ledger.encode(entry_id, -1, 1, b"payload") for entry_id in range(1, 4)]
        bad = bytearray(good[1])
        bad[-1] ^= 1
        client.send(*[AddRequest(5, 1 + index, ledger.master_key, entry) for index, entry in enumerate([good[0], bytes(bad), good[2]])])
        answers = {}
        for _ in range(3):
            answer = await client.answer()
            assert isinstance(answer, AddResponse)
            answers[answer.entry_id] = answer.status
        assert answers == {1: Status.OK, 2: Status.IO_ERROR, 3: Status.OK}
        assert (await client.read(5, 2)).status is Status.NO_ENTRY
        assert (await client.read(5, 3)).body == good[2]
        (fact,) = rig.facts("bookie.digest_mismatch")
        assert dict(fact.facts)["entry_id"] == 2

    run_rig(body)


def test_a_wrong_digest_is_only_counted_where_the_setting_says_so() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(5)
        client = await rig.connect()
        await client.add(ledger, 0)
        await asyncio.sleep(1)
        bad = ledger.encode(1, 0, 1, b"payload")[:-1] + b"?"
        answer = await client.ask(AddRequest(5, 1, ledger.master_key, bad))
        assert answer.status is Status.OK
        assert len(rig.facts("bookie.digest_mismatch")) == 1

    run_rig(body, verify_on_write="count")


def test_reads_of_damaged_entry_logs_are_io_errors_never_no_entry() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await client.add(codec(), 0)
        await rig.flushed()
        # Everything behind the file header of the entry log: block header, table, sizes.
        (name,) = [name for name in rig.files("/data/ledgers/current") if name.endswith(".entries")]
        rig.disk.flip_bit(f"/data/ledgers/current/{name}", 4096 + 50)
        assert (await client.read(5, 0)).status is Status.IO_ERROR
        assert await client.add(codec(), 1) is Status.OK

    run_rig(body)


def test_a_ledger_whose_state_cannot_be_read_gets_an_io_error_and_others_are_served() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        stored = rig.bookie.storage.stored
        load = stored.load

        def broken(ledger_id: int) -> object:
            if ledger_id == 5:
                raise OSError(5, "the disk is broken")
            return load(ledger_id)

        stored.load = broken  # type: ignore[method-assign, assignment]
        assert await client.add(codec(5), 0) is Status.IO_ERROR
        assert (await client.read(5, 0)).status is Status.IO_ERROR
        assert await client.add(codec(6), 0) is Status.OK

    run_rig(body)


def test_a_reader_that_does_not_read_is_held_back_and_writers_are_not() -> None:
    async def body(rig: Rig) -> None:
        reader, writer = await rig.connect(), await rig.connect()
        await writer.add(codec(), 0, b"x" * 20_000)
        assert reader.transport is not None
        reader.transport.pause_reading()
        reader.send(*[ReadRequest(5, 0)] * 2_000)
        for entry_id in range(1, 30):
            assert await writer.add(codec(), entry_id) is Status.OK
        (held,) = [connection for connection in rig.bookie.connections if connection.holds]
        assert held._transport is not None
        assert held._transport.get_write_buffer_size() < 8 * 1024 * 1024
        reader.transport.resume_reading()
        for _ in range(2_000):
            answer = await reader.answer()
            assert isinstance(answer, ReadResponse)
            assert answer.status is Status.OK

    run_rig(body)


def test_adds_beyond_the_cache_are_held_back_and_all_answered() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        ledger = codec()
        frames = [AddRequest(5, entry_id, ledger.master_key, ledger.encode(entry_id, -1, 1, b"x" * 5_000)) for entry_id in range(200)]
        seen = set()
        for start in range(0, 200, 20):
            client.send(*frames[start : start + 20])
            for _ in range(20):
                answer = await client.answer()
                assert isinstance(answer, AddResponse)
                if answer.status is Status.OK:
                    seen.add(answer.entry_id)
                else:
                    assert answer.status is Status.TOO_MANY_REQUESTS
        assert len(seen) > 50
        assert rig.bookie.storage.flusher.flushes >= 2
        assert rig.bookie.storage.cache.size_bytes < 2 * 128 * 1024 + 300_000
        for entry_id in sorted(seen)[::20]:
            assert (await client.read(5, entry_id)).status is Status.OK

    run_rig(body)


def test_flushes_are_counted() -> None:
    async def body(rig: Rig) -> None:
        metrics = rig.bookie.parts.metrics
        client = await rig.connect()
        assert await client.add(codec(), 0, b"x" * 1000) is Status.OK
        await rig.bookie.storage.flush()
        assert metrics.flushes._value.get() == 1
        assert metrics.flush_bytes._value.get() > 1000

    run_rig(body, flush_interval_s=3600.0)
