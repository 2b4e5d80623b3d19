"""Invalid requests are answered, or their connection closed, as Apache's bookie does; other connections do not notice."""

from __future__ import annotations

import asyncio
import random

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import BOOKIE_FRAME_BYTES, AddRequest, ReadRequest, ReadResponse, Status, encode_request, v3

MIB = 1024 * 1024


def codec(ledger_id: int = 5) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def v3_frame(operation: int, part: bytes, version: int = 3, txn_id: int = 9) -> bytes:
    return framed(b"\x0a\x06\x08" + bytes([version]) + b"\x10" + bytes([operation]) + b"\x18" + bytes([txn_id]) + part)


READ_PART = b"\xa2\x06\x04\x08\x05\x10\x00"


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(framed(b""), id="an empty frame"),
        pytest.param(framed(b"\x0a"), id="version 3, cut in its first field"),
        pytest.param(framed(b"\x0a\x06\x08\x03\x10\x01"), id="version 3, cut in its header"),
        pytest.param(framed(b"\x0a\x04\x08\x03\x10\x01"), id="version 3 without a transaction"),
        pytest.param(framed(b"\x0a\x06\x08\x03\x10\x01\x18\x09\xa2\x06\x02\x08\x05"), id="a read without an entry id"),
        pytest.param(framed(b"\x0a\x06\x08\x03\x10\x01\x18\x09\xa2\x06\x7f\x08\x05"), id="a part that ends behind the frame"),
        pytest.param(framed(b"\x0a" + b"\xff" * 40), id="garbage after a good tag"),
        pytest.param(framed(bytes(64)), id="zeros"),
        pytest.param(framed(b"\xff" * 64), id="ones"),
        pytest.param(b"\xff\xff\xff\xff", id="a negative length"),
        pytest.param((BOOKIE_FRAME_BYTES - 3).to_bytes(4, "big") + bytes(8), id="one byte over the limit, and no add"),
        pytest.param(framed(b"\x02\x04\x00\x00" + bytes(16)), id="an operation of version 3 over version 2"),
        pytest.param(framed(b"\x02\x01\x00\x00" + bytes(30)), id="an add shorter than its header"),
        pytest.param(framed(b"\x02\x07\x00\x00" + bytes(20)), id="a batch read cut short"),
        pytest.param(framed(b"\x02\x07\x00\x01" + bytes(36)), id="a fencing batch read without its key"),
        pytest.param(framed(b"\x02\x03\x00\x00\xff\xff"), id="an authentication packet that is no message"),
        pytest.param(v3_frame(13, b""), id="an operation that version 3 does not have"),
        pytest.param(v3_frame(0, b""), id="operation 0"),
        pytest.param(v3_frame(1, READ_PART, 7), id="a version that there is not"),
        pytest.param(v3_frame(1, b""), id="a read without its part"),
        pytest.param(v3_frame(2, b""), id="an add without its part"),
        pytest.param(v3_frame(10, b""), id="a force without its part"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: bookie\r\n\r\n", id="another protocol"),
    ],
)
def test_what_no_version_understands_closes_its_connection_alone(frame: bytes) -> None:
    async def body(rig: Rig) -> None:
        client, other = await rig.connect(), await rig.connect_v3()
        client.send_bytes(frame)
        await client.until_closed()
        assert client.bodies == []
        assert await other.add(codec(), 0) is Status.OK
        assert await (await rig.connect()).add(codec(), 1) is Status.OK

    run_rig(body)


def test_the_greatest_frame_is_served_and_one_byte_more_closes_without_an_excess() -> None:
    async def body(rig: Rig) -> None:
        client, greater = await rig.connect(), await rig.connect()
        ledger = codec()
        room = 100_000 - 4 - 4 - 20 - ledger.overhead
        assert await client.add(ledger, 0, b"x" * room) is Status.OK
        greater.send(AddRequest(5, 1, ledger.master_key, ledger.encode(1, 0, 1, b"x" * (room + 1))))
        await greater.until_closed()
        assert (await client.read(5, 1)).status is Status.NO_ENTRY

    run_rig(body, frame_limit_bytes=100_000, frame_excess_bytes=0)


def test_an_unknown_operation_of_version_3_is_a_bad_request_with_a_status_alone() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        client.take = lambda body: None  # type: ignore[method-assign]
        for number, operation in enumerate((3, 4, 12)):
            client.send_bytes(v3_frame(operation, READ_PART))
            assert (await client.body(number)).hex() == f"0a06080310{operation:02x}1809" + "109403"
        assert not client.closed

    run_rig(body)


