"""The admission window: waiters are admitted in their order and within the limits, and no wake-up is lost."""

from __future__ import annotations

import asyncio

import pytest

from triplicate.runtime import AdmissionWindow


class Parts:
    """A waiter that wants room for several parts of one entry and ten bytes each."""

    def __init__(self, window: AdmissionWindow, parts: int) -> None:
        self.admitted = 0
        self.error: BaseException | None = None
        self._window = window
        self._parts = parts

    def proceed(self) -> bool:
        while self.admitted < self._parts:
            if not self._window.try_occupy(1, 10):
                return False
            self.admitted += 1
        return True

    def fail(self, error: BaseException) -> None:
        self.error = error


def test_a_newcomer_queues_behind_a_waiter_that_was_granted_room_and_has_not_resumed() -> None:
    async def main() -> None:
        window, order = AdmissionWindow(2, 1000), list[str]()
        assert window.try_admit(2, 1)

        async def enter(name: str) -> None:
            await window.admit(1, 1)
            order.append(name)

        first = asyncio.ensure_future(enter("first"))
        await asyncio.sleep(0)
        window.release(2, 1)
        # The first has its room and has not resumed; there is room for one more.
        assert not window.try_admit(1, 1)
        second = asyncio.ensure_future(enter("second"))
        await asyncio.gather(first, second)
        assert order == ["first", "second"]

    asyncio.run(main())


def test_a_waiter_that_is_cancelled_after_it_was_granted_room_gives_the_room_to_the_next() -> None:
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


def test_a_waiter_that_is_cancelled_leaves_the_line_to_those_behind_it() -> None:
    async def main() -> None:
        window = AdmissionWindow(2, 1000)
        assert window.try_admit(2, 1)
        large, small = asyncio.ensure_future(window.admit(2, 1)), asyncio.ensure_future(window.admit(1, 1))
        await asyncio.sleep(0)
        window.release(1, 1)
        await asyncio.sleep(0)
        assert not small.done(), "the large one comes first"
        large.cancel()
        await asyncio.wait_for(small, 1.0)

    asyncio.run(main())


def test_a_waiter_that_withdraws_leaves_the_line_to_those_behind_it() -> None:
    window = AdmissionWindow(2, 25)
    assert window.try_admit(1, 20)
    waiters = [Parts(window, 1) for _ in range(3)]
    for waiter in waiters:
        window.enqueue(waiter)
    assert window.has_waiters
    window.limit_bytes = 35
    window.withdraw(waiters[1])
    assert [waiter.admitted for waiter in waiters] == [1, 0, 0], "the limit of entries holds the third"
    window.release(1, 20)
    assert [waiter.admitted for waiter in waiters] == [1, 0, 1]
    window.withdraw(waiters[1])
    assert not window.has_waiters


def test_a_waiter_of_several_parts_occupies_room_as_it_is_found_and_lets_nothing_between() -> None:
    window = AdmissionWindow(2, 1000)
    many, next_one = Parts(window, 3), Parts(window, 1)
    window.enqueue(many)
    window.enqueue(next_one)
    assert (many.admitted, next_one.admitted) == (2, 0)
    assert not window.try_admit(0, 0)
    window.release(1, 10)
    assert (many.admitted, next_one.admitted) == (3, 0)
    window.release(1, 10)
    assert (many.admitted, next_one.admitted) == (3, 1)
    assert (window.entries, window.size_bytes) == (2, 20)


def test_an_entry_larger_than_the_window_is_admitted_alone() -> None:
    window = AdmissionWindow(3, 100)
    assert window.try_admit(1, 500)
    assert not window.try_admit(1, 1)
    window.release(1, 500)
    assert window.is_empty
    assert window.try_admit(1, 1)
    assert not window.try_admit(1, 500)


def test_what_needs_no_admission_counts_all_the_same() -> None:
    window = AdmissionWindow(1, 100)
    assert window.try_admit(1, 10)
    window.occupy(2, 300)
    assert (window.entries, window.size_bytes) == (3, 310)
    window.release(2, 300)
    assert not window.try_admit(1, 1)


def test_a_paused_window_admits_nothing_until_it_goes_on() -> None:
    window = AdmissionWindow(4, 1000)
    window.is_paused = True
    assert not window.try_admit(1, 10)
    waiting = Parts(window, 2)
    window.enqueue(waiting)
    assert waiting.proceed() is False
    window.is_paused = False
    window.admit_waiters()
    assert waiting.admitted == 2


def test_a_window_that_ends_fails_every_waiter() -> None:
    async def main() -> None:
        window, error = AdmissionWindow(1, 1000), RuntimeError("the writer has ended")
        assert window.try_admit(1, 1)
        coroutine, queued = asyncio.ensure_future(window.admit(1, 1)), Parts(window, 1)
        await asyncio.sleep(0)
        window.enqueue(queued)
        window.fail(error)
        with pytest.raises(RuntimeError, match="has ended"):
            await coroutine
        assert queued.error is error
        window.release(1, 1)
        assert (queued.admitted, window.is_empty) == (0, True)

    asyncio.run(main())


def test_no_more_is_released_than_was_admitted() -> None:
    window = AdmissionWindow(1, 1000)
    assert window.try_admit(1, 10)
    with pytest.raises(AssertionError, match="more bytes"):
        window.release(1, 11)
