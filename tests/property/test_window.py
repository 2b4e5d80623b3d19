"""The admission window under any order of admissions, releases and cancellations."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from triplicate.runtime import AdmissionWindow

ENTRIES, BYTES = 3, 100


class Act(NamedTuple):
    """`what` happens to the appender at index `which` of those that it can happen to."""

    what: str
    which: int
    size_bytes: int


act = st.builds(Act, st.sampled_from(["admit", "release", "cancel", "turn"]), st.integers(0, 9), st.integers(0, 150))


@settings(max_examples=300, deadline=None)
@given(st.lists(act, max_size=60))
def test_room_is_granted_in_order_within_the_limits_and_none_is_lost(course: list[Act]) -> None:
    async def main() -> None:
        window = AdmissionWindow(ENTRIES, BYTES)
        waiting: dict[int, asyncio.Task[None]] = {}
        sizes: list[int] = []
        admitted: list[int] = []
        held: list[int] = []

        async def enter(number: int) -> None:
            await window.admit(1, sizes[number])
            admitted.append(number)
            held.append(number)

        async def turn() -> None:
            for _ in range(3):
                await asyncio.sleep(0)
            for number in [number for number, task in waiting.items() if task.done()]:
                del waiting[number]

        for step in course:
            if step.what == "admit":
                sizes.append(step.size_bytes)
                waiting[len(sizes) - 1] = asyncio.ensure_future(enter(len(sizes) - 1))
            elif step.what == "release" and held:
                window.release(1, sizes[held.pop(step.which % len(held))])
            elif step.what == "cancel" and waiting:
                list(waiting.values())[step.which % len(waiting)].cancel()
            else:
                await turn()
            assert admitted == sorted(admitted), "first come, first served"
            assert len(held) <= ENTRIES
            assert sum(sizes[number] for number in held) <= BYTES or len(held) == 1
        await turn()
        assert not waiting or held, "an empty window keeps nothing waiting"
        while held or waiting:
            if held:
                window.release(1, sizes[held.pop()])
            await turn()
        assert window.is_empty
        for task in waiting.values():
            with suppress(asyncio.CancelledError):
                await task

    asyncio.run(main())
