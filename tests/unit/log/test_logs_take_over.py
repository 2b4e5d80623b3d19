"""Take-overs: races, unknown outcomes, ownership; and other changes of the head under the same."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from tests.unit.log.fake import SMALL, Stage, play, read_values
from tests.unit.log.head_rig import changes_of_head, held_at, lose_connection, operations_on_owner, read_the_past
from triplicate.errors import ArgumentError, ConnectionLost, FormatError, LogExists, LogFenced, LogOwned, NoSuchLog, NotEnoughBookies
from triplicate.log import LogClientSettings, Logs, LogSettings, StagingOrigin, can_be_taken_over
from triplicate.log.core.head import Owner
from triplicate.log.store import head_store, ownership
from triplicate.metadata import InjectedFault


def test_an_opening_that_is_cancelled_at_its_claim_shuts_nobody_out() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        opening = await held_at(logs.store.tree, "multi", lambda: logs.writer("l", take_over=False))
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert await logs.owner("l") is None
        async with await logs.writer("l", take_over=False):
            pass

    play(scene)


def test_a_take_over_that_another_one_overtakes_starts_over_and_loses_nothing() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        reached, resume = asyncio.Event(), asyncio.Event()

        async def wait_once() -> None:
            # Between reading and fencing the list and changing it.
            stage.client_of(logs).hooks.create = None
            reached.set()
            await resume.wait()

        stage.client_of(logs).hooks.create = wait_once
        slow = asyncio.ensure_future(logs.writer("l", owner="slow"))
        await reached.wait()
        fast = await others.writer("l", owner="fast")
        assert await fast.append_many([b"a", b"b"]) == range(2)
        resume.set()
        async with await slow as writer:
            assert (writer.epoch, writer.start_offset) == (2, 2)
            with pytest.raises(LogFenced):
                await fast.append(b"lost")
            assert await writer.append(b"c") == 2
        await fast.close()
        assert await read_values(logs, "l", 0, 3) == [b"a", b"b", b"c"]
        listed = {segment.ledger_id for segment in await logs.segments("l")}
        assert set(stage.bookies.ledgers) == listed, "the loser has deleted its ledger"

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("times", [1, 3])
def test_a_take_over_of_unknown_outcome_is_settled_by_its_token(applied: bool, times: int) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
        lost = lose_connection(stage, applied=applied, times=times, only=changes_of_head)
        async with await logs.writer("l", owner="v") as writer:
            assert len(lost) == times
            assert (writer.epoch, writer.start_offset) == (2, 1)
            assert await writer.append(b"b") == 1
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


@pytest.mark.parametrize("second", ["refused", "lost"])
def test_a_take_over_that_was_applied_unseen_is_not_taken_for_the_next_attempt(monkeypatch: pytest.MonkeyPatch, second: str) -> None:
    """All answers to the change were lost, and a server that lagged did not show it, so the take-over began again. The second change was
    refused for its old version, or lost and not applied. The list then showed the first change, with the same token and owner: the writer
    wrote a ledger that the log did not list, and none of its appends was ever acknowledged."""
    monkeypatch.setattr(head_store, "CONNECTION_ATTEMPTS", 0)

    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
        reads = read_the_past(others, "/triplicate/test/logs/l")
        changes = 0

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            nonlocal changes
            if not changes_of_head(operation, path):
                return None
            changes += 1
            if changes == 1:
                # The lagging server answers the read that follows, and the first read of the next attempt if that is to be refused.
                reads.old = 2 if second == "refused" else 1
                return InjectedFault(raise_after=ConnectionLost("lost"))
            return InjectedFault(raise_before=ConnectionLost("lost")) if changes == 2 and second == "lost" else None

        stage.store.fault = fault
        async with await others.writer("l", owner="v") as writer:
            assert changes >= 3, "the third attempt closes the ledger of the first"
            async with asyncio.timeout(10.0):
                assert await writer.append(b"b") == 1
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


def test_a_take_over_of_unknown_outcome_that_was_taken_over_itself_starts_over() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        taken = asyncio.Event()
        cut: list[int] = []

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            if session in cut:
                return InjectedFault(raise_before=ConnectionLost("lost"))  # It looks again when the other has taken the log over.
            if changes_of_head(operation, path) and not taken.is_set():
                cut.append(session)
                taken.set()
                return InjectedFault(raise_after=ConnectionLost("lost"))
            return None

        stage.store.fault = fault
        first = asyncio.ensure_future(logs.writer("l", owner="w"))
        await taken.wait()
        async with await others.writer("l", owner="between") as writer:
            await writer.append(b"a")
        stage.store.fault = None
        async with await first as writer:
            assert writer.epoch == 3
            assert await writer.append(b"b") == 1
        assert await read_values(logs, "l", 0, 2) == [b"a", b"b"]

    play(scene)


@pytest.mark.parametrize("applied", [True, False])
def test_rolls_survive_lost_connections(applied: bool) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        async with await logs.writer("l", owner="w") as writer:
            lost = lose_connection(stage, applied=applied, times=4, only=changes_of_head)
            for number in range(40):
                assert await writer.append(b"%04d" % number + b"." * 200) == number
            assert len(lost) == 4
        assert len(await read_values(logs, "l", 0, 40)) == 40
        assert len(stage.bookies.ledgers) == len(await logs.segments("l"))

    play(scene)


def test_racing_writers_keep_every_acknowledged_record_in_order() -> None:
    async def scene(stage: Stage) -> None:
        acknowledged: dict[int, bytes] = {}
        first = stage.logs()
        await first.create("l", SMALL)

        async def compete(number: int) -> None:
            logs = stage.logs()
            for attempt in range(4):
                writer = await logs.writer("l", owner=f"w{number}")
                try:
                    for record in range(20):
                        value = b"%d/%d/%d" % (number, attempt, record) + b"." * 100
                        acknowledged[await writer.append(value)] = value
                except LogFenced:
                    continue
                finally:
                    with suppress(LogFenced):  # It may be deposed behind its last record.
                        await writer.close()

        racers = [asyncio.ensure_future(compete(number)) for number in range(3)]
        for racer in racers:
            await racer
        end = await first.end_offset("l")
        values = await read_values(first, "l", 0, end)
        assert len(values) == end
        assert acknowledged
        assert all(values[offset] == value for offset, value in acknowledged.items())

    play(scene)


def test_the_owner_vanishes_with_its_session() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="mortal")
        await writer.append(b"a")
        living = await others.owner("l")
        assert living is not None
        assert living.name == "mortal"
        await stage.client_of(logs).metadata.tree.close()
        assert await others.owner("l") is None
        async with await others.writer("l", owner="heir", take_over=False) as heir:
            assert heir.start_offset == 1

    play(scene)


def test_a_take_over_that_is_cancelled_without_the_metadata_ends_as_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of deleting the owner's node replaced the cancellation. A database node that was stopped then ran on for ever."""
    monkeypatch.setattr(head_store, "CONNECTION_ATTEMPTS", 0)

    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        reached = asyncio.Event()

        async def wait() -> None:
            reached.set()
            await asyncio.Event().wait()

        stage.client_of(logs).hooks.create = wait
        taking_over = asyncio.ensure_future(logs.writer("l", owner="w"))
        await reached.wait()
        lost = lose_connection(stage, applied=False, times=1, only=operations_on_owner)
        taking_over.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking_over
        assert len(lost) == 1
        async with await others.writer("l", owner="v") as writer:
            assert await writer.append(b"a") == 0

    play(scene)


