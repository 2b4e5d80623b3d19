"""Answers of a bookie over version 3, operation by operation; adds and reads also over version 2 beside it."""

from __future__ import annotations

import asyncio
import dataclasses
import random

import pytest

from tests.unit.bookie.bookie_rig import Rig, V3Client, run_rig
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import (
    AddRequest,
    AddResponse,
    AuthRequest,
    AuthResponse,
    BookieInfoRequest,
    BookieInfoResponse,
    ForceRequest,
    ListEntriesRequest,
    ReadLacRequest,
    ReadLacResponse,
    ReadRequest,
    ReadResponse,
    Request,
    StartTlsRequest,
    Status,
    WriteLacRequest,
    v3,
)

OTHER_KEY = b"?" * 20
KEY = "8fe7b8ccb0e53e331652fa2889c719498da9c17b"
ENTRY = "000000000000303900000000000000070000000000000006000000000000003a7f74640168656c6c6f20626f6f6b6b6565706572"
LAC_RECORD = "0000000000003039000000000000000624b2e169"


def codec(ledger_id: int = 5) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


async def raw(client: V3Client, request: str) -> str:
    """The body that answers a frame, both in hexadecimal digits."""
    seen = len(client.bodies)
    client.send_bytes(bytes.fromhex(request))
    return (await client.body(seen)).hex()


def test_the_vectors_of_the_protocol_are_answered_to_the_byte() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        add = f"0000005c0a06080310021801aa065108b96010071a14{KEY}2234{ENTRY}"
        assert await raw(client, add) == "0a060803100218011000aa0607080010b9601807"
        read = "000000100a06080310011803a2060508b9601007"
        assert await raw(client, read) == f"0a060803100118031000a2063f080010b96018072234{ENTRY}2806"
        # The known last add confirmed is 6, so a poll that knows 6 waits a second and hears of nothing new; one that knows 5 gets entry 6.
        poll = "000000210a06080310011806a2061608b96010ffffffffffffffffff01200628e807a00602"
        assert await raw(client, poll) == "0a060803100118061000a20612080010b96018ffffffffffffffffff012806"
        assert await raw(client, "0000000e0a06080310071807c2060308b960") == f"0a060803100718071000c2063b080010b9602234{ENTRY}"
        write_lac = f"0000003c0a06080310061808ba063108b96010061a14{KEY}2214{LAC_RECORD}"
        assert await raw(client, write_lac) == "0a060803100618081000ba0605080010b960"
        assert (
            await raw(client, "0000000e0a06080310071807c2060308b960") == f"0a060803100718071000c20651080010b9601a14{LAC_RECORD}2234{ENTRY}"
        )
        fencing = f"000000320a06080310011804a2062708b96010ffffffffffffffffff011a14{KEY}a00601"
        assert await raw(client, fencing) == f"0a060803100118041000a20646080010b96018ffffffffffffffffff012234{ENTRY}"
        assert await raw(client, add) == "0a0608031002180110f803aa060808f80310b9601807"
        # Of an entry that is not there, with a transaction of three; fencing, in a recovery, with a priority.
        missing = "000000100a06080310011803a2060508b9601008"
        assert await raw(client, missing) == "0a060803100118031093" + "03a2060808930310b9601808"
        recovery = f"0000002b0a080803100118052064a2061e08b96010071a14{KEY}a00601"
        assert await raw(client, recovery) == f"0a060803100118051000a2063d080010b96018072234{ENTRY}"

    run_rig(body)


def test_adds_and_reads_travel_between_the_versions() -> None:
    async def body(rig: Rig) -> None:
        old, new = await rig.connect(), await rig.connect_v3()
        assert await old.add(codec(), 0, b"old") is Status.OK
        assert await new.add(codec(), 1, b"new") is Status.OK
        for _ in range(2):
            for entry_id, payload in ((0, b"old"), (1, b"new")):
                for client in (old, new):
                    answer = await client.read(5, entry_id)
                    assert answer.body is not None
                    assert codec().decode(answer.body, entry_id).payload == payload
            await rig.restart()
            old, new = await rig.connect(), await rig.connect_v3()

    run_rig(body)


