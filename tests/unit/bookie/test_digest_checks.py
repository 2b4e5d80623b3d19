"""A bookie never takes the last-add-confirmed from bytes that it knows, or could know, to be damaged."""

from __future__ import annotations

import asyncio

from tests.unit.bookie.bookie_rig import NAME, Rig, V3Client, run_rig
from triplicate.ledger import DigestType, EnsembleSegment, EntryCodec, LedgerMetadata, LedgerState
from triplicate.metadata import ClusterMetadata, MemoryTree
from triplicate.wire import AddRequest, AddResponse, ReadRequest, ReadResponse, Status, WriteLacRequest

FAR = (10**12).to_bytes(8, "big")
PAYLOAD = b"payload"


def entry(codec: EntryCodec, entry_id: int, *, damaged: bool = False) -> AddRequest:
    """An add; with `damaged` its header says that far more is confirmed than there is."""
    body = codec.encode(entry_id, entry_id - 1, (entry_id + 1) * len(PAYLOAD), PAYLOAD)
    if damaged:
        body = body[:16] + FAR + body[24:]
    return AddRequest(codec.ledger_id, entry_id, codec.master_key, body)


async def told(client: V3Client, ledger_id: int, entry_id: int) -> int | None:
    response = await client.read(ledger_id, entry_id)
    assert isinstance(response, ReadResponse)
    assert response.status is Status.OK
    return response.max_lac


async def added(client: V3Client, *requests: AddRequest) -> dict[int, Status]:
    client.send(*requests)
    answers = [await client.answer() for _ in requests]
    return {answer.entry_id: answer.status for answer in answers if isinstance(answer, AddResponse)}


def test_an_entry_that_is_refused_says_nothing_of_what_is_confirmed() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        client = await rig.connect_v3()
        assert await client.add(codec, 0) is Status.OK
        await asyncio.sleep(2.0)  # The bookie has read the metadata by now.
        statuses = await added(client, entry(codec, 1), entry(codec, 2, damaged=True), entry(codec, 3))
        assert statuses == {1: Status.OK, 2: Status.IO_ERROR, 3: Status.OK}
        assert await told(client, 5, 0) == 2

    run_rig(body)


def test_a_header_that_cannot_be_is_not_believed() -> None:
    async def body(rig: Rig) -> None:
        codec = EntryCodec(5, DigestType.CRC32C, b"")
        client = await rig.connect_v3()
        statuses = await added(client, *[entry(codec, entry_id, damaged=entry_id == 2) for entry_id in range(3)])
        assert set(statuses.values()) == {Status.OK}
        assert await told(client, 5, 0) == 0
        assert await told(client, 5, 2) == 0
        await rig.flushed()
        await rig.restart()
        client = await rig.connect_v3()
        assert (await told(client, 5, 2) or 0) <= 0

    run_rig(body, verify_on_write="off")


def test_a_record_of_what_is_confirmed_is_verified_where_the_digest_is_known() -> None:
    async def body(rig: Rig) -> None:
        codec = await rig.create_ledger(5)
        client = await rig.connect_v3()
        assert await client.add(codec, 0) is Status.OK
        await asyncio.sleep(2.0)
        record = codec.encode_lac(0)
        damaged = record[:8] + FAR + record[16:]
        answer = await client.ask(WriteLacRequest(5, 0, codec.master_key, damaged))
        assert answer.status is Status.IO_ERROR
        assert await told(client, 5, 0) == -1
        assert await client.write_lac(codec, 0) is Status.OK
        assert await told(client, 5, 0) == 0

    run_rig(body)


def test_a_record_of_what_is_confirmed_is_no_place_to_store_things() -> None:
    async def body(rig: Rig) -> None:
        codec = EntryCodec(5, DigestType.CRC32C, b"")
        client = await rig.connect_v3()
        long = codec.encode_lac(0) + bytes(100_000)
        answer = await client.ask(WriteLacRequest(5, 0, codec.master_key, long))
        assert answer.status is Status.BAD_REQUEST
        assert (await client.read_lac(5)).status is Status.NO_ENTRY

    run_rig(body)


def test_copies_made_of_confirmed_entries_are_served_and_say_nothing_more() -> None:
    async def body(rig: Rig) -> None:
        codec = EntryCodec(5, DigestType.CRC32C, b"")
        client = await rig.connect_v3()
        copy = AddRequest(5, 3, codec.master_key, codec.encode(3, 99, 28, PAYLOAD), recovery=True)
        assert await added(client, copy) == {3: Status.OK}
        await rig.flushed()
        await rig.restart()
        client = await rig.connect_v3()
        assert await told(client, 5, 3) == -1
        polled = await client.ask(ReadRequest(5, -1, previous_lac=-1, timeout_ms=50, piggyback=True))
        assert isinstance(polled, ReadResponse)
        assert (polled.status, polled.body, polled.max_lac) == (Status.OK, None, -1)

    run_rig(body)


def test_a_ledger_whose_metadata_names_no_digest_is_written_on() -> None:
    async def body(rig: Rig) -> None:
        metadata = await ClusterMetadata.open(MemoryTree(rig.cluster.store), rig.client_host.port)
        segments = (EnsembleSegment(0, (NAME,)),)
        oldest = LedgerMetadata(1, 1, 1, segments, LedgerState.OPEN, custom={}, format_version=1, credentials_stored=False)
        await metadata.ledgers.create(5, oldest)
        await metadata.aclose()
        client = await rig.connect()
        codec = EntryCodec(5, DigestType.HMAC, b"known to its users only")
        assert await client.add(codec, 0) is Status.OK
        await asyncio.sleep(2.0)  # The bookie has read the metadata by now.
        assert await client.add(codec, 1) is Status.OK

    run_rig(body)
