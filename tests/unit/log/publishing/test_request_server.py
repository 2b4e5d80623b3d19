"""A publish meets a living writer: the writer lists it at a roll, once, and works on; or the publisher gives up in time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.head_rig import changes_of_head, lose_connection
from tests.unit.log.publish_rig import staged
from tests.waiting import eventually
from triplicate.errors import LogFenced, LogOwned, NoSuchLedger, OutcomeUnknown, SessionExpired
from triplicate.log import LogClientSettings, Logs, LogSettings, PublishResult, Purpose, PurposeKind, StagedLedger
from triplicate.log.core.publish_request import REQUESTS_MAXIMUM
from triplicate.log.publishing import publication, request_server
from triplicate.log.publishing.request_queue import CHECK_S, RequestQueue
from triplicate.log.publishing.request_server import RequestServer

REQUESTS = "/triplicate/test/logs/l/requests"


def requests_of(stage: Stage) -> list[str]:
    return [path for path in stage.store.dump() if path.startswith(f"{REQUESTS}/")]


def hold_heads(logs: Logs) -> tuple[asyncio.Event, asyncio.Event]:
    """The next change of a head by this client stands still: events that say that it does, and that it may go on."""
    swap, reached, resume = logs.store._swap, asyncio.Event(), asyncio.Event()

    async def held(*args: Any) -> Any:
        if not reached.is_set():
            reached.set()
            await resume.wait()
        return await swap(*args)

    logs.store._swap = held  # type: ignore[assignment,method-assign]
    return reached, resume


def deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers hear no publisher, as those of an earlier release."""

    async def follow(self: RequestServer, roll: object) -> None:
        return

    monkeypatch.setattr(RequestServer, "follow", follow)


def test_a_living_writer_lists_what_is_published_between_its_records() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append_many([b"a", b"b"]) == range(2)
            parts = [await staged(others, [b"c", b"d"]), await staged(others, []), await staged(others, [b"e"])]
            published = await others.publish("l", parts, application="app", batch=1)
            assert published == PublishResult(2, 5, False, 1, by_writer=True)
            assert await writer.append(b"f") == 5
            assert (writer.admitted, writer.acknowledged_offset, writer.next_offset) == (3, 6, 6)
            assert (await others.publish("l", parts, application="app", batch=1)).already
            state = await others.last_batch("l", "app")
            assert state is not None
            assert (state.batch, state.first_offset, state.end_offset) == (1, 2, 5)
            assert requests_of(stage) == []
        assert await read_values(others, "l", 0, 6) == [b"a", b"b", b"c", b"d", b"e", b"f"]
        assert await others.is_published("l", [part.ledger_id for part in (parts[0], parts[2])])

    play(scene)


def test_a_publish_without_application_is_listed_by_the_writer_once() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            part = await staged(others, [b"a"])
            assert await others.publish("l", [part.ledger_id]) == PublishResult(0, 1, False, -1, by_writer=True)
            assert await others.publish("l", [part]) == PublishResult(0, 1, True, -1)
            assert await writer.append(b"b") == 1

    play(scene)


def test_an_empty_batch_needs_no_roll() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            nothing = await others.publish("l", [await staged(others, [])], application="app", batch=1)
            assert (nothing.already, nothing.by_writer, writer.rolls) == (False, False, 0)
            assert (await others.publish("l", [], application="app", batch=1)).already
            assert await writer.append(b"b") == 1

    play(scene)


def test_what_waits_while_the_writer_rolls_comes_after_what_is_published() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append(b"a") == 0
            part = await staged(others, [b"b", b"c"])
            reached, resume = hold_heads(logs)
            publishing_ = asyncio.ensure_future(others.publish("l", [part], application="app", batch=1))
            await reached.wait()
            waiting = [asyncio.ensure_future(writer.append(value)) for value in (b"d", b"e")]
            many = asyncio.ensure_future(writer.append_many([b"f", b"g"]))
            await asyncio.sleep(0.02)
            resume.set()
            assert (await publishing_).first_offset == 1
            assert [await offset for offset in waiting] == [3, 4]
            assert await many == range(5, 7)
        assert await read_values(others, "l", 0, 7) == [b"a", b"b", b"c", b"d", b"e", b"f", b"g"]

    play(scene)


