"""The admission window under any order of admissions, releases, cancellations, pauses and ends."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate.runtime import AdmissionWindow

ENTRIES, BYTES = 3, 100


class Act(NamedTuple):
    """An event: `what` happens to the eligible appender with index `which`."""

    what: str
    which: int
    size_bytes: int


KINDS = ["try", "wait", "wait", "wait", "release", "release", "cancel", "cancel", "turn", "turn", "pause", "fail"]
act = st.builds(Act, st.sampled_from(KINDS), st.integers(0, 9), st.sampled_from([0, 10, 40, 50, 60, 100, 150]))


class Ended(Exception):
    """The window's owner has ended."""


class Course:
    """A window, those that wait for it, and those that were admitted."""

    def __init__(self, *, coroutines: bool) -> None:
        self.coroutines = coroutines
        self.window = AdmissionWindow(ENTRIES, BYTES)
        self.sizes: list[int] = []
        self.admitted: list[int] = []
        self.held: list[int] = []
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.queued: dict[int, Queued] = {}

    def enter(self, number: int) -> None:
        self.admitted.append(number)
        self.held.append(number)

    async def wait(self, number: int) -> None:
        with suppress(Ended):
            await self.window.admit(1, self.sizes[number])
            self.enter(number)

    def occupied_bytes(self) -> int:
        return sum(self.sizes[number] for number in self.held)

    async def turn(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        self.tasks = {number: task for number, task in self.tasks.items() if not task.done()}
        self.check_first()

    def check_first(self) -> None:
        """The first that waits finds no room: a wake-up is lost otherwise."""
        for number in [*self.tasks, *self.queued][:1]:
            if not self.window.is_paused:
                assert self.held
                assert len(self.held) == ENTRIES or self.occupied_bytes() + self.sizes[number] > BYTES

    def step(self, step: Act) -> None:
        if step.what in ("try", "wait"):
            self.sizes.append(step.size_bytes)
            self.begin(len(self.sizes) - 1, waits=step.what == "wait")
        elif step.what == "release" and self.held:
            self.window.release(1, self.sizes[self.held.pop(step.which % len(self.held))])
        elif step.what == "cancel" and self.tasks:
            list(self.tasks.values())[step.which % len(self.tasks)].cancel()
        elif step.what == "cancel" and self.queued:
            self.window.withdraw(self.queued.pop(list(self.queued)[step.which % len(self.queued)]))
        elif step.what == "pause":
            self.window.is_paused = not self.window.is_paused
            self.window.admit_waiters()
        elif step.what == "fail" and step.which < 3:
            self.window.fail(Ended())
            assert not self.queued

    def begin(self, number: int, *, waits: bool) -> None:
        if not waits:
            if self.window.try_admit(1, self.sizes[number]):
                self.enter(number)
        elif self.coroutines:
            self.tasks[number] = asyncio.ensure_future(self.wait(number))
        else:
            queued = self.queued[number] = Queued(self, number)
            self.window.enqueue(queued)


class Queued:
    """A waiter without a coroutine."""

    def __init__(self, course: Course, number: int) -> None:
        self._course = course
        self._number = number

    def proceed(self) -> bool:
        if not self._course.window.try_occupy(1, self._course.sizes[self._number]):
            return False
        del self._course.queued[self._number]
        self._course.enter(self._number)
        return True

    def fail(self, error: BaseException) -> None:
        assert isinstance(error, Ended)
        del self._course.queued[self._number]


def check_bounds(course: Course) -> None:
    window = course.window
    assert window.entries <= ENTRIES
    assert window.size_bytes <= BYTES or window.entries == 1, "only one entry alone may be larger than the window"
    assert len(course.held) <= window.entries
    assert course.occupied_bytes() <= window.size_bytes


@settings(max_examples=examples(400), deadline=None)
@given(st.lists(act, min_size=20, max_size=60), st.booleans())
def test_room_is_granted_in_order_within_the_limits_and_none_is_lost(acts: list[Act], coroutines: bool) -> None:
    async def main() -> None:
        course = Course(coroutines=coroutines)
        window = course.window
        for step in acts:
            if step.what == "turn":
                await course.turn()
            else:
                course.step(step)
                if step.what == "wait":
                    await asyncio.sleep(0)  # Its task comes to the window now, and not behind the next act.
            check_bounds(course)
        await course.turn()
        assert course.admitted == sorted(course.admitted), "first come, first served"
        assert window.entries == len(course.held), "what was granted to a cancelled waiter is free again"
        assert window.size_bytes == course.occupied_bytes()
        window.is_paused = False
        window.admit_waiters()
        while course.held or course.tasks or course.queued:
            await course.turn()
            assert course.held or not (course.tasks or course.queued), "an empty window keeps nothing waiting"
            if course.held:
                window.release(1, course.sizes[course.held.pop()])
        assert window.is_empty
        assert not window.has_waiters

    asyncio.run(main())