def test_many_adds_of_several_ledgers_and_kinds_are_answered_each_with_its_transaction() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        requests = []
        for number in range(300):
            ledger = codec(5 + number % 2 if number < 40 else 7)
            entry = ledger.encode(number, -1, 1, b"x" * (number % 5))
            requests.append(
                AddRequest(
                    ledger.ledger_id,
                    number,
                    ledger.master_key,
                    entry,
                    recovery=number % 7 == 0,
                    high_priority=number % 11 == 0,
                    deferred_sync=number % 3 == 0,
                )
            )
        client.send(*requests)
        got: dict[int, tuple[Status, int, int]] = {}
        for _ in requests:
            answer = await client.answer()
            assert isinstance(answer, AddResponse)
            got[client.answered[len(got)]] = (answer.status, answer.ledger_id, answer.entry_id)
        assert got == {
            txn_id: (Status.OK, request.ledger_id, request.entry_id) for txn_id, request in zip(client.txn_ids, requests, strict=True)
        }
        await rig.restart()
        client = await rig.connect_v3()
        for request in requests:
            if not request.deferred_sync:
                assert (await client.read(request.ledger_id, request.entry_id)).body == request.body

    run_rig(body)


@pytest.mark.parametrize("seed", range(6))
def test_requests_cut_anywhere_are_all_answered(seed: int) -> None:
    async def body(rig: Rig) -> None:
        entropy = random.Random(seed)
        client = await rig.connect_v3()
        data = b""
        for number in range(60):
            add = AddRequest(5, number, codec().master_key, codec().encode(number, number - 1, 1, b"x" * entropy.randrange(300)))
            others: list[Request] = [ReadRequest(5, number), ForceRequest(5), ReadLacRequest(5), ReadRequest(6, 0), add]
            data += client.encode(add) + client.encode(entropy.choice(others))
        while data:
            size = entropy.choice((1, 2, 3, 7, 50, 400, 3000))
            client.send_bytes(data[:size])
            data = data[size:]
            await asyncio.sleep(entropy.choice((0.0, 0.0005)))
        for _ in client.txn_ids:
            assert (await client.answer()).status in (Status.OK, Status.NO_LEDGER, Status.NO_ENTRY)
        assert sorted(client.answered) == client.txn_ids
        for number in range(60):
            assert (await client.read(5, number)).status is Status.OK

    run_rig(body, seed)


def test_an_add_written_in_an_unusual_way_is_taken_too() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        frame = v3.encode_request(AddRequest(5, 3, codec().master_key, codec().encode(3, 2, 1, b"x")), 9)
        # The envelope's header last: any order is right.
        moved = frame[4 + 8 :] + frame[4 : 4 + 8]
        client.send_bytes(frame[:4] + moved)
        assert await client.answer() == AddResponse(Status.OK, 5, 3)
        assert client.answered == [9]
        assert (await client.read(5, 3)).status is Status.OK

    run_rig(body)


def test_plain_reads_carry_the_last_add_confirmed_and_fencing_reads_do_not() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        for entry_id in range(5):
            await client.add(codec(), entry_id)
        for _ in range(2):
            assert (await client.read(5, 0)).max_lac == 3
            assert (await client.read(5, -1)).max_lac == 3
            assert (await client.read(5, 9)).max_lac is None
            await rig.flushed() if rig.bookie.storage.cache.active else None
            await rig.restart()
            client = await rig.connect_v3()
        assert await client.write_lac(codec(), 4) is Status.OK
        assert (await client.read(5, 0)).max_lac == 4
        assert (await client.fence(codec(), 0)).max_lac is None
        assert (await client.read(5, 0)).max_lac == 4

    run_rig(body)


