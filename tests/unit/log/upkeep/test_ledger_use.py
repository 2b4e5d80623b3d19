"""A ledger is not deleted by its id while a log needs it, also if the log lists it at the last moment."""

from __future__ import annotations

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.publish_rig import staged
from tests.unit.log.snapshot_rig import write_snapshot
from triplicate.errors import LedgerListed, NoSuchLedger
from triplicate.log import LogSettings, Purpose, PurposeKind

ROLLING = LogSettings(roll_size_bytes=1024, compression="none")
SHOP = Purpose(PurposeKind.DATABASE, "shop")


def test_every_ledger_that_a_log_lists_is_kept_and_its_use_is_named() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs().acting_for(SHOP)
        await logs.create("l", ROLLING, purpose=SHOP)
        writer = await logs.writer("l")
        for number in range(3):
            await writer.append(b"%d" % number * 1100)
        snapshot = await write_snapshot(logs, b"content", position=1)
        await logs.snapshots("l").publish(snapshot, None)
        segments = await logs.segments("l")
        uses = await stage.logs().ledger_uses("l")
        assert {ledger_id: use.role for ledger_id, use in uses.items()} == {
            **{one.ledger_id: "segment" for one in segments[:-1]},
            segments[-1].ledger_id: "open segment",
            snapshot.ledger_id: "snapshot",
        }
        for ledger_id, use in uses.items():
            words = rf"ledger {ledger_id} is the {use.role} of log 'l' of database 'shop'; .*database drop shop"
            with pytest.raises(LedgerListed, match=words):
                await stage.logs().delete_ledger(ledger_id)
            await logs.client.metadata_of(ledger_id)
        await writer.close()

    play(scene)


def test_a_ledger_of_no_log_and_one_that_its_log_does_not_list_are_deleted() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        part = await staged(logs, [b"a"])
        free = await logs.client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
        for ledger_id in (part.ledger_id, free.ledger_id):
            await logs.delete_ledger(ledger_id)
            with pytest.raises(NoSuchLedger):
                await logs.delete_ledger(ledger_id)

    play(scene)


def test_a_ledger_that_is_listed_behind_the_search_for_it_is_kept() -> None:
    async def scene(stage: Stage) -> None:
        logs, operator = stage.logs(), stage.logs()
        await logs.create("l")
        part = await staged(logs, [b"a"])
        real = operator.client.delete

        async def published_first(*args: object, **options: object) -> None:
            operator.client.delete = real  # type: ignore[method-assign]
            await logs.publish("l", [part], application="app", batch=1)
            await real(*args, **options)  # type: ignore[arg-type]

        operator.client.delete = published_first  # type: ignore[method-assign]
        with pytest.raises(LedgerListed, match=r"is the segment of log 'l'; `triplicate log truncate l OFFSET`"):
            await operator.delete_ledger(part.ledger_id)
        assert await read_values(logs, "l", 0, 1) == [b"a"]

    play(scene)
