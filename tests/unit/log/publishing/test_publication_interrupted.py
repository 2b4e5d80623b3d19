"""A publish beside a living writer, struck at each operation on the metadata: the batch is there once, and all is in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.head_rig import lose_connection, operations_on_owner
from tests.unit.log.publish_rig import staged
from triplicate.errors import ConnectionLost, LogOwned, TriplicateError
from triplicate.log import LogClientSettings, Logs, PublishResult
from triplicate.log.store import head_store
from triplicate.metadata import InjectedFault

STEPS_MOST = 100
WAITS_S = (0.04, 0.16, 0.64)
"""How long the publisher waits that is struck by lateness. On a slow machine it makes few operations in a short time."""
PATIENT = LogClientSettings(publish_wait_s=5.0, repair_timeout_s=0.2)
Strike = Callable[[Stage, int, asyncio.Future[PublishResult], float], InjectedFault]


def killed(stage: Stage, session: int, publish: asyncio.Future[PublishResult], wait_s: float) -> InjectedFault:
    return InjectedFault(expire=True)


def killed_after_it(stage: Stage, session: int, publish: asyncio.Future[PublishResult], wait_s: float) -> InjectedFault:
    asyncio.get_running_loop().call_soon(stage.store.expire, session)
    return InjectedFault(delay_after_s=0.01)


def answer_lost(stage: Stage, session: int, publish: asyncio.Future[PublishResult], wait_s: float) -> InjectedFault:
    return InjectedFault(raise_after=ConnectionLost("the answer was lost"))


def not_sent(stage: Stage, session: int, publish: asyncio.Future[PublishResult], wait_s: float) -> InjectedFault:
    return InjectedFault(raise_before=ConnectionLost("it was never sent"))


def interrupted(stage: Stage, session: int, publish: asyncio.Future[PublishResult], wait_s: float) -> InjectedFault:
    asyncio.get_running_loop().call_soon(publish.cancel)
    return InjectedFault()


def late(stage: Stage, session: int, publish: asyncio.Future[PublishResult], wait_s: float) -> InjectedFault:
    return InjectedFault(delay_before_s=2 * wait_s)


def answered_late(stage: Stage, session: int, publish: asyncio.Future[PublishResult], wait_s: float) -> InjectedFault:
    return InjectedFault(delay_after_s=2 * wait_s)


async def struck(stage: Stage, whose: str, step: int, strike: Strike, application: str | None, late_s: float) -> bool:
    """Play once, strike at one operation of the publisher or the writer; false if they made fewer."""
    clients: dict[str, Logs] = {name: stage.logs(PATIENT) for name in ("publisher", "writer")}
    session = stage.client_of(clients[whose]).metadata.tree.session_id
    await clients["writer"].create("l")
    writer = await clients["writer"].writer("l", owner="w")
    assert await writer.append(b"before") == 0
    parts = [await staged(clients["publisher"], [b"a", b"b"]), await staged(clients["publisher"], [b"c"])]
    wait_s = late_s if strike in (late, answered_late) else None
    batch = None if application is None else 1
    publish = asyncio.ensure_future(clients["publisher"].publish("l", parts, application=application, batch=batch, wait_s=wait_s))
    seen: list[str] = []

    def fault(of: int, operation: str, path: str) -> InjectedFault | None:
        if of != session or publish.done():
            return None
        seen.append(path)
        return strike(stage, session, publish, late_s) if len(seen) == step else None

    stage.store.fault = fault
    await asyncio.wait([publish])
    stage.store.fault = None
    others = stage.logs(PATIENT)
    # A batch with a number is published again from other ledgers.
    same = parts if application is None else [await staged(others, [b"a", b"b", b"c"])]
    appending = asyncio.ensure_future(writer.append(b"after"))
    await asyncio.wait([appending])
    again = await others.publish("l", same, application=application, batch=batch)
    _compare(again, publish)
    # Before another owner takes the log over, of which the writer may learn in time or not.
    try:
        await writer.close()
    except TriplicateError:
        assert strike in (killed, killed_after_it)
        assert whose == "writer"
    async with await others.writer("l", owner="last") as last:
        end = last.start_offset
    values = await read_values(others, "l", 0, end)
    assert values[again.first_offset : again.end_offset] == [b"a", b"b", b"c"]
    assert sorted(value for value in values if value in (b"a", b"b", b"c")) == [b"a", b"b", b"c"]
    assert values[0] == b"before"
    assert appending.exception() is not None or values[appending.result()] == b"after"
    assert not [path for path in stage.store.dump() if "/requests/" in path]
    return len(seen) >= step


def _compare(again: PublishResult, publish: asyncio.Future[PublishResult]) -> None:
    """A repetition returns the result of the first publish, if that had one."""
    if publish.cancelled():
        return
    error = publish.exception()
    if isinstance(error, LogOwned):
        assert not again.already, "nothing was published, it was said"
    elif error is None:
        first = publish.result()
        assert (again.already, again.first_offset, again.end_offset) == (True, first.first_offset, first.end_offset)


def strike_at_each_step(whose: str, strike: Strike, application: str | None) -> None:
    step, waits_s = 1, list(WAITS_S)
    while waits_s:
        assert step < STEPS_MOST, "it never ends"

        async def scene(stage: Stage, step: int = step, late_s: float = waits_s[0]) -> bool:
            return await struck(stage, whose, step, strike, application, late_s)

        if play(scene):
            step += 1
        else:
            del waits_s[0]
    assert step > 5


@pytest.mark.parametrize("whose", ["publisher", "writer"])
@pytest.mark.parametrize("strike", [killed, killed_after_it, answer_lost, not_sent, interrupted, late, answered_late])
def test_a_publish_interrupted_at_any_step_is_listed_once(whose: str, strike: Strike) -> None:
    strike_at_each_step(whose, strike, "app")


@pytest.mark.parametrize("whose", ["publisher", "writer"])
@pytest.mark.parametrize("strike", [killed_after_it, answer_lost, late])
def test_ledgers_whose_publish_is_interrupted_at_any_step_are_listed_once(whose: str, strike: Strike) -> None:
    strike_at_each_step(whose, strike, None)


def test_a_publish_that_is_cancelled_without_the_metadata_ends_as_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """It closes the segment of a writer that has ended, as the owner of the log meanwhile."""
    monkeypatch.setattr(head_store, "CONNECTION_ATTEMPTS", 0)

    async def scene(stage: Stage) -> None:
        logs, ended = stage.logs(), stage.logs()
        await ended.create("l")
        writer = await ended.writer("l", owner="w")
        assert await writer.append(b"before") == 0
        await stage.client_of(ended).metadata.tree.close()
        part = await staged(logs, [b"a"])
        reached = asyncio.Event()

        async def wait(ledger_id: int) -> None:
            reached.set()
            await asyncio.Event().wait()

        stage.client_of(logs).hooks.recover = wait
        publish = asyncio.ensure_future(logs.publish("l", [part]))
        await reached.wait()
        lost = lose_connection(stage, applied=False, times=1, only=operations_on_owner)
        publish.cancel()
        await asyncio.wait([publish], timeout=10.0)
        assert publish.cancelled()
        assert len(lost) == 1

    play(scene)
