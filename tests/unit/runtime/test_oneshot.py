"""Futures that may be done already when they are resolved or failed."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from triplicate.runtime import fail, resolve, resolve_all


def test_the_first_result_or_error_stays() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        one: asyncio.Future[int] = loop.create_future()
        resolve(one, 1)
        resolve(one, 2)
        fail(one, OSError("late"))
        assert await one == 1
        other: asyncio.Future[int] = loop.create_future()
        fail(other, OSError("first"))
        fail(other, OSError("second"))
        resolve(other, 3)
        with pytest.raises(OSError, match="first"):
            await other

    asyncio.run(main())


def test_a_cancelled_waiter_is_left_alone() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        waiters: list[asyncio.Future[None]] = [loop.create_future() for _ in range(2)]
        kept = list(waiters)
        waiters[0].cancel()
        fail(waiters[0], OSError("late"))
        resolve_all(waiters)
        assert not waiters
        assert kept[0].cancelled()
        await kept[1]

    asyncio.run(main())


@pytest.mark.parametrize("is_logged", [False, True])
def test_an_error_that_nothing_awaits_is_logged_on_request_only(is_logged: bool) -> None:
    async def main() -> int:
        loop, logged = asyncio.get_running_loop(), list[dict[str, Any]]()
        loop.set_exception_handler(lambda _, context: logged.append(context))
        fail(loop.create_future(), OSError("nobody asks"), is_logged=is_logged)
        gc.collect()
        await asyncio.sleep(0)
        return len(logged)

    assert asyncio.run(main()) == is_logged