def test_a_take_over_that_fails_without_the_metadata_raises_its_own_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_store, "CONNECTION_ATTEMPTS", 0)

    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        stage.bookies.creatable = False

        async def lose() -> None:
            lose_connection(stage, applied=False, times=1, only=operations_on_owner)

        stage.client_of(logs).hooks.create = lose
        with pytest.raises(NotEnoughBookies):
            await logs.writer("l", owner="w")

    play(scene)


def test_a_living_writer_claims_again_what_its_session_lost_until_it_is_fenced() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        first = await logs.writer("l", owner="one")
        for _ in range(3):
            await stage.client_of(others).metadata.tree.delete("/triplicate/test/logs/l/owner")
            await asyncio.sleep(0.02)
            living = await others.owner("l")
            assert living is not None
            assert living.name == "one"
        async with await others.writer("l", owner="two"):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.02)
        assert await others.owner("l") is None
        await first.close()

    play(scene)


def test_a_log_is_created_once_also_after_an_unknown_outcome() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        lose_connection(stage, applied=True, times=1, only=changes_of_head)
        await logs.create("l")
        with pytest.raises(LogExists, match="'l'"):
            await logs.create("l")
        await logs.create("k")
        assert await logs.names() == ["k", "l"]
        for name in ("", "a/b", "..", "x" * 300):
            with pytest.raises(ArgumentError):
                await logs.create(name)
        with pytest.raises(ArgumentError, match="quorum"):
            await logs.create("m", LogSettings(write_quorum=4))

    play(scene)


def test_deleting_a_log_deletes_its_ledgers_and_nodes() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l", LogSettings(roll_size_bytes=1024, compression="none"))
        writer = await logs.writer("l", owner="w")
        await writer.append_many([b"x" * 500] * 20)
        with pytest.raises(LogOwned, match="'w'"):
            await others.delete("l")
        await others.delete("l", force=True)
        assert stage.bookies.ledgers == {}
        assert [path for path in stage.store.dump() if path.startswith("/triplicate/test/logs/")] == []
        with pytest.raises(NoSuchLog):
            await others.head("l")
        with pytest.raises(LogFenced):
            await writer.append(b"y")
        await writer.close()
        await logs.create("l")
        assert await logs.end_offset("l") == 0

    play(scene)


