"""Deleted ledgers can be brought back for a while: their metadata lies in the trash, and the bookies keep their entries so long."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import NAME, Rig, run_rig
from tests.unit.bookie.crash_rig import lose_index
from tests.unit.bookie.trash_rig import PERIOD_S, entry_is_there, filled, open_metadata
from triplicate.client import Client
from triplicate.config import ClientSettings
from triplicate.errors import BadVersion, ConnectionLost, FormatError, LedgerExists, NoNode, NoSuchLedger
from triplicate.ledger import EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.metadata import ClusterMetadata, InjectedFault, TrashedLedger
from triplicate.metadata.core.tree import ANY_VERSION, Stat
from triplicate.metadata.trash import EXPIRED_AT_ONCE, decode_trashed, encode_trashed


def test_an_undeleted_ledger_has_its_entries() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        await asyncio.sleep(PERIOD_S * 0.8)
        assert await rig.bookie.collect_garbage() == 0
        await metadata.trash.undelete(5)
        assert await metadata.trash.get(5) is None
        await asyncio.sleep(PERIOD_S)
        assert await rig.bookie.collect_garbage() == 0
        assert await entry_is_there(rig)
        # Its time starts again with the next deletion.
        await metadata.trash.delete(5, PERIOD_S)
        assert await rig.bookie.collect_garbage() == 0
        await asyncio.sleep(PERIOD_S / 2)
        assert await rig.bookie.collect_garbage() == 0
        await asyncio.sleep(PERIOD_S / 2 + 1)
        assert await rig.bookie.collect_garbage() == 1
        assert not await entry_is_there(rig)
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S)


@pytest.mark.parametrize("ahead_s", [0.0, 5.0])
def test_the_time_of_a_ledger_deleted_again_between_two_rounds_starts_again(ahead_s: float) -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        await asyncio.sleep(PERIOD_S * 0.8)
        await metadata.trash.undelete(5)
        rig.client_host.port.clock.jump(ahead_s)  # type: ignore[attr-defined]
        await metadata.trash.delete(5, PERIOD_S)
        await asyncio.sleep(PERIOD_S / 2)
        assert await rig.bookie.collect_garbage() == 0, "its last deletion is half a period ago"
        assert await entry_is_there(rig)
        await metadata.trash.undelete(5)
        assert await entry_is_there(rig)
        await metadata.trash.delete(5, PERIOD_S)
        await asyncio.sleep(PERIOD_S + ahead_s - 1)
        assert await rig.bookie.collect_garbage() == 0
        await asyncio.sleep(PERIOD_S + 1)
        assert await rig.bookie.collect_garbage() == 1
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


@pytest.mark.parametrize("again", [False, True])
def test_a_ledger_that_is_undeleted_during_a_round_keeps_its_entries(again: bool) -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        await asyncio.sleep(PERIOD_S * 0.8)
        await metadata.trash.undelete(5)
        await metadata.trash.delete(5, PERIOD_S)
        await asyncio.sleep(PERIOD_S / 2)
        trash = rig.bookie.parts.metadata.trash
        get = trash.get
        asked = 0

        async def undelete_first(ledger_id: int) -> TrashedLedger | None:
            nonlocal asked
            asked += 1
            if asked > 1:
                return await get(ledger_id)
            await metadata.trash.undelete(ledger_id)
            found = await get(ledger_id)
            if again:
                await metadata.trash.delete(ledger_id, PERIOD_S)
            return found

        trash.get = undelete_first  # type: ignore[method-assign]
        assert await rig.bookie.collect_garbage() == 0
        assert asked == (2 if again else 1)
        assert await entry_is_there(rig)
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


def test_nothing_is_deleted_while_the_trash_does_not_answer() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        await metadata.trash.expire()
        await asyncio.sleep(PERIOD_S + 1)

        def fault(session: int, name: str, path: str) -> InjectedFault | None:
            return InjectedFault(raise_before=ConnectionLost("test")) if name == "get" and "/trash/" in path else None

        rig.cluster.store.fault = fault
        with pytest.raises(ConnectionLost):
            await rig.bookie.collect_garbage()
        assert await entry_is_there(rig)
        rig.cluster.store.fault = None
        await metadata.tree.set(f"{metadata.own_root}/trash/{5:019d}", b'{"v":2}')
        assert await rig.bookie.collect_garbage() == 0, "a newer release might bring it back"
        await asyncio.sleep(PERIOD_S + 1)
        await metadata.tree.delete(f"{metadata.own_root}/trash/{5:019d}")
        assert await rig.bookie.collect_garbage() == 1
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


@pytest.mark.parametrize("in_between", ["nothing", "restart", "lost index"])
def test_entries_go_when_the_period_is_over_and_not_before(in_between: str) -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        over = asyncio.get_running_loop().time() + PERIOD_S
        await asyncio.sleep(PERIOD_S / 4)
        if in_between != "nothing":
            rig.node.crash()
            if in_between == "lost index":
                lose_index(rig)
            await rig.node.start()
        await asyncio.sleep(over - asyncio.get_running_loop().time() - 1)
        assert await rig.bookie.collect_garbage() == 0
        assert await entry_is_there(rig)
        await asyncio.sleep(1.5)
        if in_between == "lost index":
            # Without the notes the time starts again.
            assert await rig.bookie.collect_garbage() == 0
            await asyncio.sleep(PERIOD_S)
        assert await rig.bookie.collect_garbage() == 1
        assert not await entry_is_there(rig)
        assert rig.bookie.storage.stored.index.missing() == {}
        with pytest.raises(NoSuchLedger):
            await metadata.trash.undelete(5)
        await rig.bookie.collect_garbage()
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S)


def test_a_clock_that_is_put_back_starts_the_period_again() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        assert rig.node.host is not None
        rig.node.host.port.clock.jump(-250.0)  # type: ignore[attr-defined]
        assert await rig.bookie.collect_garbage() == 0
        # The trash dates the deletion far ahead now, which is waited for once, not until then.
        await asyncio.sleep(PERIOD_S + 1)
        assert await rig.bookie.collect_garbage() == 0
        await asyncio.sleep(PERIOD_S + 1)
        assert await rig.bookie.collect_garbage() == 1
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


def test_an_undelete_comes_too_late_before_the_bookies_delete() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        await asyncio.sleep(PERIOD_S * 0.95)
        with pytest.raises(NoSuchLedger, match="ledger 5 could be undeleted until 1 s ago"):
            await metadata.trash.undelete(5)
        with pytest.raises(NoSuchLedger, match="ledger 6 is not in the trash"):
            await metadata.trash.undelete(6)
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S)


def test_a_ledger_comes_back_as_it_was_last_changed() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await rig.create_ledger(5)
        found = await metadata.ledgers.get(5)
        other = await open_metadata(rig)
        kept: list[TrashedLedger] = []
        keep = metadata.trash._keep

        async def change_first(value: TrashedLedger) -> None:
            await keep(value)
            kept.append(value)
            if len(kept) == 1:
                await other.ledgers.update(5, found.value.closed(7, 70), found.version)

        metadata.trash._keep = change_first  # type: ignore[method-assign]
        await metadata.trash.delete(5, PERIOD_S)
        assert len(kept) == 2
        restored = await metadata.trash.undelete(5)
        assert restored.value == found.value.closed(7, 70)
        assert (await metadata.ledgers.get(5)).value == found.value.closed(7, 70)
        with pytest.raises(NoSuchLedger):
            await metadata.trash.undelete(5)
        await metadata.trash.delete(5, PERIOD_S)
        await rig.create_ledger(5)
        with pytest.raises(LedgerExists):
            await metadata.trash.undelete(5)
        await metadata.trash.delete(99, PERIOD_S)
        await metadata.trash.delete(5, 0)
        assert await metadata.trash.ledger_ids() == [5]
        await other.aclose()
        await metadata.aclose()

    run_rig(body)


def test_a_client_of_a_ledger_before_its_deletion_cannot_change_it_after_its_return() -> None:
    """A writer that was cut off closed the ledger at what it knew, over what a recovery had found (seed 262)."""

    async def body(rig: Rig) -> None:
        metadata, writer = await open_metadata(rig), await open_metadata(rig)
        await rig.create_ledger(5)
        known = [await writer.ledgers.get(5)]
        for last_entry_id in (7, 9):
            known.append(await metadata.ledgers.update(5, known[0].value.closed(last_entry_id, 70), known[-1].version))
        for _ in range(2):
            await metadata.trash.delete(5, PERIOD_S)
            restored = await metadata.trash.undelete(5)
            assert restored == await metadata.ledgers.get(5)
            assert restored.value == known[-1].value
            for before in known:
                with pytest.raises(BadVersion):
                    await writer.ledgers.update(5, known[0].value.closed(-1, 0), before.version)
            known.append(restored)
        await writer.aclose()
        await metadata.aclose()

    run_rig(body)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("operation", ["create", "multi", "delete", "get"])
def test_a_lost_connection_leaves_a_ledger_or_its_trash(operation: str, after: bool) -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await rig.create_ledger(5)
        faults = [1, 3]
        seen = 0

        def fault(session: int, name: str, path: str) -> InjectedFault | None:
            nonlocal seen
            if name == operation:
                seen += 1
                if seen in faults:
                    error = ConnectionLost("test")
                    return InjectedFault(raise_after=error) if after else InjectedFault(raise_before=error)
            return None

        rig.cluster.store.fault = fault
        await metadata.trash.delete(5, PERIOD_S)
        seen = 0
        await metadata.trash.undelete(5)
        rig.cluster.store.fault = None
        assert await metadata.ledgers.exists(5)
        assert await metadata.trash.ledger_ids() == []
        await metadata.aclose()

    run_rig(body)


def test_the_trash_is_emptied_in_rounds() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        for ledger_id in range(10, 20):
            await rig.create_ledger(ledger_id)
            await metadata.trash.delete(ledger_id, PERIOD_S if ledger_id < 15 else 10 * PERIOD_S)
        assert await metadata.trash.expire() == 0
        await asyncio.sleep(PERIOD_S + 1)
        metadata.trash._last_read = ""
        assert await metadata.trash.expire(limit=3) == 3
        assert await metadata.trash.expire(limit=3) == 2
        assert await metadata.trash.expire(limit=100) == 0
        assert await metadata.trash.ledger_ids() == [15, 16, 17, 18, 19]
        await metadata.aclose()

    run_rig(body)


@pytest.mark.parametrize(("deleter_s", "other_s"), [(-1e6, 0.0), (0.0, 1e6), (-1e6, 1e6), (1e6, -1e6)])
def test_a_wrong_clock_neither_ends_a_period_nor_begins_one_in_the_past(deleter_s: float, other_s: float) -> None:
    async def body(rig: Rig) -> None:
        clock = rig.client_host.port.clock
        deleter, other = await open_metadata(rig), await open_metadata(rig)
        for ledger_id in (10, 11):
            await rig.create_ledger(ledger_id)
            clock.jump(deleter_s)  # type: ignore[attr-defined]
            await deleter.trash.delete(ledger_id, PERIOD_S)
            clock.jump(other_s - deleter_s)  # type: ignore[attr-defined]
            assert await other.trash.expire() == 0
            clock.jump(-other_s)  # type: ignore[attr-defined]
        await asyncio.sleep(PERIOD_S / 2)
        clock.jump(other_s)  # type: ignore[attr-defined]
        assert await other.trash.expire() == 0
        await other.trash.undelete(10)
        await asyncio.sleep(PERIOD_S)
        assert await other.trash.expire() == 1
        await deleter.aclose()
        await other.aclose()

    run_rig(body)


@pytest.mark.parametrize("jump_s", [1e6, -1e6])
def test_a_bookie_whose_clock_jumps_keeps_the_entries_for_the_period(jump_s: float) -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        assert await rig.bookie.collect_garbage() == 0
        assert rig.node.host is not None
        rig.node.host.port.clock.jump(jump_s)  # type: ignore[attr-defined]
        await asyncio.sleep(PERIOD_S * 0.8)
        assert await rig.bookie.collect_garbage() == 0
        assert await entry_is_there(rig)
        await asyncio.sleep(PERIOD_S)
        assert await rig.bookie.collect_garbage() == 1
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


def test_page_after_page_is_removed_as_long_as_all_on_a_page_is_due() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        for ledger_id in range(10, 30):
            await rig.create_ledger(ledger_id)
            await metadata.trash.delete(ledger_id, PERIOD_S if ledger_id < 25 else 10 * PERIOD_S)
        await asyncio.sleep(PERIOD_S + 1)
        assert await metadata.trash.expire(limit=3, pages=2) == 6, "no more pages than that"
        # Another's, who came before us, count as if we had removed them.
        await metadata.tree.delete(f"{metadata.own_root}/trash/{17:019d}")
        assert await metadata.trash.expire(limit=2, pages=100) == 8
        assert await metadata.trash.expire(limit=2, pages=100) == 0
        assert await metadata.trash.ledger_ids() == [25, 26, 27, 28, 29]
        await metadata.aclose()

    run_rig(body)


def test_a_round_of_collection_empties_more_than_one_page() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        for ledger_id in range(10, 11 + EXPIRED_AT_ONCE):
            await rig.create_ledger(ledger_id)
            await metadata.trash.delete(ledger_id, PERIOD_S)
        await asyncio.sleep(PERIOD_S + 1)
        await rig.bookie.collect_garbage()
        assert await metadata.trash.ledger_ids() == []
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("remover", ["undelete", "expire"])
def test_what_was_deleted_again_meanwhile_stays_in_the_trash(remover: str, lost: bool) -> None:
    """The new node has the version that the remover has read, or a greater one: only what was read is removed."""

    async def body(rig: Rig) -> None:
        metadata, other = await open_metadata(rig), await open_metadata(rig)
        await rig.create_ledger(5)
        await metadata.trash.delete(5, PERIOD_S)
        if remover == "expire":
            await asyncio.sleep(PERIOD_S + 1)
        delete, calls = metadata.tree.delete, 0

        async def deleted_again_first(path: str, version: int = ANY_VERSION) -> None:
            nonlocal calls
            calls += 1
            if calls > 1 or "/trash/" not in path:
                await delete(path, version)
                return
            if lost:
                await delete(path, version)
            await asyncio.sleep(0.01)
            if remover == "expire":
                await rig.create_ledger(5)
            await other.trash.delete(5, PERIOD_S)
            if lost:
                raise ConnectionLost("test")
            await delete(path, version)

        metadata.tree.delete = deleted_again_first  # type: ignore[method-assign]
        if remover == "expire":
            assert await metadata.trash.expire() == 0
        else:
            await metadata.trash.undelete(5)
        assert calls > 0
        assert await other.trash.ledger_ids() == [5]
        await other.trash.undelete(5)
        await other.aclose()
        await metadata.aclose()

    run_rig(body)


def test_a_client_deletes_into_the_trash_and_brings_back() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        async with Client(rig.client_host.port, metadata, ClientSettings(trash_period_s=PERIOD_S)) as client:
            async with await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1) as writer:
                await writer.append(b"one")
            before = await client.metadata_of(writer.ledger_id)
            await client.delete(writer.ledger_id)
            with pytest.raises(NoSuchLedger):
                await client.metadata_of(writer.ledger_id)
            assert await rig.bookie.collect_garbage() == 0
            assert await client.undelete(writer.ledger_id) == before
            async with await client.open(writer.ledger_id) as reader:
                assert [entry.payload for entry in await reader.read(0, 0)] == [b"one"]
        async with Client(rig.client_host.port, metadata, ClientSettings(trash_period_s=0.0)) as client:
            await client.delete(writer.ledger_id)
            with pytest.raises(NoSuchLedger, match="is not in the trash"):
                await client.undelete(writer.ledger_id)
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S)


def test_a_node_of_the_trash_of_another_format_is_named() -> None:
    value = LedgerMetadata(1, 1, 1, (EnsembleSegment(0, (NAME,)),), LedgerState.OPEN, password=b"p", custom={"a": b"b"})
    trashed = TrashedLedger(5, 123, 60.0, value, 4, 99)
    data = encode_trashed(trashed)
    assert decode_trashed(5, data) == trashed
    assert data.startswith(b'{"created_ms":99,"deleted_ms":123,"metadata":"')
    for broken, said in (
        (data.replace(b'"v":1', b'"v":2'), "format 2"),
        (b"{}", "cannot be understood"),
        (b"\xff", "cannot be understood"),
    ):
        with pytest.raises(FormatError, match=said):
            decode_trashed(5, broken)


async def notes(metadata: ClusterMetadata) -> list[str]:
    try:
        return (await metadata.tree.children(f"{metadata.own_root}/returned"))[0]
    except NoNode:
        return []


def test_when_a_ledger_was_made_is_known_over_all_its_returns_and_forgotten_with_it() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await rig.create_ledger(5)
        found = await metadata.ledgers.get(5)
        first_ms = await metadata.trash.first_created_ms(5, found)
        assert first_ms == found.created_ms > 0
        left = b""
        for _ in range(2):
            await asyncio.sleep(1)
            await metadata.trash.delete(5, PERIOD_S)
            trashed = await metadata.trash.get(5)
            assert trashed is not None
            left = encode_trashed(trashed)
            assert await metadata.trash.first_created_ms(5, trashed) == first_ms
            await metadata.trash.undelete(5)
            found = await metadata.ledgers.get(5)
            assert found.created_ms > first_ms
            assert await metadata.trash.first_created_ms(5, found) == first_ms
        # As an undelete that was cut off before its end leaves it.
        await metadata.tree.create(f"{metadata.own_root}/trash/{5:019d}", left)
        await asyncio.sleep(PERIOD_S + 1)
        assert await metadata.trash.expire() == 1
        assert await metadata.trash.first_created_ms(5, found) == first_ms
        await metadata.trash.delete(5, PERIOD_S)
        await asyncio.sleep(PERIOD_S + 1)
        assert len(await notes(metadata)) == 1
        assert await metadata.trash.expire() == 1
        assert await notes(metadata) == []
        await metadata.aclose()

    run_rig(body)


def test_when_a_ledger_was_made_is_kept_while_it_waits_in_the_trash_again() -> None:
    async def body(rig: Rig) -> None:
        metadata, other = await open_metadata(rig), await open_metadata(rig)
        await rig.create_ledger(5)
        await metadata.trash.delete(5, PERIOD_S)
        await metadata.trash.undelete(5)
        await metadata.trash.delete(5, PERIOD_S)
        await asyncio.sleep(PERIOD_S + 1)
        remove = metadata.trash._remove

        async def removed_and_deleted_again(ledger_id: int, read: Stat) -> bool:
            removed = await remove(ledger_id, read)
            await rig.create_ledger(ledger_id)
            await other.trash.delete(ledger_id, PERIOD_S)
            return removed

        metadata.trash._remove = removed_and_deleted_again  # type: ignore[method-assign]
        assert await metadata.trash.expire() == 1
        assert len(await notes(metadata)) == 1
        await other.aclose()
        await metadata.aclose()

    run_rig(body)


def test_a_ledger_whose_making_nobody_knows_may_be_as_old_as_can_be() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await rig.create_ledger(5)
        await metadata.trash.delete(5, PERIOD_S)
        trashed = await metadata.trash.get(5)
        assert trashed is not None
        # As a release wrote it that did not keep the time.
        data = encode_trashed(trashed).replace(b'"created_ms":%d,' % trashed.created_ms, b"")
        await metadata.tree.set(f"{metadata.own_root}/trash/{5:019d}", data)
        await metadata.trash.undelete(5)
        found = await metadata.ledgers.get(5)
        assert await metadata.trash.first_created_ms(5, found) == 0
        for unreadable in (b"", b'{"created_ms":9000,"v":2}'):
            await metadata.tree.set(f"{metadata.own_root}/returned/{5:019d}", unreadable)
            assert await metadata.trash.first_created_ms(5, found) == 0
        await metadata.aclose()

    run_rig(body)