def test_a_fencing_read_without_a_key_or_with_another_is_unauthorized_and_fences_nothing() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        await client.add(codec(), 0)
        # READ of ledger 5, entry -1, flag FENCE_LEDGER, no key.
        answer = await raw(client, "0000001b0a06080310011804a20610080510ffffffffffffffffff01a00601")
        assert answer == "0a0608031001180410f603a2061008f603100518ffffffffffffffffff01"
        await client.answer()
        assert (await client.ask(ReadRequest(5, -1, fence=True, master_key=OTHER_KEY))).status is Status.UNAUTHORIZED
        assert await client.add(codec(), 1) is Status.OK

    run_rig(body)


def test_an_explicit_last_add_confirmed_is_kept_as_it_came() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        ledger = codec()
        assert await client.write_lac(ledger, 3) is Status.OK
        # The ledger exists from now on, with this key, and has no entries.
        assert (await client.ask(WriteLacRequest(5, 4, OTHER_KEY, ledger.encode_lac(4)))).status is Status.UNAUTHORIZED
        assert await client.read_lac(5) == ReadLacResponse(Status.OK, 5, ledger.encode_lac(3), None)
        await client.add(ledger, 0)
        assert (await client.fence(ledger)).status is Status.OK
        assert await client.write_lac(ledger, 7) is Status.OK
        for _ in range(3):
            found = await client.read_lac(5)
            assert found.status is Status.OK
            assert found.lac_body == ledger.encode_lac(7)
            assert found.last_entry_body is not None
            assert (await client.read(5, -1)).max_lac == 7
            await rig.flushed() if rig.bookie.storage.cache.active else None
            await rig.restart()
            client = await rig.connect_v3()

    run_rig(body)


def test_an_acknowledged_explicit_last_add_confirmed_survives_a_power_loss() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        for lac in range(1, 6):
            assert await client.write_lac(codec(), lac) is Status.OK
        await rig.restart()
        assert (await (await rig.connect_v3()).read_lac(5)).lac_body == codec().encode_lac(5)

    for seed in range(4):
        run_rig(body, seed, flush_interval_s=100.0)


def test_the_last_add_confirmed_of_nothing_is_no_entry_and_of_damage_an_io_error() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        assert await client.read_lac(5) == ReadLacResponse(Status.NO_ENTRY, 5)
        await client.fence(codec())
        assert await client.read_lac(5) == ReadLacResponse(Status.NO_ENTRY, 5)
        await client.add(codec(), 0, recovery=True)
        await client.write_lac(codec(), 0)
        await rig.flushed()
        (name,) = [name for name in rig.files("/data/ledgers/current") if name.endswith(".entries")]
        rig.disk.flip_bit(f"/data/ledgers/current/{name}", 4096 + 50)
        assert await client.read_lac(5) == ReadLacResponse(Status.IO_ERROR, 5, codec().encode_lac(0), None)

    run_rig(body)


def test_a_record_of_another_ledger_or_cut_short_is_a_bad_request() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        for record in (codec(6).encode_lac(1), codec().encode_lac(1)[:12]):
            frame = bytearray(v3.encode_request(WriteLacRequest(5, 1, codec().master_key, codec().encode_lac(1)), 1))
            at = frame.index(codec().encode_lac(1))
            tail = b"\x22" + bytes([len(record)]) + record
            whole = frame[: at - 2] + tail
            inner = len(whole) - frame.index(b"\xba\x06") - 3
            whole[frame.index(b"\xba\x06") + 2] = inner
            whole[:4] = (len(whole) - 4).to_bytes(4, "big")
            client.send_bytes(bytes(whole))
            assert (await client.answer()).status is Status.BAD_REQUEST
        assert (await client.read_lac(5)).status is Status.NO_ENTRY

    run_rig(body)


def test_the_list_of_entries_knows_cache_and_index_gaps_and_overlaps() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        assert (await client.ask(ListEntriesRequest(5))).status is Status.NO_LEDGER
        await client.fence(codec(8))
        assert await client.entries(8) == []
        for entry_id in (0, 1, 2, 5, 7):
            await client.add(codec(), entry_id)
        assert await client.entries(5) == [range(3), range(5, 6), range(7, 8)]
        await rig.flushed()
        assert await client.entries(5) == [range(3), range(5, 6), range(7, 8)]
        for entry_id in (2, 3, 4, 6, 20):
            await client.add(codec(), entry_id)
        assert await client.entries(5) == [range(8), range(20, 21)]
        await rig.flushed()
        assert await client.entries(5) == [range(8), range(20, 21)]

    run_rig(body, flush_interval_s=0.5)


