"""Task scopes: ownership, order, failures, cancellation. Source: trio's nurseries; `asyncio.TaskGroup`, whose order is not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from triplicate.errors import HandleClosed
from triplicate.runtime import TaskScope, deadline_after, first_of, real_host, shielded, sleep, sleep_until, timeout_at


def run(body: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(10):
            await body
        assert len(asyncio.all_tasks()) == 1, "no task is left behind"

    asyncio.run(limited())


class Broken(Exception):
    pass


async def fail(after_turns: int = 0, text: str = "") -> None:
    for _ in range(after_turns):
        await asyncio.sleep(0)
    raise Broken(text)


async def for_ever(ended: list[str], name: str) -> None:
    try:
        await asyncio.sleep(3600)
    finally:
        ended.append(name)


def test_leaving_the_block_waits_for_the_children() -> None:
    async def body() -> None:
        done: list[int] = []

        async def work(number: int) -> int:
            await asyncio.sleep(0.001 * number)
            done.append(number)
            return number

        async with TaskScope("scope") as scope:
            task = scope.spawn(work(2), name="work")
            assert scope.spawn(work(1), name="work").get_name() == "scope/work-2"
            assert list(scope.tasks) == ["work", "work-2"]
        assert (done, task.result(), scope.tasks) == ([1, 2], 2, {})

    run(body())


def test_children_are_cancelled_in_the_order_of_spawning() -> None:
    async def fail_inside(scope: TaskScope, names: list[str], ended: list[str]) -> None:
        async with scope:
            for name in names:
                scope.spawn(for_ever(ended, name), name=name)
            await fail(after_turns=1)

    async def body() -> None:
        names = [f"child-{number}" for number in range(50)]
        for way in ("error", "close"):
            ended: list[str] = []
            scope = TaskScope("scope")
            if way == "close":
                for name in names:
                    scope.spawn(for_ever(ended, name), name=name)
                await asyncio.sleep(0)
                await scope.aclose()
                await scope.aclose()
            else:
                with pytest.raises(Broken):
                    await fail_inside(scope, names, ended)
            assert ended == names

    run(body())


def test_a_failing_child_cancels_its_siblings_and_the_block_and_is_raised() -> None:
    async def scoped(ended: list[str]) -> None:
        async with TaskScope("scope") as scope:
            scope.spawn(for_ever(ended, "sibling"), name="sibling")
            scope.spawn(fail(1, "child"), name="child")
            await for_ever(ended, "block")

    async def body() -> None:
        ended: list[str] = []
        with pytest.raises(Broken, match="child"):
            await scoped(ended)
        assert sorted(ended) == ["block", "sibling"]
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0

    run(body())


def test_a_child_that_fails_while_the_block_is_left_is_raised() -> None:
    async def body() -> None:
        with pytest.raises(Broken):
            async with TaskScope("scope") as scope:
                scope.spawn(fail(3), name="child")

    run(body())


def test_no_failure_is_lost() -> None:
    async def two_children() -> None:
        async with TaskScope("scope") as scope:
            scope.spawn(fail(1, "first"), name="a")
            scope.spawn(fail(1, "second"), name="b")

    async def child_and_block() -> None:
        async with TaskScope("scope") as scope:
            scope.spawn(fail(0, "child"), name="a")
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                raise ValueError("block") from None

    async def body() -> None:
        with pytest.raises(Broken, match="first") as caught:
            await two_children()
        assert "second" in caught.value.__notes__[0]
        with pytest.raises(ValueError, match="block") as from_block:
            await child_and_block()
        assert "child" in from_block.value.__notes__[0]

    run(body())


def test_a_long_lived_scope_raises_its_first_failure_once_from_aclose() -> None:
    async def body() -> None:
        scope = TaskScope("scope")
        scope.spawn(fail(), name="child")
        await asyncio.sleep(0.01)
        assert scope.closing
        assert isinstance(scope.failure, Broken)
        with pytest.raises(Broken):
            await scope.aclose()
        await scope.aclose()

    run(body())


def test_a_failure_given_to_the_handler_is_not_raised_again() -> None:
    async def body() -> None:
        seen: list[BaseException] = []
        scope = TaskScope("scope", on_failure=seen.append)
        scope.spawn(fail(), name="child")
        await asyncio.sleep(0.01)
        await scope.aclose()
        assert [type(error) for error in seen] == [Broken]

    run(body())


def test_a_closed_scope_starts_nothing() -> None:
    async def body() -> None:
        scope = TaskScope("scope")
        await scope.aclose()
        with pytest.raises(HandleClosed, match="scope"):
            scope.spawn(fail(), name="late")

    run(body())


def test_a_child_may_end_by_cancellation_without_harm() -> None:
    async def body() -> None:
        async with TaskScope("scope") as scope:
            scope.spawn(asyncio.sleep(3600), name="child").cancel()
            other = scope.spawn(asyncio.sleep(0.001, "result"), name="other")
        assert other.result() == "result"

    run(body())


def test_cancellation_from_outside_is_always_raised() -> None:
    async def body() -> None:
        for turns in range(8):
            ended: list[str] = []

            async def block(ended: list[str] = ended) -> None:
                async with TaskScope("scope") as scope:
                    scope.spawn(for_ever(ended, "child"), name="child")
                    scope.spawn(fail(2), name="failing")
                    await asyncio.sleep(0)

            task = asyncio.ensure_future(block())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises((asyncio.CancelledError, Broken)) as caught:
                await task
            if turns <= 2:
                assert isinstance(caught.value, asyncio.CancelledError)

    run(body())


def test_a_time_limit_around_a_scope_works() -> None:
    async def limited(ended: list[str]) -> None:
        async with asyncio.timeout(0.01), TaskScope("scope") as scope:
            scope.spawn(for_ever(ended, "child"), name="child")

    async def body() -> None:
        ended: list[str] = []
        with pytest.raises(TimeoutError):
            await limited(ended)
        assert ended == ["child"]

    run(body())


def test_a_child_may_close_its_scope() -> None:
    async def body() -> None:
        ended: list[str] = []
        scope = TaskScope("scope")

        async def closer() -> str:
            await asyncio.sleep(0)
            await scope.aclose()
            return "closed"

        scope.spawn(for_ever(ended, "sibling"), name="sibling")
        task = scope.spawn(closer(), name="closer")
        assert await task == "closed"
        assert ended == ["sibling"]

    run(body())


def test_closing_that_is_cancelled_still_ends_every_child_first() -> None:
    async def body() -> None:
        ended: list[str] = []

        async def slow_to_end() -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0.01)
                ended.append("slow")

        scope = TaskScope("scope")
        scope.spawn(slow_to_end(), name="slow")
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(scope.aclose())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert scope.tasks == {}

    run(body())


def test_shielded_work_is_finished_before_the_cancellation_is_raised() -> None:
    async def body() -> None:
        steps: list[str] = []

        async def work() -> str:
            await asyncio.sleep(0.01)
            steps.append("done")
            return "result"

        assert await shielded(work()) == "result"
        task = asyncio.ensure_future(shielded(work()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["done", "done"]
        with pytest.raises(Broken):
            await shielded(fail())

    run(body())


def test_the_first_of_several_waits_wins_and_the_others_are_cancelled() -> None:
    async def body() -> None:
        ended: list[str] = []
        waits = [for_ever(ended, "a"), asyncio.sleep(0.001), for_ever(ended, "b")]
        assert (await first_of(waits, name="race"))[0] == 1
        assert ended == ["a", "b"]
        with pytest.raises(Broken):
            await first_of([asyncio.sleep(1), fail()], name="race")
        assert await first_of([asyncio.sleep(0, "x"), asyncio.sleep(0, "y")], name="race") == (0, "x")

    run(body())


def test_sleeps_and_deadlines_follow_the_clock() -> None:
    async def body() -> None:
        clock = real_host("test").clock
        begin = clock.monotonic()
        await sleep(clock, 0.02)
        assert clock.monotonic() - begin >= 0.02
        await sleep_until(clock, begin)
        assert deadline_after(clock, None) is None
        with pytest.raises(TimeoutError):
            async with timeout_at(deadline_after(clock, 0.01)):
                await sleep(clock, 5)
        async with timeout_at(None):
            await asyncio.sleep(0)

    run(body())


def test_a_scope_forgets_the_names_of_children_that_ended() -> None:
    async def main() -> None:
        scope = TaskScope("scope")
        gate = asyncio.Event()
        waiting = [scope.spawn(gate.wait(), name="wait") for _ in range(2)]
        for number in range(100):
            await scope.spawn(asyncio.sleep(0), name=f"close ledger {number}")
        await asyncio.sleep(0)
        assert list(scope._numbers) == ["wait"]
        assert list(scope.tasks) == ["wait", "wait-2"]
        gate.set()
        await asyncio.gather(*waiting)
        await asyncio.sleep(0)
        assert not scope._numbers
        await scope.aclose()

    run(main())
