"""Resolving and failing a future that may be done already: its waiter was cancelled, or another event came first."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

Result = TypeVar("Result")


def resolve(future: asyncio.Future[Result], result: Result) -> None:
    """Give a future its result, unless it is done."""
    if not future.done():
        future.set_result(result)


def resolve_all(waiters: list[asyncio.Future[None]]) -> None:
    """Wake everything that waits on these futures, and empty the list."""
    for waiter in waiters:
        resolve(waiter, None)
    waiters.clear()


def fail(future: asyncio.Future[Any], error: BaseException, *, is_logged: bool = False) -> None:
    """Give a future an error, unless it is done.

    Args:
        is_logged: asyncio logs the error if nothing ever awaits the future. By default it does not, since an error that ends a
            component fails many futures at once, and every later call on the component raises it.
    """
    if not future.done():
        future.set_exception(error)
        if not is_logged:
            future.exception()


def has_result(future: asyncio.Future[Any]) -> bool:
    """Whether the future has a result: it is neither pending, cancelled nor failed."""
    return future.done() and not future.cancelled() and future.exception() is None