def test_records_appended_together_on_both_sides_of_a_roll_have_their_own_offsets() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            ledger = stage.bookies.ledger(writer.ledger_id)
            ledger.held = []
            # Two entries; the second waits for the next segment, since the publisher asks before there is room for it.
            first, second = b"x" * 900_000, b"y" * 900_000
            send, asked = writer._send, asyncio.Event()

            async def slow(*args: Any, **named: Any) -> Any:
                future = await send(*args, **named)
                await asked.wait()
                return future

            writer._send = slow  # type: ignore[method-assign]
            many = asyncio.ensure_future(writer.append_many([first, second]))
            part = await staged(others, [b"b", b"c"])
            published = asyncio.ensure_future(others.publish("l", [part], application="app", batch=1))
            await eventually(lambda: not writer.can_roll)
            asked.set()
            await asyncio.sleep(0.02)
            for future, entry_id in ledger.held:
                future.set_result(entry_id)
            assert list(await many) == [0, 3]
            assert (await published).first_offset == 1
        assert await read_values(others, "l", 0, 4) == [first, b"b", b"c", second]

    play(scene)


def test_many_publishers_and_a_writer_feed_one_log() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        most = [0]
        stage.store.observer = lambda paths: most.append(len(requests_of(stage)))
        writer = await logs.writer("l", owner="w")
        appended: dict[int, bytes] = {}
        done = asyncio.Event()

        async def append() -> None:
            number = 0
            while not done.is_set():
                value = b"w %d" % number
                appended[await writer.append(value)] = value
                number += 1
                await asyncio.sleep(0)

        async def publish(application: str, batch: int) -> None:
            others = stage.logs()
            values = [b"%s %d %d" % (application.encode(), batch, number) for number in range(3)]
            await others.publish(
                "l", [await staged(others, values[:1]), await staged(others, values[1:])], application=application, batch=batch
            )

        appending = asyncio.ensure_future(append())
        # Of each application two drivers publish the same batch.
        for batch in range(2):
            await asyncio.gather(*(publish(f"app {number % 12}", batch) for number in range(24)))
        done.set()
        await appending
        await writer.close()
        assert 1 < max(most) <= REQUESTS_MAXIMUM + 24  # At one moment more may have been placed than may stay.
        assert requests_of(stage) == []
        end = await logs.end_offset("l")
        values = await read_values(logs, "l", 0, end)
        for offset, value in appended.items():
            assert values[offset] == value
        theirs = [value for value in values if value is not None and value.startswith(b"app")]
        assert sorted(theirs) == sorted(b"app %d %d %d" % (app, batch, n) for app in range(12) for batch in range(2) for n in range(3))
        for start in range(0, len(theirs), 3):
            assert len({value.rpartition(b" ")[0] for value in theirs[start : start + 3]}) == 1

    play(scene)


def test_a_writer_that_does_not_answer_is_named_after_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    deaf(monkeypatch)

    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            part = await staged(others, [b"b"])
            for wait_s in (0.0, 0.1):
                with pytest.raises(LogOwned, match=r"written by 'w', which did not list the batch within .*: nothing was published"):
                    await others.publish("l", [part], application="app", batch=1, wait_s=wait_s)
                assert requests_of(stage) == []
            assert await writer.append(b"a") == 0
        published = await others.publish("l", [part], application="app", batch=1)
        assert (published.first_offset, published.by_writer) == (1, False)

    play(scene)


def test_a_request_that_was_withdrawn_is_not_served() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            part = await staged(others, [b"lost"])
            reached, resume = hold_heads(logs)
            published = asyncio.ensure_future(others.publish("l", [part], application="app", batch=1, wait_s=0.2))
            await reached.wait()
            with pytest.raises(LogOwned, match="nothing was published"):
                await published
            resume.set()
            assert await writer.append(b"b") == 1
            assert (writer.rolls, writer.admitted) == (1, 0)
            assert not await others.is_published("l", [part.ledger_id])
            assert await others.last_batch("l", "app") is None
        assert await read_values(others, "l", 0, 2) == [b"a", b"b"]

    play(scene)


def test_an_interrupted_publisher_leaves_no_request() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            part = await staged(others, [b"x"])
            reached, resume = hold_heads(logs)
            published = asyncio.ensure_future(others.publish("l", [part], application="app", batch=1))
            await reached.wait()
            published.cancel()
            with pytest.raises(asyncio.CancelledError):
                await published
            assert requests_of(stage) == []
            resume.set()
            assert await writer.append(b"a") == 0

    play(scene)


def test_a_publisher_whose_session_ends_leaves_no_request() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            part = await staged(others, [b"x"])
            reached, resume = hold_heads(logs)
            published = asyncio.ensure_future(others.publish("l", [part], application="app", batch=1))
            await reached.wait()
            await stage.client_of(others).metadata.tree.close()
            assert requests_of(stage) == []
            resume.set()
            await asyncio.wait([published])
            assert published.exception() is not None
            assert await writer.append(b"a") == 0
            assert writer.admitted == 0

    play(scene)