def test_a_deletion_that_was_interrupted_can_be_run_again() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")

        def fault(session: int, operation: str, path: str) -> InjectedFault | None:
            return InjectedFault(raise_before=FormatError("interrupted")) if operation == "delete" else None

        stage.store.fault = fault
        with pytest.raises(FormatError):
            await logs.delete("l")
        stage.store.fault = None
        with pytest.raises(NoSuchLog):
            await logs.head("l")
        assert await logs.names() == []
        with pytest.raises(LogExists, match="being deleted"):
            await logs.create("l")
        await logs.delete("l")
        await logs.create("l")

    play(scene)


def test_two_clusters_of_settings_do_not_meet() -> None:
    async def scene(stage: Stage) -> None:
        quick = stage.logs(LogClientSettings(linger_s=0.0))
        slow = stage.logs(LogClientSettings(linger_s=5.0))
        for logs, name in ((quick, "a"), (slow, "b")):
            await logs.create(name)
            async with await logs.writer(name, owner="w") as writer:
                assert await writer.append(b"x") == 0

    play(scene)


async def stage_one(logs: Logs, values: list[bytes]) -> int:
    async with await logs.staging(StagingOrigin("l")) as writer:
        await writer.append_many(values)
    return writer.ledger_id


def test_publishing_takes_the_log_from_a_dead_writer_and_fences_it() -> None:
    async def scene(stage: Stage) -> None:
        logs, others = stage.logs(), stage.logs()
        await logs.create("l")
        writer = await logs.writer("l", owner="dying")
        await writer.append_many([b"a", b"b"])
        ledger_id = await stage_one(others, [b"c", b"d"])
        await stage.client_of(logs).metadata.tree.close()
        published = await others.publish("l", [ledger_id])
        assert (published.first_offset, published.end_offset) == (2, 4)
        with pytest.raises(LogFenced):
            await writer.append(b"lost")
        assert await read_values(others, "l", 0, 4) == [b"a", b"b", b"c", b"d"]
        assert await others.owner("l") is None
        async with await others.writer("l", owner="next") as heir:
            assert await heir.append(b"e") == 4

    play(scene)


@pytest.mark.parametrize(
    ("quorums", "unreached", "possible"),
    [
        ((3, 3, 2), {"bookie-0"}, True),
        ((3, 3, 2), {"bookie-0", "bookie-1"}, False),
        ((2, 2, 2), {"bookie-0"}, True),  # Another bookie takes its place in the next segment.
        ((2, 2, 2), {"bookie-0", "bookie-2"}, False),
    ],
)
def test_a_process_knows_whether_it_reaches_enough_bookies_for_a_take_over(
    quorums: tuple[int, int, int], unreached: set[str], possible: bool
) -> None:
    async def scene(stage: Stage) -> None:
        logs, other = stage.logs(), stage.logs()
        ensemble_size, write_quorum, ack_quorum = quorums
        await logs.create("l", LogSettings(ensemble_size=ensemble_size, write_quorum=write_quorum, ack_quorum=ack_quorum))
        stage.client_of(other).unreached = unreached
        assert await can_be_taken_over(other, "l"), "nothing is to be recovered"
        async with await logs.writer("l", owner="w") as writer:
            await writer.append(b"a")
            assert await can_be_taken_over(other, "l") is possible
            await writer.append(b"b")

    play(scene)


@pytest.mark.parametrize("cancelled", [True, False])
def test_an_owner_that_could_not_be_released_is_released_when_the_store_answers(cancelled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_store, "CONNECTION_ATTEMPTS", 1)

    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        owner = Owner("w", "token")
        await ownership.claim(logs.store, "l", (await logs.head("l")).log_id, owner, take_over=False)
        session = logs.store.tree.session_id
        answers, asked = asyncio.Event(), asyncio.Event()

        def fault(of: int, operation: str, path: str) -> InjectedFault | None:
            if of != session or answers.is_set():
                return None
            asked.set()
            return InjectedFault(raise_before=ConnectionLost("the store does not answer"))

        stage.store.fault = fault
        leaving = asyncio.ensure_future(ownership.release(logs.store, "l", owner))
        await asked.wait()
        if cancelled:
            leaving.cancel()
        await asyncio.wait([leaving])
        other = stage.logs()
        assert await ownership.live_owner(other.store, "l") == owner
        answers.set()
        await logs.names()
        assert await ownership.live_owner(other.store, "l") is None

    play(scene)