def test_information_about_the_bookie_always_has_both_figures() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        for requested in (1, 2, 3, 0):
            answer = await client.ask(BookieInfoRequest(requested))
            assert isinstance(answer, BookieInfoResponse)
            assert answer.status is Status.OK
            assert answer.total_bytes is not None
            assert answer.free_bytes is not None
            assert 0 < answer.free_bytes <= answer.total_bytes

    run_rig(body)


def test_authentication_and_tls_are_answered_as_switched_off() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        assert await client.ask(AuthRequest("sasl", b"token")) == AuthResponse(Status.OK, "AuthDisabledPlugin", b"")
        assert await raw(client, "0000000b0a06080310091801d20600") == "0a0608031009180110" + "9403"
        await client.answer()
        assert (await client.ask(StartTlsRequest())).status is Status.BAD_REQUEST

    run_rig(body)


def test_a_force_of_an_unknown_ledger_succeeds() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        assert await client.force(77) is Status.OK
        assert (await client.read(77, 0)).status is Status.NO_LEDGER

    run_rig(body)


def test_a_read_only_bookie_refuses_writes_but_no_reads_fences_forces_and_recoveries() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        await client.add(codec(), 0)
        rig.disk.total_bytes = int(rig.disk.used_bytes() * 1.04)
        await asyncio.sleep(1)
        assert rig.bookie.read_only
        assert await client.add(codec(), 1) is Status.READ_ONLY
        assert await client.add(codec(), 1, deferred_sync=True) is Status.READ_ONLY
        assert await client.add(codec(), 1, recovery=True) is Status.READ_ONLY
        assert await client.add(codec(), 1, recovery=True, high_priority=True) is Status.OK
        assert await client.add(codec(), 2, high_priority=True) is Status.OK
        assert await client.write_lac(codec(), 1) is Status.READ_ONLY
        assert await client.force(5) is Status.OK
        assert (await client.read(5, 0)).status is Status.OK
        assert (await client.fence(codec())).status is Status.OK
        assert await client.add(codec(), 3, high_priority=True) is Status.FENCED

    run_rig(body, disk_check_interval_s=0.2, recovery_adds_free_bytes=1000, journal_preallocate_bytes=4 << 20, journal_file_bytes=8 << 20)


@pytest.mark.parametrize("older", [False, True])
def test_a_ledger_whose_entries_may_be_missing_is_unknown_never_a_no(older: bool) -> None:
    async def body(rig: Rig) -> None:
        old, new = await rig.connect(), await rig.connect_v3()
        assert (await new.fence(codec())).status is Status.NO_ENTRY
        handle = rig.bookie.storage.ledgers.get(5)
        assert handle is not None
        handle.limbo = True
        expected = Status.IO_ERROR if older else Status.UNKNOWN_LEDGER_STATE
        poll = ReadRequest(5, -1, previous_lac=-1, timeout_ms=10, piggyback=True)
        for request in (ReadRequest(5, 0), ReadRequest(5, -1), ReadLacRequest(5), ListEntriesRequest(5), poll):
            assert (await new.ask(request)).status is expected, request
        assert (await new.fence(codec(), 3)).status is expected
        for entry_id in (0, -1):
            assert (await old.read(5, entry_id)).status is Status.IO_ERROR
        assert (await old.batch(5, 0)).status is Status.IO_ERROR
        assert (await old.fence(codec())).status is Status.IO_ERROR
        assert await new.write_lac(codec(), 4) is Status.OK
        answer = await new.read_lac(5)
        assert answer == ReadLacResponse(expected, 5, codec().encode_lac(4), None)

    run_rig(body, clients_before_4_15=older)