def test_when_the_writer_dies_with_a_request_the_publisher_takes_the_log() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="dying")
        await writer.append(b"a")
        part = await staged(others, [b"b"])
        reached, resume = hold_heads(logs)
        published = asyncio.ensure_future(others.publish("l", [part], application="app", batch=1))
        await reached.wait()
        await stage.client_of(logs).metadata.tree.close()
        assert await published == PublishResult(1, 2, False, 1)
        resume.set()
        with pytest.raises((LogFenced, SessionExpired)):
            await writer.append(b"lost")
        await writer.abandon()
        assert requests_of(stage) == []
        assert await read_values(others, "l", 0, 2) == [b"a", b"b"]

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("times", [1, 13])
def test_a_roll_of_unknown_outcome_lists_a_batch_once(applied: bool, times: int) -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append(b"a") == 0
            part = await staged(others, [b"b", b"c"])
            lost = lose_connection(stage, applied=applied, times=times, only=changes_of_head)
            published = await others.publish("l", [part], application="app", batch=1)
            assert (published.first_offset, published.end_offset) == (1, 3)
            assert 1 <= len(lost) <= times
            assert await writer.append(b"d") == 3
        assert await read_values(others, "l", 0, 4) == [b"a", b"b", b"c", b"d"]
        assert await others.end_offset("l") == 4

    play(scene)


def test_a_segment_that_breaks_before_the_roll_does_not_shift_what_was_sent() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            assert await writer.append(b"a") == 0
            ledger = stage.bookies.ledger(writer.ledger_id)
            ledger.held = []
            sent = asyncio.ensure_future(writer.append(b"d"))
            await asyncio.sleep(0.01)
            part = await staged(others, [b"b", b"c"])
            published = asyncio.ensure_future(others.publish("l", [part], application="app", batch=1))
            await eventually(lambda: not writer.can_roll)
            # Nobody knows what became of it; the recovery does not find it.
            ledger.entries.pop()
            ledger.broken = True
            ledger.held[0][0].set_exception(OSError("broken"))
            assert (await published).first_offset == 1
            assert await sent == 3
        assert await read_values(others, "l", 0, 4) == [b"a", b"b", b"c", b"d"]

    play(scene)


def test_a_ledger_that_is_swept_before_the_roll_harms_neither_the_writer_nor_others() -> None:
    async def scene(stage: Stage) -> None:
        logs, others, third = stage.logs(), stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            lost, kept = await staged(others, [b"x"]), await staged(third, [b"b"])
            reached, resume = hold_heads(logs)
            failing = asyncio.ensure_future(others.publish("l", [lost], application="app", batch=1))
            await reached.wait()
            await stage.client_of(third).delete(lost.ledger_id)
            resume.set()
            with pytest.raises(NoSuchLedger):
                await failing
            assert (await third.publish("l", [kept], application="third", batch=1)).first_offset == 1
            assert await writer.append(b"c") == 2
            assert writer.failure is None
        assert await read_values(others, "l", 0, 3) == [b"a", b"b", b"c"]

    play(scene)


def test_a_batch_too_large_to_be_marked_at_once_is_listed_by_the_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (publication, request_server):
        monkeypatch.setattr(module, "MARKS_BYTES_MAXIMUM", 100)
    monkeypatch.setattr(publication, "ANNOUNCED_AT_ONCE", 3)

    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            parts = [await staged(others, [b"%d" % number]) for number in range(10)]
            published = await others.publish("l", parts)
            assert (published.first_offset, published.end_offset, published.already) == (1, 11, False)
            again = await others.publish("l", parts)
            assert (again.first_offset, again.end_offset, again.already) == (1, 11, True)
            assert await writer.append(b"b") == 11

    play(scene)


def test_a_publisher_that_reads_from_a_server_that_is_behind_publishes_once() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        others, tree = stage.lagging_logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            part = await staged(others, [b"b"])
            head = "/triplicate/test/logs/l"
            behind, _ = stage.store.get(head)
            tree.behind = {head: behind, f"{head}/publishers/app": None}
            assert not (await others.publish("l", [part], application="app", batch=1)).already
            assert await writer.append(b"c") == 2
        assert await logs.end_offset("l") == 3

    play(scene)


