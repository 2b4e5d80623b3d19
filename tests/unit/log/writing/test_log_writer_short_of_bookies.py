"""Bookies are short: a healthy writer is left alone, segments go on with the copies that can be made, and get the others later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.waiting import eventually
from triplicate.errors import ConnectionLost, NotEnoughBookies, OutcomeUnknown, ReadFailed
from triplicate.log import LogClientSettings, LogSettings, Quorums, SegmentState
from triplicate.log.writing import ledger_allocator
from triplicate.log.writing.ledger_allocator import LedgerAllocator, SpareLedger
from triplicate.metadata import InjectedFault

TINY = LogSettings(roll_size_bytes=1024, compression="none")


def test_a_take_over_that_cannot_create_its_ledger_leaves_a_healthy_writer_alone() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="healthy") as writer:
            assert await writer.append(b"a") == 0
            stage.bookies.creatable = False
            with pytest.raises(NotEnoughBookies):
                await others.writer("l", owner="hasty")
            assert await writer.append(b"b") == 1
            assert writer.failure is None
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


def test_a_take_over_that_cannot_fence_deletes_the_ledger_that_it_created() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="dying")
        await writer.append(b"a")

        async def refuse(ledger_id: int) -> None:
            raise ReadFailed("no bookie answers")

        stage.client_of(others).hooks.recover = refuse
        with pytest.raises(ReadFailed):
            await others.writer("l", owner="heir")
        assert list(stage.bookies.ledgers) == [writer.ledger_id]
        await writer.close()

    play(scene)


def test_a_roll_without_bookies_is_put_off_and_done_when_they_are_back() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(repair_timeout_s=0.05))
        await logs.create("l", TINY)
        async with await logs.writer("l", owner="w") as writer:
            stage.bookies.creatable = False
            for number in range(10):
                assert await writer.append_entry([b"." * 1100]) == range(number, number + 1)
            await asyncio.sleep(0.1)
            assert await writer.append_entry([b"x"]) == range(10, 11)
            assert (writer.rolls, writer.failure) == (0, None)
            assert stage.bookies.ledger(writer.ledger_id).metadata.is_closed is False
            stage.bookies.creatable = True
            await eventually(lambda: writer.rolls == 1)
            assert await writer.append_entry([b"y"]) == range(11, 12)
        assert [segment.records for segment in await logs.segments("l")] == [11, 1]
        lines = stage.client_of(logs).metrics.expose().decode()
        assert 'triplicate_log_rolls_postponed_total{log="l"} 0.0' not in lines

    play(scene)


def test_a_roll_while_the_metadata_are_away_is_put_off() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(repair_timeout_s=0.05))
        await logs.create("l", TINY)
        async with await logs.writer("l", owner="w") as writer:
            stage.store.fault = lambda session, operation, path: InjectedFault(raise_before=ConnectionLost("away"))
            for number in range(10):
                assert await writer.append_entry([b"." * 1100]) == range(number, number + 1)
            assert (writer.rolls, writer.failure) == (0, None)
            stage.store.fault = None
            await eventually(lambda: writer.rolls == 1)
            assert await writer.append_entry([b"y"]) == range(10, 11)

    play(scene)


def test_the_next_ledger_is_there_before_the_segment_is_closed() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", TINY)
        async with await logs.writer("l", owner="w") as writer:
            first = writer.ledger_id
            states: list[bool] = []

            async def look() -> None:
                states.append(stage.bookies.ledger(first).metadata.is_closed)

            stage.client_of(logs).hooks.create = look
            await writer.append_entry([b"." * 650])
            await eventually(lambda: len(stage.bookies.ledgers) == 2)
            assert (states, writer.ledger_id) == ([False], first)
            await writer.append_entry([b"." * 800])
            await writer.append_entry([b"x"])
            assert writer.rolls == 1
            assert states == [False]

    play(scene)


@pytest.mark.parametrize("close", [True, False])
def test_a_next_ledger_that_is_not_needed_is_deleted(close: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", TINY)
        writer = await logs.writer("l", owner="w")
        await writer.append_entry([b"." * 650])
        await eventually(lambda: len(stage.bookies.ledgers) == 2)
        await (writer.close() if close else writer.abandon())
        assert list(stage.bookies.ledgers) == [segment.ledger_id for segment in await logs.segments("l")]

    play(scene)


def test_a_next_ledger_that_the_sweep_may_take_for_an_orphan_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_allocator, "SPARE_LEAST_S", 0.05)

    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(orphan_grace_s=0.1))
        await logs.create("l", TINY)
        async with await logs.writer("l", owner="w") as writer:
            await writer.append_entry([b"." * 650])
            await eventually(lambda: len(stage.bookies.ledgers) == 2)
            spare = min(stage.bookies.ledgers)
            assert (writer.rolls, writer.ledger_id) == (0, spare + 1)
            await asyncio.sleep(0.1)
            await writer.append_entry([b"." * 800])
            await eventually(lambda: writer.rolls == 1)
            assert writer.ledger_id != spare
            assert spare in stage.bookies.deleted

    play(scene)


def test_a_segment_has_the_copies_that_can_be_made_and_says_so() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        stage.bookies.writable = ["bookie-0", "bookie-2"]
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append(b"a") == 0
            metadata = stage.bookies.ledger(writer.ledger_id).metadata
            assert (metadata.ensemble_size, metadata.write_quorum, metadata.ack_quorum) == (2, 2, 2)
            assert writer.is_reduced
            (segment,) = await logs.segments("l")
            assert segment.reduced == Quorums(2, 2)
            assert 'triplicate_log_reduced{log="l"} 1.0' in stage.client_of(logs).metrics.expose().decode()
        (segment,) = await logs.segments("l")
        assert (segment.state, segment.reduced) == (SegmentState.CLOSED, Quorums(2, 2))
        assert 'triplicate_log_reduced{log="l"} 0.0' in stage.client_of(logs).metrics.expose().decode(), "nobody writes it now"

    play(scene)


def test_no_segment_has_fewer_copies_than_the_ack_quorum() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        stage.bookies.writable = ["bookie-1"]
        with pytest.raises(NotEnoughBookies):
            await logs.writer("l", owner="w")
        await logs.create("strict", LogSettings(ack_quorum=3))
        stage.bookies.writable = ["bookie-0", "bookie-1"]
        with pytest.raises(NotEnoughBookies):
            await logs.writer("strict", owner="w")
        assert stage.bookies.ledgers == {}

    play(scene)


def test_the_ensemble_shrinks_before_the_write_quorum_does() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        stage.bookies.writable = ["bookie-0", "bookie-1", "bookie-2", "bookie-3"]
        await logs.create("l", LogSettings(ensemble_size=5, write_quorum=3, ack_quorum=2))
        async with await logs.writer("l", owner="w") as writer:
            metadata = stage.bookies.ledger(writer.ledger_id).metadata
            assert (metadata.ensemble_size, metadata.write_quorum) == (4, 3)
            assert (await logs.head("l")).open == (await logs.segments("l"))[0]
            assert writer.is_reduced

    play(scene)


def test_bookies_that_leave_between_the_look_and_the_creation_are_noticed() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(ensemble_size=5, write_quorum=5, ack_quorum=2))
        stage.bookies.writable = [f"bookie-{number}" for number in range(4)]
        attempts = 0

        async def leave() -> None:
            nonlocal attempts
            attempts += 1
            if attempts in (2, 3):
                stage.bookies.writable.pop()

        stage.client_of(logs).hooks.create = leave
        async with await logs.writer("l", owner="w") as writer:
            assert stage.bookies.ledger(writer.ledger_id).metadata.ensemble_size == 2
            assert attempts == 4

    play(scene)


def test_a_reduced_segment_is_left_as_soon_as_bookies_are_back() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(reduced_retry_s=0.05))
        await logs.create("l")
        stage.bookies.writable.pop()
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append(b"a") == 0
            await asyncio.sleep(0.12)
            assert (writer.rolls, writer.is_reduced) == (0, True)
            stage.bookies.writable.append("bookie-2")
            await eventually(lambda: not writer.is_reduced)
            assert await writer.append(b"b") == 1
            assert 'triplicate_log_reduced{log="l"} 0.0' in stage.client_of(logs).metrics.expose().decode()
        assert [segment.reduced for segment in await logs.segments("l")] == [Quorums(2, 2), None]
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


def test_a_bookie_that_comes_and_goes_does_not_make_segments_roll_all_the_time() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(reduced_retry_s=0.2))
        await logs.create("l")
        stage.bookies.writable.pop()
        async with await logs.writer("l", owner="w") as writer:
            for number in range(40):
                if number % 2:
                    stage.bookies.writable.append("bookie-2")
                else:
                    stage.bookies.writable = ["bookie-0", "bookie-1"]
                await writer.append(b"%d" % number)
                await asyncio.sleep(0.005)
            assert writer.rolls <= 1

    play(scene)


def test_a_segment_that_went_on_without_a_bookie_is_listed_with_fewer_copies() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            stage.bookies.ledger(writer.ledger_id).went_without = True
        (segment,) = await logs.segments("l")
        assert segment.reduced == Quorums(3, 2)

    play(scene)


def test_a_segment_whose_recovery_missed_a_bookie_is_listed_with_fewer_copies() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="dying")
        await writer.append(b"a")
        stage.bookies.missing_at_recovery = ("bookie-2",)
        async with await others.writer("l", owner="heir"):
            first, second = await others.segments("l")
            assert (first.reduced, second.reduced) == (Quorums(3, 2), None)
        await writer.abandon()

    play(scene)


def test_a_broken_segment_keeps_its_appends_waiting_until_a_next_ledger_can_be_created() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(repair_timeout_s=10.0))
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append(b"a") == 0
            broken = stage.bookies.ledger(writer.ledger_id)
            stage.bookies.creatable = False
            broken.broken = True
            waiting = asyncio.ensure_future(writer.append(b"b"))
            await asyncio.sleep(0.1)
            assert not waiting.done()
            assert not broken.fenced, "nothing is fenced before the next ledger is there"
            stage.bookies.creatable = True
            assert await waiting == 1
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


def test_a_broken_segment_without_bookies_ends_in_an_unknown_outcome_after_the_time_of_the_settings() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs(LogClientSettings(repair_timeout_s=0.1))
        await logs.create("l")
        writer = await logs.writer("l", owner="w")
        stage.bookies.ledger(writer.ledger_id).broken = True
        stage.bookies.creatable = False
        with pytest.raises(OutcomeUnknown, match="are needed"):
            await writer.append(b"a")
        await writer.abandon()

    play(scene)


def test_a_reduced_next_ledger_stays_until_one_with_all_copies_is_there() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        client = stage.client_of(logs)
        following = LedgerAllocator(client, logs.settings, LogSettings(), {})
        bookie = stage.bookies.writable.pop()
        await following.prepare(full=False)
        stage.bookies.writable.append(bookie)
        delete, found = client.delete, list[SpareLedger | None]()

        async def look(ledger_id: int, **checks: Any) -> None:
            # A segment that breaks now needs a next ledger.
            found.append(following.pop())
            await delete(ledger_id, **checks)

        client.delete = look  # type: ignore[method-assign]
        await following.prepare(full=True)
        (spare,) = found
        assert spare is not None
        assert spare.reduced is None

    play(scene)
