"""Deletions that keep nothing in the trash: nobody can bring such a ledger back, so its entries go with the next round."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.trash_rig import PERIOD_S, entry_is_there, filled, open_metadata
from triplicate.errors import ConnectionLost
from triplicate.metadata import InjectedFault, TrashedLedger
from triplicate.wire import Status


def test_an_undeleted_ledger_goes_at_once_when_it_is_deleted_by_a_client_that_keeps_nothing() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        await metadata.trash.undelete(5)
        assert await rig.bookie.collect_garbage() == 0
        await asyncio.sleep(PERIOD_S)
        # As BookKeeper's client deletes: the time is not noted, and the ledger cannot be undeleted.
        await metadata.ledgers.delete(5)
        assert await rig.bookie.collect_garbage() == 1
        assert not await entry_is_there(rig)
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


def test_the_note_about_an_undeleted_ledger_goes_with_the_round_that_finds_it() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        await metadata.trash.undelete(5)
        assert await rig.bookie.collect_garbage() == 0
        assert rig.bookie.storage.stored.index.missing() == {}
        await asyncio.sleep(PERIOD_S)
        # Dated before the ledger came back, by a clock that is behind: what the bookie has noted itself counts.
        rig.client_host.port.clock.jump(-2 * PERIOD_S)  # type: ignore[attr-defined]
        await metadata.trash.delete(5, PERIOD_S)
        assert await rig.bookie.collect_garbage() == 0
        assert await entry_is_there(rig)
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


@pytest.mark.parametrize("noticed", [False, True])
def test_a_ledger_that_was_deleted_without_the_trash_is_collected_at_once(noticed: bool) -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata, 6)
        ledger = await rig.create_ledger(5)
        assert await (await rig.connect()).add(ledger, 0) is Status.OK
        await metadata.ledgers.delete(5)
        if noticed:
            # An older release noted it and waited.
            await rig.bookie.storage.flush()
            stored = rig.bookie.storage.stored
            await rig.bookie.storage.on_writer(stored.index.note_missing, 1, [5])
        assert await rig.bookie.collect_garbage() == 1
        assert not await entry_is_there(rig)
        assert list(rig.bookie.storage.stored.index.missing()) == [6]
        await metadata.trash.undelete(6)
        assert (await (await rig.connect()).read(6, 0)).status is Status.OK
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


def test_nothing_is_deleted_while_the_list_of_the_trash_does_not_answer() -> None:
    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        ledger = await rig.create_ledger(5)
        assert await (await rig.connect()).add(ledger, 0) is Status.OK
        await metadata.ledgers.delete(5)
        for unanswered in ("children", "get", "exists"):

            def fault(session: int, name: str, path: str, unanswered: str = unanswered) -> InjectedFault | None:
                in_trash = path.endswith("/trash") or "/trash/" in path
                return InjectedFault(raise_before=ConnectionLost("test")) if name == unanswered and (in_trash or name == "exists") else None

            rig.cluster.store.fault = fault
            with pytest.raises(ConnectionLost):
                await rig.bookie.collect_garbage()
            assert await entry_is_there(rig)
        rig.cluster.store.fault = None
        assert await rig.bookie.collect_garbage() == 1
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)


@pytest.mark.parametrize("moment", ["listing", "question", "second question"])
def test_a_ledger_whose_record_comes_or_goes_while_it_is_looked_for_keeps_its_entries(moment: str) -> None:
    """An undelete between the questions about a ledger and about its record, also with another deletion behind it."""

    async def body(rig: Rig) -> None:
        metadata = await open_metadata(rig)
        await filled(rig, metadata)
        bookies = rig.bookie.parts.metadata
        listing, get, exists = bookies.trash.ledger_ids, bookies.trash.get, bookies.ledgers.exists

        async def listed() -> list[int]:
            await metadata.trash.undelete(5)
            found = await listing()
            if moment != "listing":
                return found
            await metadata.trash.delete(5, PERIOD_S)
            return found

        async def asked(ledger_id: int) -> TrashedLedger | None:
            found = await get(ledger_id)
            if moment == "question" and found is None:
                await metadata.trash.delete(5, PERIOD_S)
            return found

        async def there(ledger_id: int) -> bool:
            found = await exists(ledger_id)
            if moment == "second question" and found:
                await metadata.trash.delete(5, PERIOD_S)
            return found

        bookies.trash.ledger_ids, bookies.trash.get, bookies.ledgers.exists = listed, asked, there  # type: ignore[method-assign]
        assert await rig.bookie.collect_garbage() == 0
        assert await entry_is_there(rig)
        await metadata.aclose()

    run_rig(body, trash_period_s=PERIOD_S, gc_interval_s=1e6)
