"""Which of some bookies answer. A process that may be cut off asks them before it does what others could do better."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from triplicate.client.connection.pool import ChannelPool
from triplicate.errors import BookieError
from triplicate.runtime import resolve
from triplicate.wire import LAST_ENTRY, ReadResponse


async def await_answers(pool: ChannelPool, ledger_id: int, bookie_ids: Sequence[str], suffices: Callable[[Collection[str]], bool]) -> bool:
    """Ask bookies for the last entry of a ledger until those that have answered suffice. Nothing is fenced.

    Any answer counts, also a refusal: it shows that the bookie is reached. A silent bookie is waited for until `client.read_timeout_s`.

    Args:
        suffices: whether these bookies are enough. Called for each answer.

    Returns:
        False if all have answered or failed, and those that have answered do not suffice.
    """
    waiting = dict.fromkeys(bookie_ids)
    answered: dict[str, None] = {}
    if not waiting:
        return suffices(answered)
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def on_answer(bookie_id: str, response: ReadResponse | None, error: BookieError | None) -> None:
        del waiting[bookie_id]
        if response is not None:
            answered[bookie_id] = None
        if suffices(answered):
            resolve(future, True)
        elif not waiting:
            resolve(future, False)

    for bookie_id in list(waiting):
        pool.channel(bookie_id).read(ledger_id, LAST_ENTRY, on_answer, bookie_id)
    return await future
