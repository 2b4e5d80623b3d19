"""Long polls end by any move of the last-add-confirmed, a fence, a deletion or their time, and with their connection."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import Rig, V3Client, run_rig
from triplicate.ledger import DigestType, EntryCodec
from triplicate.wire import AddRequest, ReadRequest, ReadResponse, Status


def codec(ledger_id: int = 5) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


def poll(previous_lac: int, timeout_ms: int | None = 10_000, *, ledger_id: int = 5, piggyback: bool = True) -> ReadRequest:
    return ReadRequest(ledger_id, -1, previous_lac=previous_lac, timeout_ms=timeout_ms, piggyback=piggyback)


async def parked(rig: Rig, client: V3Client, *polls: ReadRequest) -> None:
    """Send polls that have to wait, and see them wait."""
    before = rig.bookie.long_polls.count
    client.send(*polls)
    await asyncio.sleep(0.1)
    assert rig.bookie.long_polls.count == before + len(polls)


async def answer(client: V3Client) -> ReadResponse:
    response = await client.answer()
    assert isinstance(response, ReadResponse)
    return response


def seconds() -> float:
    return asyncio.get_running_loop().time()


def test_a_poll_gets_the_next_entry_when_an_entry_brings_the_news() -> None:
    async def body(rig: Rig) -> None:
        writer, reader = await rig.connect(), await rig.connect_v3()
        await writer.add(codec(), 0)
        await parked(rig, reader, poll(-1))
        assert rig.node.host is not None
        at_ms = rig.node.host.port.clock.wall_us() / 1000
        await writer.add(codec(), 1)
        found = await answer(reader)
        assert (found.status, found.entry_id, found.max_lac) == (Status.OK, 0, 0)
        assert found.body is not None
        assert codec().decode(found.body).entry_id == 0
        assert found.lac_update_ms is not None
        assert abs(found.lac_update_ms - at_ms) < 1000
        assert rig.bookie.long_polls.count == 0

    run_rig(body)


def test_a_poll_that_is_behind_is_answered_at_once_without_a_time() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        for entry_id in range(4):
            await client.add(codec(), entry_id)
        for previous_lac in (-1, 0, 1):
            found = await client.ask(poll(previous_lac))
            assert isinstance(found, ReadResponse)
            assert (found.status, found.entry_id, found.max_lac, found.lac_update_ms) == (Status.OK, previous_lac + 1, 2, None)
        assert rig.bookie.long_polls.count == 0

    run_rig(body)


def test_a_poll_is_woken_by_an_explicit_last_add_confirmed() -> None:
    async def body(rig: Rig) -> None:
        writer, reader = await rig.connect_v3(), await rig.connect_v3()
        await writer.add(codec(), 0)
        await parked(rig, reader, poll(-1))
        begun = seconds()
        assert await writer.write_lac(codec(), 0) is Status.OK
        found = await answer(reader)
        assert (found.status, found.entry_id, found.max_lac) == (Status.OK, 0, 0)
        assert seconds() - begun < 1

    run_rig(body)


def test_a_poll_is_woken_by_a_fence_and_by_deletion() -> None:
    async def body(rig: Rig) -> None:
        ledger = await rig.create_ledger(5)
        writer, reader = await rig.connect_v3(), await rig.connect_v3()
        await writer.add(ledger, 0)
        await parked(rig, reader, poll(-1))
        begun = seconds()
        await writer.fence(ledger)
        found = await answer(reader)
        assert (found.status, found.entry_id, found.body, found.max_lac, found.lac_update_ms) == (Status.OK, -1, None, -1, None)
        await parked(rig, reader, poll(-1))
        await rig.delete_ledger(5)
        assert await rig.bookie.collect_garbage() == 1
        assert (await answer(reader)).status is Status.NO_LEDGER
        assert seconds() - begun < 2
        assert rig.bookie.long_polls.count == 0

    run_rig(body)


def test_a_poll_whose_time_is_over_hears_how_far_things_are() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        for entry_id in range(3):
            await client.add(codec(), entry_id)
        for timeout_ms in (1, 300, 1000):
            begun = seconds()
            found = await client.ask(poll(7, timeout_ms))
            assert isinstance(found, ReadResponse)
            assert (found.status, found.entry_id, found.body, found.max_lac) == (Status.OK, -1, None, 1)
            assert timeout_ms / 1000 <= seconds() - begun < timeout_ms / 1000 + 0.1
        begun = seconds()
        for no_wait in (None, 0, -5):
            assert (await client.ask(poll(7, no_wait))).status is Status.OK
        # However long a poll asks for, it does not wait for longer than the setting says.
        assert (await client.ask(poll(7, 2**62))).status is Status.OK
        assert 2 <= seconds() - begun < 3

    run_rig(body, long_poll_wait_s=2.0)


def test_a_poll_of_an_unknown_ledger_is_no_ledger_and_of_an_empty_one_no_entry_after_its_time() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        assert (await client.ask(poll(-1))).status is Status.NO_LEDGER
        await client.fence(codec())
        begun = seconds()
        assert (await client.ask(poll(-1, 500))).status is Status.NO_ENTRY
        assert seconds() - begun >= 0.5
        # With an explicit record there is something to say.
        await client.write_lac(codec(), 3)
        found = await client.ask(poll(2))
        assert (found.status, found.entry_id, found.max_lac) == (Status.OK, -1, 3)  # type: ignore[union-attr]

    run_rig(body)


def test_an_entry_that_another_bookie_has_is_left_out() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        await client.add(codec(), 0)
        await client.add(codec(), 4)
        found = await client.ask(poll(1))
        assert isinstance(found, ReadResponse)
        assert (found.status, found.entry_id, found.body, found.max_lac) == (Status.OK, -1, None, 3)

    run_rig(body)


def test_without_the_piggyback_flag_a_poll_gets_the_last_entry() -> None:
    async def body(rig: Rig) -> None:
        writer, reader = await rig.connect_v3(), await rig.connect_v3()
        for entry_id in range(3):
            await writer.add(codec(), entry_id)
        await parked(rig, reader, poll(1, piggyback=False))
        await writer.add(codec(), 3)
        found = await answer(reader)
        assert found.body is not None
        assert (found.status, found.entry_id, found.max_lac) == (Status.OK, -1, 2)
        assert codec().decode(found.body).entry_id == 3

    run_rig(body)


def test_a_poll_for_an_entry_by_its_id_is_a_bad_request() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        await client.add(codec(), 0)
        # As in the protocol's vector, but for entry 3.
        client.send_bytes(bytes.fromhex("000000170a06080310011806a2060c08051003200628e807a00602"))
        assert (await client.answer()).status is Status.BAD_REQUEST

    run_rig(body)


def test_polls_wait_where_the_last_add_confirmed_comes_from_the_disk() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        for entry_id in range(4):
            await client.add(codec(), entry_id)
        await rig.node.stop()
        await rig.restart()
        client = await rig.connect_v3()
        found = await client.ask(poll(1))
        assert (found.status, found.entry_id, found.max_lac) == (Status.OK, 2, 2)  # type: ignore[union-attr]
        await parked(rig, client, poll(2))
        client.send(AddRequest(5, 4, codec().master_key, codec().encode(4, 3, 1, b"x")))
        statuses = [(await client.answer()).status for _ in range(2)]
        assert statuses == [Status.OK, Status.OK]

    run_rig(body)


def test_a_damaged_last_entry_is_an_io_error_for_polls_and_no_hindrance_for_adds() -> None:
    async def body(rig: Rig) -> None:
        client = await rig.connect_v3()
        await client.add(codec(), 0)
        await rig.node.stop()
        (name,) = [name for name in rig.files("/data/ledgers/current") if name.endswith(".entries")]
        rig.disk.flip_bit(f"/data/ledgers/current/{name}", 4096 + 50)
        await rig.restart()
        client = await rig.connect_v3()
        assert (await client.ask(poll(0))).status is Status.IO_ERROR
        assert await client.add(codec(), 1) is Status.OK
        assert await client.add(codec(), 2) is Status.OK
        found = await client.ask(poll(0))
        assert (found.status, found.entry_id) == (Status.OK, 1)  # type: ignore[union-attr]

    run_rig(body)


def test_polls_of_a_connection_that_goes_are_forgotten() -> None:
    async def body(rig: Rig) -> None:
        client, other = await rig.connect_v3(), await rig.connect_v3()
        await client.add(codec(), 0)
        await parked(rig, client, *[poll(5)] * 10)
        await parked(rig, other, poll(5))
        assert client.transport is not None
        client.transport.close()
        await asyncio.sleep(0.1)
        assert rig.bookie.long_polls.count == 1
        await asyncio.sleep(11)
        assert rig.bookie.long_polls.count == 0
        assert (await answer(other)).status is Status.OK
        handle = rig.bookie.storage.ledgers.get(5)
        assert handle is not None
        assert handle.wake is None

    run_rig(body)


@pytest.mark.parametrize("setting", ["long_polls_per_connection", "long_polls_outstanding"])
def test_polls_beyond_the_limit_are_too_many_requests(setting: str) -> None:
    async def body(rig: Rig) -> None:
        client, other = await rig.connect_v3(), await rig.connect_v3()
        await client.add(codec(), 0)
        await parked(rig, client, *[poll(5)] * 3)
        assert (await client.ask(poll(5))).status is Status.TOO_MANY_REQUESTS
        if setting == "long_polls_outstanding":
            assert (await other.ask(poll(5))).status is Status.TOO_MANY_REQUESTS
        else:
            await parked(rig, other, poll(5))
        assert (await client.read(5, 0)).status is Status.OK

    run_rig(body, **{setting: 3})


def test_many_tails_follow_a_writer_without_missing_an_entry() -> None:
    async def body(rig: Rig) -> None:
        writer = await rig.connect()
        await writer.add(codec(), 0)

        async def tail(client: V3Client) -> list[int]:
            found: list[int] = []
            while len(found) < 50:
                response = await client.ask(poll(len(found) - 1))
                assert isinstance(response, ReadResponse)
                if response.body is not None:
                    found.append(codec().decode(response.body).entry_id)
            return found

        clients = [await rig.connect_v3() for _ in range(20)]
        tails = [asyncio.get_running_loop().create_task(tail(client)) for client in clients]
        for entry_id in range(1, 52):
            assert await writer.add(codec(), entry_id) is Status.OK
            await asyncio.sleep(0.001 * (entry_id % 4))
        for task in tails:
            assert await task == list(range(50))

    run_rig(body, flush_interval_s=0.02)
