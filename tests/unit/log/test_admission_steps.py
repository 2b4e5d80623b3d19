"""A publish beside a living writer, struck at each operation on the metadata: the batch is there once, and all is in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.unit.log.fake import Stage, play, read_values
from tests.unit.log.test_publishing import staged
from triplicate.errors import ConnectionLost, TriplicateError
from triplicate.log import LogClientSettings, Logs, Published
from triplicate.metadata import Fault

STEPS_MOST = 100
PATIENT = LogClientSettings(publish_wait_s=5.0, repair_timeout_s=0.2)
Strike = Callable[[Stage, int, asyncio.Future[Published]], Fault]


def killed(stage: Stage, session: int, publish: asyncio.Future[Published]) -> Fault:
    return Fault(expire=True)


def killed_after_it(stage: Stage, session: int, publish: asyncio.Future[Published]) -> Fault:
    asyncio.get_running_loop().call_soon(stage.store.expire, session)
    return Fault(delay_after_s=0.01)


def answer_lost(stage: Stage, session: int, publish: asyncio.Future[Published]) -> Fault:
    return Fault(raise_after=ConnectionLost("the answer was lost"))


def not_sent(stage: Stage, session: int, publish: asyncio.Future[Published]) -> Fault:
    return Fault(raise_before=ConnectionLost("it was never sent"))


def interrupted(stage: Stage, session: int, publish: asyncio.Future[Published]) -> Fault:
    asyncio.get_running_loop().call_soon(publish.cancel)
    return Fault()


async def struck(stage: Stage, whose: str, step: int, strike: Strike) -> bool:
    """Play once, strike at one operation of the publisher or the writer; false if they made fewer."""
    clients: dict[str, Logs] = {name: stage.logs(PATIENT) for name in ("publisher", "writer")}
    session = stage.client_of(clients[whose]).metadata.tree.session_id
    await clients["writer"].create("l")
    writer = await clients["writer"].writer("l", owner="w")
    assert await writer.append(b"before") == 0
    parts = [await staged(clients["publisher"], [b"a", b"b"]), await staged(clients["publisher"], [b"c"])]
    publish = asyncio.ensure_future(clients["publisher"].publish("l", parts, application="app", batch=1))
    seen: list[str] = []

    def fault(of: int, operation: str, path: str) -> Fault | None:
        if of != session or publish.done():
            return None
        seen.append(path)
        return strike(stage, session, publish) if len(seen) == step else None

    stage.store.fault = fault
    await asyncio.wait([publish])
    stage.store.fault = None
    first = None if publish.cancelled() or publish.exception() is not None else publish.result()
    await _finish(stage, writer_appends=asyncio.ensure_future(writer.append(b"after")), first=first)
    try:
        await writer.close()
    except TriplicateError:
        assert strike in (killed, killed_after_it)
        assert whose == "writer"
    return len(seen) >= step


async def _finish(stage: Stage, *, writer_appends: asyncio.Future[int], first: Published | None) -> None:
    """The batch is published again from other ledgers, whatever was said of it; then look what is there."""
    others = stage.logs(PATIENT)
    await asyncio.wait([writer_appends])
    is_after = writer_appends.exception() is None
    again = await others.publish("l", [await staged(others, [b"a", b"b", b"c"])], application="app", batch=1)
    assert first is None or (again.already, again.first_offset, again.end_offset) == (True, first.first_offset, first.end_offset)
    async with await others.writer("l", owner="last") as last:
        end = last.start_offset
    values = await read_values(others, "l", 0, end)
    assert values[again.first_offset : again.end_offset] == [b"a", b"b", b"c"]
    assert sorted(value for value in values if value in (b"a", b"b", b"c")) == [b"a", b"b", b"c"]
    assert values[0] == b"before"
    assert not is_after or values[writer_appends.result()] == b"after"
    assert not [path for path in stage.store.dump() if "/requests/" in path]


@pytest.mark.parametrize("whose", ["publisher", "writer"])
@pytest.mark.parametrize("strike", [killed, killed_after_it, answer_lost, not_sent, interrupted])
def test_a_publish_that_is_struck_at_any_step_is_there_once(whose: str, strike: Strike) -> None:
    for step in range(1, STEPS_MOST):

        async def scene(stage: Stage, step: int = step) -> bool:
            return await struck(stage, whose, step, strike)

        if not play(scene):
            assert step > 5
            return
    raise AssertionError("it never ends")
