"""The window of a writer: who comes first is let in first, also in the moment between being let in and going on."""

from __future__ import annotations

import asyncio

import pytest

from triplicate.runtime import AdmissionWindow


def test_nobody_slips_in_before_one_who_was_let_in_and_has_not_run_yet() -> None:
    async def main() -> None:
        window, order = AdmissionWindow(2, 1000), list[str]()
        assert window.try_admit(2, 1)

        async def enter(name: str) -> None:
            await window.admit(1, 1)
            order.append(name)

        first = asyncio.ensure_future(enter("first"))
        await asyncio.sleep(0)
        window.release(2, 1)
        # The first has its room now, but has not run since; there is room for one more.
        assert not window.try_admit(1, 1)
        second = asyncio.ensure_future(enter("second"))
        await asyncio.gather(first, second)
        assert order == ["first", "second"]

    asyncio.run(main())


def test_one_who_was_let_in_and_is_cancelled_gives_its_room_to_the_next() -> None:
    async def main() -> None:
        window = AdmissionWindow(1, 1000)
        assert window.try_admit(1, 1)
        first, second = asyncio.ensure_future(window.admit(1, 1)), asyncio.ensure_future(window.admit(1, 1))
        await asyncio.sleep(0)
        window.release(1, 1)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await asyncio.wait_for(second, 1.0)
        assert not window.try_admit(1, 1)
        window.release(1, 1)
        assert window.try_admit(1, 1)

    asyncio.run(main())


def test_one_who_waits_and_is_cancelled_leaves_the_others_their_turn() -> None:
    async def main() -> None:
        window = AdmissionWindow(2, 1000)
        assert window.try_admit(2, 1)
        great, small = asyncio.ensure_future(window.admit(2, 1)), asyncio.ensure_future(window.admit(1, 1))
        await asyncio.sleep(0)
        window.release(1, 1)
        await asyncio.sleep(0)
        assert not small.done(), "the great one comes first"
        great.cancel()
        await asyncio.wait_for(small, 1.0)

    asyncio.run(main())