def test_operations_that_need_no_part_are_answered_without() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        for operation, status in ((5, Status.OK), (8, Status.OK), (9, Status.BAD_REQUEST)):
            for version in (1, 3):
                client.send_bytes(v3_frame(operation, b"", version))
                assert (await client.answer()).status is status
        old = await rig.connect()
        # A token of version 5 is answered in version 2.
        old.send_bytes(framed(b"\x05\x03\x00\x00\x0a\x01x\x12\x00"))
        assert (await old.body(0)).hex() == "020300000a12" + b"AuthDisabledPlugin".hex() + "1200"

    run_rig(body)


def test_another_version_in_the_header_is_a_bad_version_with_ids() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        for version in (1, 2):
            client.send_bytes(v3_frame(1, READ_PART, version))
            answer = await client.answer()
            assert isinstance(answer, ReadResponse)
            assert (answer.status, answer.ledger_id, answer.entry_id) == (Status.BAD_VERSION, 5, 0)
        add = bytearray(v3.encode_request(AddRequest(5, 0, codec().master_key, codec().encode(0, -1, 1, b"x")), 9))
        add[7] = 2
        client.send_bytes(bytes(add))
        assert (await client.answer()).status is Status.BAD_VERSION
        assert (await client.read(5, 0)).status is Status.NO_LEDGER

    run_rig(body)


def test_unknown_flags_and_fields_are_passed_over() -> None:
    async def body(rig: Rig) -> None:
        old, new = await rig.connect(), await rig.connect_v3()
        await old.add(codec(), 0)
        frame = bytearray(encode_request(ReadRequest(5, 0)))
        frame[6:8] = b"\xff\xf8"
        old.send_bytes(bytes(frame))
        assert (await old.answer()).status is Status.OK
        # Flag 77, and a field 15 that nobody knows.
        new.send_bytes(v3_frame(1, b"\xa2\x06\x09\x08\x05\x10\x00\xa0\x06\x4d\x78\x01"))
        assert (await new.answer()).status is Status.OK

    run_rig(body)


def test_ids_that_cannot_be_are_no_ledger_or_bad_requests() -> None:
    async def body(rig: Rig) -> None:
        for client in (await rig.connect(), await rig.connect_v3()):
            for ledger_id, entry_id in ((-1, 0), (-(2**63), 0), (-7, -1)):
                answer = await client.ask(ReadRequest(ledger_id, entry_id))
                assert answer.status is Status.NO_LEDGER
                answer = await client.ask(ReadRequest(ledger_id, entry_id, fence=True, master_key=codec().master_key))
                assert answer.status is Status.BAD_REQUEST
            assert (await client.ask(ReadRequest(5, -2))).status is Status.BAD_REQUEST
            for ledger_id, entry_id in ((-3, 0), (5, -1)):
                entry = bytearray(codec().encode(0, -1, 1, b"x"))
                entry[:8] = ledger_id.to_bytes(8, "big", signed=True)
                entry[8:16] = entry_id.to_bytes(8, "big", signed=True)
                answer = await client.ask(AddRequest(ledger_id, entry_id, codec().master_key, bytes(entry)))
                assert answer.status is Status.BAD_REQUEST
            assert await client.add(codec(), 0) is Status.OK
            assert (await client.read(5, 2**63 - 1)).status is Status.NO_ENTRY

    run_rig(body)


def test_an_add_whose_ids_are_not_its_entrys_is_a_bad_request_and_stores_nothing() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        frame = v3.encode_request(AddRequest(5, 7, codec().master_key, codec().encode(7, -1, 1, b"x")), 9)
        inner = frame.index(b"\x10\x07\x1a")
        client.send_bytes(frame[: inner + 1] + b"\x08" + frame[inner + 2 :])
        assert (await client.answer()).status is Status.BAD_REQUEST
        for entry_id in (7, 8):
            assert (await client.read(5, entry_id)).status is Status.NO_LEDGER

    run_rig(body)


def test_a_key_of_another_length_is_unauthorized() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        frame = v3.encode_request(AddRequest(5, 0, b"k" * 20, codec().encode(0, -1, 1, b"x")), 9)
        short = bytearray(frame.replace(b"\x1a\x14" + b"k" * 20, b"\x1a\x13" + b"k" * 19))
        short[:4] = (len(short) - 4).to_bytes(4, "big")
        short[14] -= 1
        client.send_bytes(bytes(short))
        assert (await client.answer()).status is Status.UNAUTHORIZED
        assert (await client.read(5, 0)).status is Status.NO_LEDGER

    run_rig(body)


def test_a_connection_speaks_version_3_until_it_sends_something_older_and_then_never_again() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        client.send_bytes(v3.encode_request(AddRequest(5, 0, codec().master_key, codec().encode(0, -1, 1, b"x")), 9))
        assert v3.decode_response(await client.body(0))[1].status is Status.OK
        assert await client.add(codec(), 1) is Status.OK
        assert (await client.read(5, 0)).status is Status.OK
        client.send_bytes(v3.encode_request(ReadRequest(5, 0), 9))
        await client.until_closed()

    run_rig(body)


