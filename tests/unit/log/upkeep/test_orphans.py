"""Ledgers that a log lists, or is about to list, are not deleted by the sweep of orphans, by an abort, or by the loser of a race."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.client.real_cluster import real_cluster
from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.publish_rig import staged
from triplicate.errors import NoSuchLedger
from triplicate.log import LogClientSettings, Logs, LogSettings
from triplicate.metadata import CheckVersion, DeleteNode

DAY_S = 86_400
ROLLING = LogSettings(roll_size_bytes=1024, compression="none")


def before_the_next_change(logs: Logs, meanwhile: Callable[[], Awaitable[Any]]) -> None:
    """Run something between the decision about a head and its compare-and-set, once."""
    swap, done = logs._store._swap, list[bool]()

    async def held(*args: Any) -> Any:
        if not done:
            done.append(True)
            await meanwhile()
        return await swap(*args)

    logs._store._swap = held  # type: ignore[assignment,method-assign]


def test_a_batch_that_is_swept_before_its_publish_is_not_published() -> None:
    async def scene(stage: Stage) -> None:
        logs, sweeper = stage.logs(), stage.logs()
        await logs.create("l")
        stage.wall_us = 10**15
        part = await staged(logs, [b"a", b"b"])
        stage.wall_us += (DAY_S + 1) * 1_000_000
        before_the_next_change(logs, sweeper.sweep_orphans)
        with pytest.raises(NoSuchLedger, match="nothing was published"):
            await logs.publish("l", [part], application="app", batch=1)
        assert await logs.end_offset("l") == 0
        assert await logs.last_batch("l", "app") is None
        again = await staged(logs, [b"a", b"b"])
        assert not (await logs.publish("l", [again], application="app", batch=1)).already
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


def test_a_sweep_spares_what_is_published_while_it_looks() -> None:
    async def scene(stage: Stage) -> None:
        logs, sweeper = stage.logs(), stage.logs()
        await logs.create("l")
        stage.wall_us = 10**15
        part = await staged(logs, [b"a", b"b"])
        stage.wall_us += (DAY_S + 1) * 1_000_000
        client = stage.client_of(sweeper)
        delete = client.delete

        async def late(ledger_id: int, **checks: Any) -> None:
            await logs.publish("l", [part], application="app", batch=1)
            await delete(ledger_id, **checks)

        client.delete = late  # type: ignore[method-assign]
        assert await sweeper.sweep_orphans() == []
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


def test_a_sweep_spares_a_segment_that_is_opened_while_it_looks() -> None:
    async def scene(stage: Stage) -> None:
        logs, sweeper = stage.logs(), stage.logs(LogClientSettings(orphan_grace_s=0.0))
        await logs.create("l", ROLLING)
        client = stage.client_of(sweeper)
        delete, late = client.delete, list[int]()
        async with await logs.writer("l", owner="w") as writer:

            async def sweep_meanwhile() -> None:
                async def hold(ledger_id: int, **checks: Any) -> None:
                    late.append(ledger_id)
                    # The change is made before the deletion, which was decided before the change.
                    client.delete = delete  # type: ignore[method-assign]
                    resume.append((ledger_id, checks))

                client.delete = hold  # type: ignore[method-assign]
                await sweeper.sweep_orphans()

            resume: list[tuple[int, dict[str, Any]]] = []
            before_the_next_change(logs, sweep_meanwhile)
            await writer.append_entry([b"0" + b"." * 1100])
            await writer.append_entry([b"1"])
            ((ledger_id, checks),) = resume
            assert ledger_id == writer.ledger_id
            assert any(isinstance(check, CheckVersion) for check in checks["checks"])
            with pytest.raises(Exception, match="has changed"):
                await delete(ledger_id, **checks)
            await writer.append_entry([b"2"])
        assert len(await read_values(logs, "l", 0, 3)) == 3

    play(scene)


def test_a_roll_into_a_swept_ledger_takes_another_one() -> None:
    async def scene(stage: Stage) -> None:
        logs, sweeper = stage.logs(), stage.logs(LogClientSettings(orphan_grace_s=0.0))
        await logs.create("l", ROLLING)
        async with await logs.writer("l", owner="w") as writer:
            before_the_next_change(logs, sweeper.sweep_orphans)
            for number in range(4):
                await writer.append_entry([b"%d" % number + b"." * 1100])
            assert len(stage.bookies.deleted) == 1
        assert len(await read_values(logs, "l", 0, 4)) == 4

    play(scene)


def test_a_take_over_into_a_swept_ledger_takes_another_one() -> None:
    async def scene(stage: Stage) -> None:
        logs, sweeper = stage.logs(), stage.logs(LogClientSettings(orphan_grace_s=0.0))
        await logs.create("l", ROLLING)
        before_the_next_change(logs, sweeper.sweep_orphans)
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
        assert len(stage.bookies.deleted) == 1
        assert await read_values(logs, "l", 0, 1) == [b"a"]

    play(scene)


def test_the_age_of_an_orphan_is_the_stores_time() -> None:
    async def scene(stage: Stage) -> None:
        logs, hasty = stage.logs(), stage.logs(ahead_s=100 * DAY_S)
        slow = stage.logs(ahead_s=-100 * DAY_S)
        await logs.create("l")
        part, made_by_a_slow_clock = await staged(logs, [b"a"]), await staged(slow, [b"b"])
        assert await hasty.sweep_orphans() == []
        stage.wall_us = stage.host.clock.wall_us() + (DAY_S + 1) * 1_000_000
        assert sorted(await slow.sweep_orphans()) == sorted([part.ledger_id, made_by_a_slow_clock.ledger_id])

    play(scene)


def test_a_deletion_for_a_log_that_is_gone_fails_when_the_log_is_made_meanwhile() -> None:
    async def scene(stage: Stage) -> None:
        logs, sweeper = stage.logs(), stage.logs()
        await logs.create("l")
        stage.wall_us = 10**15
        part = await staged(logs, [b"a"])
        await logs.delete("l")
        stage.wall_us += (DAY_S + 1) * 1_000_000
        client = stage.client_of(sweeper)
        delete, calls = client.delete, list[int]()

        async def late(ledger_id: int, **checks: Any) -> None:
            if not calls:
                calls.append(ledger_id)
                assert any(isinstance(check, DeleteNode) for check in checks["checks"])
                await logs.create("l")
                await logs.publish("l", [part])
            await delete(ledger_id, **checks)

        client.delete = late  # type: ignore[method-assign]
        assert await sweeper.sweep_orphans() == []
        assert await read_values(logs, "l", 0, 1) == [b"a"]

    play(scene)


def test_a_writer_whose_open_ledger_is_gone_does_not_close_without_error() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="w")
        await writer.append(b"a")
        ledger_id = writer.ledger_id
        await stage.client_of(logs).delete(ledger_id)
        with pytest.raises(NoSuchLedger, match=rf"ledger {ledger_id} .*log repair l"):
            await writer.close()

    play(scene)


def test_a_writer_of_a_deleted_log_closes_without_error() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(idle_noop_delay_s=10.0))  # No no-op is on its way, which would be reported as fenced.
        await logs.create("l")
        writer = await logs.writer("l", owner="w")
        await writer.append(b"a")
        await logs.delete("l", force=True)
        await writer.close()

    play(scene)


def test_real_ledgers_that_a_roll_lists_are_not_swept() -> None:
    async def scene() -> None:
        async with real_cluster("abc") as cluster, cluster.client() as client, cluster.client() as other:
            logs, sweeper = Logs(client), Logs(other, LogClientSettings(orphan_grace_s=0.0))
            await logs.create("l", ROLLING)
            writer = await logs.writer("l", owner="w")
            before_the_next_change(logs, sweeper.sweep_orphans)
            for number in range(7):
                await writer.append_entry([b"%d" % number + b"." * 1100])
            assert writer.failure is None
            await writer.close()
            async with await Logs(other).writer("l", owner="w2") as second:
                assert second.start_offset == 7
            assert len(await read_values(Logs(other), "l", 0, 7)) == 7

    asyncio.run(scene())


def test_an_abort_deletes_no_ledger_of_another_log() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        for name in ("l", "other"):
            await logs.create(name)
        part = await staged(logs, [b"a"], log="other")
        await logs.publish("other", [part])
        assert await logs.discard("l", [part.ledger_id]) == []
        assert await read_values(logs, "other", 0, 1) == [b"a"]

    play(scene)