def test_while_bookies_are_short_the_writer_goes_on_and_the_publisher_is_refused_in_time() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            part = await staged(others, [b"x"])
            stage.bookies.creatable = False
            publishing_ = asyncio.ensure_future(others.publish("l", [part], application="app", batch=1, wait_s=0.3))
            for number in range(20):
                assert await writer.append(b"a") == number
                await asyncio.sleep(0.01)
            with pytest.raises(LogOwned):
                await publishing_
            stage.bookies.creatable = True
            assert (await others.publish("l", [part], application="app", batch=1)).first_offset == 20

    play(scene)


def test_the_writer_of_a_log_that_is_not_its_users_own_lists_nothing_for_publishers() -> None:
    async def scene(stage: Stage) -> None:
        purpose = Purpose(PurposeKind.PIPELINE, "p")
        logs, others = stage.logs().acting_for(purpose), stage.logs().acting_for(purpose)
        await logs.create("l", purpose=purpose)
        async with await logs.writer("l", owner="w") as writer:
            with pytest.raises(LogOwned, match="'w'"):
                await others.publish("l", [await staged(others, [b"x"])])
            assert (writer.rolls, requests_of(stage)) == (0, [])

    play(scene)


def test_a_tail_reads_what_is_published_in_its_place() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        tailing = asyncio.ensure_future(read_values(others, "l", 0, 30))
        async with await logs.writer("l", owner="w") as writer:
            for batch in range(10):
                await writer.append(b"w %d" % batch)
                await others.publish("l", [await staged(others, [b"p %d" % batch, b"q %d" % batch])], application="app", batch=batch)
            await writer.noop()
            assert await tailing == [b"%s %d" % (who, batch) for batch in range(10) for who in (b"w", b"p", b"q")]

    play(scene)


def test_the_metadata_of_a_batch_are_asked_for_side_by_side_but_not_all_at_once() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        parts: Sequence[StagedLedger] = [await staged(logs, [b"%d" % number]) for number in range(60)]
        get, running, most = logs.store.ledgers.get, [0], [0]

        async def counted(ledger_id: int) -> Any:
            running[0] += 1
            most.append(running[0])
            await asyncio.sleep(0.001)
            try:
                return await get(ledger_id)
            finally:
                running[0] -= 1

        logs.store.ledgers.get = counted  # type: ignore[method-assign]
        await logs.publish("l", parts)
        assert max(most) == publication.READ_AT_ONCE
        assert await read_values(logs, "l", 0, 60) == [b"%d" % number for number in range(60)]

    play(scene)


@pytest.mark.parametrize("application", [None, "app"])
def test_a_batch_that_was_merged_before_its_publisher_looked_is_not_called_unpublished(
    application: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(LogClientSettings(merge_after_s=0.0)), stage.logs()
        await logs.create("l")
        withdraw = RequestQueue.withdraw

        async def late(self: RequestQueue, token: str) -> None:
            assert (await logs.merge_small("l")).segments == 2
            await withdraw(self, token)

        async with await logs.writer("l", owner="w") as writer:
            parts = [await staged(others, [b"a"]), await staged(others, [b"b"])]
            monkeypatch.setattr(RequestQueue, "withdraw", late)
            if application is None:
                with pytest.raises(OutcomeUnknown, match="it is unknown whether log 'l' has the batch"):
                    await others.publish("l", parts)
            else:
                published = await others.publish("l", parts, application=application, batch=1)
                assert (published.first_offset, published.end_offset) == (0, 2)
            assert await writer.append(b"c") == 2
        assert await read_values(others, "l", 0, 3) == [b"a", b"b", b"c"]

    play(scene)


def test_a_crowd_of_publishers_does_not_crowd_the_metadata() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        crowd = [stage.logs() for _ in range(120)]
        parts = [await staged(others, [b"%d" % number]) for number, others in enumerate(crowd)]
        created: list[str] = []

        def count(session: int, operation: str, path: str) -> None:
            if operation == "create" and path.startswith(f"{REQUESTS}/"):
                created.append(path)

        async with await logs.writer("l", owner="w"):
            stage.store.fault = count
            began = time.monotonic()
            publishes = [
                others.publish("l", [part], application=f"app {number}", batch=0)
                for number, (others, part) in enumerate(zip(crowd, parts, strict=True))
            ]
            published = await asyncio.gather(*publishes)
        assert sorted(item.first_offset for item in published) == list(range(120))
        tries = max(4.0, 3.0 + (time.monotonic() - began) / CHECK_S)  # Each also looks at its request every `CHECK_S`.
        assert len(created) <= tries * len(crowd), "a publisher that finds no room does not try again at once"

    play(scene)