def test_full_queues_are_too_many_requests() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        await client.add(codec(), 0)
        storage = rig.bookie.storage
        storage.cache.active_bytes += 1 << 40
        client.send(AddRequest(5, 1, codec().master_key, codec().encode(1, 0, 1, b"x")))
        assert await client.answer() == AddResponse(Status.TOO_MANY_REQUESTS, 5, 1)
        storage.cache.active_bytes -= 1 << 40

    run_rig(body)


def test_a_ledger_whose_state_cannot_be_read_gets_io_errors_over_version_3() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        stored = rig.bookie.storage.stored

        def broken(ledger_id: int) -> object:
            raise OSError(5, "the disk is broken")

        stored.load = broken  # type: ignore[method-assign, assignment]
        assert await client.add(codec(), 0) is Status.IO_ERROR
        for request in (
            ReadRequest(5, 0),
            ReadRequest(5, -1, fence=True, master_key=codec().master_key),
            ReadRequest(5, -1, previous_lac=1, timeout_ms=1000, piggyback=True),
            ReadLacRequest(5),
            ListEntriesRequest(5),
            WriteLacRequest(5, 1, codec().master_key, codec().encode_lac(1)),
        ):
            assert (await client.ask(request)).status is Status.IO_ERROR, request
        assert await client.force(5) is Status.OK

    run_rig(body)


def test_a_ledger_deleted_while_fenced_is_gone_for_reads_and_fenced_for_adds() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(2)
        client = await rig.connect_v3()
        await client.add(ledger, 0)
        await client.fence(ledger)
        await rig.delete_ledger(2)
        assert await rig.bookie.collect_garbage() == 1
        assert await client.add(ledger, 1) is Status.FENCED
        assert await client.write_lac(ledger, 1) is Status.NO_LEDGER
        assert (await client.read(2, 0)).status is Status.NO_LEDGER
        assert (await client.fence(ledger)).status is Status.NO_LEDGER
        assert (await client.ask(ListEntriesRequest(2))).status is Status.NO_LEDGER

    run_rig(body)


def test_a_wrong_digest_is_refused_with_its_own_transaction() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(5)
        client = await rig.connect_v3()
        assert await client.add(ledger, 0) is Status.OK
        await asyncio.sleep(1)
        good = [AddRequest(5, entry_id, ledger.master_key, ledger.encode(entry_id, -1, 1, b"payload")) for entry_id in range(1, 4)]
        bad = dataclasses.replace(good[1], body=good[1].body[:-1] + b"?")
        client.send(good[0], bad, good[2])
        answers = [await client.answer() for _ in range(3)]
        statuses = {txn_id: answer.status for txn_id, answer in zip(client.answered[1:], answers, strict=True)}
        assert statuses == dict(zip(client.txn_ids[1:], (Status.OK, Status.IO_ERROR, Status.OK), strict=True))

    run_rig(body)


def test_answers_to_a_dead_journal_are_never_ok() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        await client.add(codec(), 0)
        rig.disk.failing_syncs.append("/data/journal/current")
        client.send(ForceRequest(5))
        assert (await client.answer()).status is Status.OK  # Nothing waits for a sync, so there is nothing that can fail.
        client.send(AddRequest(5, 1, codec().master_key, codec().encode(1, 0, 1, b"x")), ForceRequest(5))
        await client.until_closed()
        while not client.answers.empty():
            assert (await client.answer()).status is Status.IO_ERROR

    run_rig(body)


def test_reads_of_one_ledger_see_the_adds_sent_before_them() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        key = codec().master_key
        adds = [AddRequest(5, entry_id, key, codec().encode(entry_id, -1, 1, b"x")) for entry_id in range(3)]
        client.send(adds[0], adds[1], ReadRequest(5, 1, fence=True, master_key=key), adds[2])
        answers = dict(zip(range(4), [await client.answer() for _ in range(4)], strict=True))
        of_txn = {client.answered[number]: answer for number, answer in answers.items()}
        statuses = [of_txn[txn_id].status for txn_id in client.txn_ids]
        assert statuses == [Status.OK, Status.OK, Status.OK, Status.FENCED]
        read = of_txn[client.txn_ids[2]]
        assert isinstance(read, ReadResponse)
        assert read.body == adds[1].body

    run_rig(body)
