"""Adds of many ledgers in turn, as one writer process with many ledgers sends them: taken in one go, each by its own ledger's rules."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import RawClient, Rig, run_rig
from triplicate.bookie.server.dialects import V2Dialect
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import AddRequest, AddResponse, Request, Status

LEDGERS = range(1, 8)


def add(codec: EntryCodec, entry_id: int, payload: bytes = b"payload") -> AddRequest:
    return AddRequest(codec.ledger_id, entry_id, codec.master_key, codec.encode(entry_id, entry_id - 1, 1, payload))


async def ledgers(rig: Rig, client: RawClient) -> list[EntryCodec]:
    """Ledgers with entry 0, whose digests the bookie has found out, each type among them."""
    types = [DigestType.CRC32C, DigestType.CRC32, DigestType.HMAC, DigestType.DUMMY, *[DigestType.CRC32C] * len(LEDGERS)]
    codecs = [await rig.create_ledger(ledger_id, digest_type) for ledger_id, digest_type in zip(LEDGERS, types, strict=False)]
    for codec in codecs:
        assert await client.add(codec, 0) is Status.OK
    await asyncio.sleep(1)
    return codecs


async def send(client: RawClient, requests: list[Request]) -> dict[tuple[int, int], Status]:
    """All in one piece; returns status by ledger and entry."""
    client.send(*requests)
    found = {}
    for _ in requests:
        answer = await client.answer()
        assert isinstance(answer, AddResponse)
        found[answer.ledger_id, answer.entry_id] = answer.status
    assert len(found) == len(requests)
    return found


@pytest.mark.parametrize("journals", [1, 2])
def test_adds_of_alternating_ledgers_are_taken_in_one_go_and_survive(journals: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        codecs = await ledgers(rig, client)
        scans = 0
        scan = V2Dialect.scan_adds

        def counted(self: V2Dialect, *arguments: object) -> object:
            nonlocal scans
            scans += 1
            return scan(self, *arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(V2Dialect, "scan_adds", counted)
        wanted = [add(codec, entry_id, bytes([codec.ledger_id, entry_id])) for entry_id in range(1, 30) for codec in codecs]
        assert set((await send(client, list(wanted))).values()) == {Status.OK}
        assert scans < len(wanted) / 10
        await rig.restart()
        client = await rig.connect()
        for request in wanted:
            assert (await client.read(request.ledger_id, request.entry_id)).body == request.body
        for codec in codecs:
            assert (await client.read(codec.ledger_id, -1)).body == wanted[-len(codecs) + codec.ledger_id - 1].body

    run_rig(body, journal_directories=tuple(f"/journal-{number}" for number in range(journals)))


def test_among_alternating_ledgers_each_add_is_refused_for_its_own_reason() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        codecs = await ledgers(rig, client)
        await client.fence(codecs[1])
        requests: list[Request] = [add(codec, entry_id) for entry_id in range(1, 9) for codec in codecs]
        wrong = {}
        for ledger_id in (1, 3, 5):
            damaged = add(codecs[ledger_id - 1], 20)
            damaged.body = damaged.body[:-1] + b"?"
            wrong[ledger_id] = damaged.body
            requests.insert(9 * ledger_id, damaged)
        stranger = add(codecs[6], 21)
        stranger.master_key = bytes(20)
        requests.insert(30, stranger)
        expected = {}
        for request in requests:
            assert isinstance(request, AddRequest)
            expected[request.ledger_id, request.entry_id] = Status.FENCED if request.ledger_id == 2 else Status.OK
        expected |= {(ledger_id, 20): Status.IO_ERROR for ledger_id in wrong}
        expected[7, 21] = Status.UNAUTHORIZED
        assert await send(client, requests) == expected
        for request in requests:
            assert isinstance(request, AddRequest)
            stored = await client.read(request.ledger_id, request.entry_id)
            assert (stored.body == request.body) is (expected[request.ledger_id, request.entry_id] is Status.OK)
        assert len(rig.facts("bookie.digest_mismatch")) == len(wrong)

    run_rig(body)


def test_alternating_adds_are_refused_together_where_the_journal_has_no_space() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        codecs = await ledgers(rig, client)
        rig.disk.fill()
        requests: list[Request] = [add(codec, entry_id, b"x" * 5000) for entry_id in range(1, 30) for codec in codecs]
        statuses = set((await send(client, requests)).values())
        assert Status.IO_ERROR in statuses
        assert statuses <= {Status.OK, Status.IO_ERROR, Status.READ_ONLY}
        rig.disk.relieve()

    run_rig(body, reserve_bytes=0)


def test_an_add_of_alternating_ledgers_wakes_long_polls_for_its_last_add_confirmed() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect()
        codecs = await ledgers(rig, client)
        woken: list[bool] = []
        handle = rig.bookie.storage.ledgers.get(3)
        assert handle is not None
        handle.wake = woken.append
        await send(client, [add(codec, entry_id) for entry_id in (1, 2) for codec in codecs])
        handle.wake = None
        assert woken == [True, True]
        assert (handle.last_entry_id, handle.max_lac) == (2, 1)

    run_rig(body)