def test_an_answer_is_of_the_version_of_its_request_also_when_the_connection_has_changed() -> None:
    async def body(rig: Rig) -> None:
        client, writer = await rig.connect(), await rig.connect()
        await writer.add(codec(), 0)
        client.send_bytes(v3.encode_request(ReadRequest(5, -1, previous_lac=-1, timeout_ms=9000, piggyback=True), 9))
        await asyncio.sleep(0.1)
        assert (await client.read(5, 0)).status is Status.OK
        await writer.add(codec(), 1)
        txn_id, answer = v3.decode_response(await client.body(1))
        assert (txn_id, answer.status) == (9, Status.OK)

    run_rig(body)


@pytest.mark.parametrize("version", [0, 1])
def test_older_versions_are_answered_in_their_own(version: int) -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        await client.add(codec(), 0)
        word = {0: b"\x00\x00\x00\x02", 1: b"\x01\x02\x00\x00"}[version]
        client.send_bytes(framed(word + bytes(7) + b"\x05" + bytes(8)))
        answer = await client.body(1)
        assert answer[:8] == word + bytes(4)
        assert codec().decode(answer[24:], 0).payload == b"payload"
        if version == 1:
            # The flag is there, and no room for a key.
            client.send_bytes(framed(b"\x01\x02\x00\x01" + bytes(7) + b"\x05" + bytes(8)))
            assert (await client.body(2))[:8].hex() == "0102000000000066"

    run_rig(body)


def held_bytes(rig: Rig) -> int:
    """The bytes that the bookie holds for its connections."""
    total = 0
    for connection in rig.bookie.connections:
        total += connection.frame_held
        if connection._transport is not None:
            total += connection._transport.get_write_buffer_size()
    return total


@pytest.mark.parametrize("kind", ["tiny v3", "tiny v2", "authentication", "half frames"])
def test_a_flood_of_small_frames_is_served_in_bounded_memory_and_others_have_their_turn(kind: str) -> None:
    async def body(rig: Rig) -> None:
        client, other = await rig.connect(), await rig.connect()
        await other.add(codec(), 0)
        frame = {
            "tiny v3": v3_frame(12, b""),
            "tiny v2": encode_request(ReadRequest(5, 7)),
            "authentication": framed(b"\x02\x03\x00\x00\x0a\x01x\x12\x00"),
            "half frames": encode_request(ReadRequest(5, 7)) * 3 + b"\x00\x00\x00",
        }[kind]
        chunk = frame if kind == "half frames" else frame * 5_000
        most, slowest = 0, 0.0
        for _ in range(10):
            client.send_bytes(chunk)
            begun = asyncio.get_running_loop().time()
            assert (await other.read(5, 0)).status is Status.OK
            slowest = max(slowest, asyncio.get_running_loop().time() - begun)
            most = max(most, held_bytes(rig))
        assert most < 8 * MIB
        assert slowest < 1.0

    run_rig(body)


@pytest.mark.parametrize("seed", range(20))
def test_damaged_requests_never_harm_what_others_stored(seed: int) -> None:
    async def body(rig: Rig) -> None:
        entropy = random.Random(seed)
        keeper = await rig.connect_v3()
        assert await keeper.add(codec(), 0, b"kept") is Status.OK
        key = b"?" * 20
        good = [
            encode_request(ReadRequest(5, 0)),
            encode_request(AddRequest(6, 0, key, codec(6).encode(0, -1, 1, b"x" * 30))),
            v3.encode_request(ReadRequest(5, 0), 1),
            v3.encode_request(ReadRequest(5, -1, previous_lac=0, timeout_ms=50, piggyback=True), 2),
            v3.encode_request(AddRequest(6, 0, key, codec(6).encode(0, -1, 1, b"x" * 30), deferred_sync=True), 3),
        ]
        for _ in range(30):
            client = await rig.connect()
            client.take = lambda body: None  # type: ignore[method-assign]
            data = bytearray(b"".join(entropy.choices(good, k=4)))
            for _ in range(entropy.randint(1, 6)):
                kind, at = entropy.randrange(3), entropy.randrange(len(data))
                if kind == 0:
                    data[at] = entropy.randrange(256)
                elif kind == 1:
                    del data[at : at + entropy.randint(1, 9)]
                else:
                    data[at:at] = entropy.randbytes(entropy.randint(1, 9))
            client.send_bytes(bytes(data))
            await asyncio.sleep(0.002)
        answer = await keeper.read(5, 0)
        assert answer.body is not None
        assert codec().decode(answer.body, 0).payload == b"kept"
        assert await keeper.add(codec(), 1) is Status.OK

    run_rig(body, seed)
