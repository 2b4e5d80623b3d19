"""How far a database's copy on this node has come: sessions wait here for a position, or for a state that is recent enough."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from triplicate.errors import TriplicateError
from triplicate.runtime import Host, deadline_after, resolve, sleep, timeout_at
from triplicate.sql.core.copy_freshness import CopyFreshness

QUESTION_LIMIT_S: Final = 2.0
"""Time limit of one question for the end of the log."""
QUESTION_PAUSE_S: Final = 0.1
"""Least time between two questions. All sessions share the answers."""


class CopyProgress:
    """Knows the copy's position and how recent it is. `run` must run as a task of its own for the latter.

    Nothing is asked while no session wants to know.

    Attributes:
        find_end: asks for an offset that no record acknowledged before the call exceeds; None where nobody can be asked.
        hurry: called when a session waits for the copy to move, and after each move that was not far enough.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._name = name
        self.find_end: Callable[[], Awaitable[int]] | None = None
        self.hurry: Callable[[], None] = lambda: None
        self.freshness = CopyFreshness()
        self.failure = "nobody has asked for it yet"
        """Why the last question for the end of the log has no answer; empty if it has one."""
        self.position = 0
        self._at_position: list[tuple[int, asyncio.Future[None]]] = []
        self._at_news: list[asyncio.Future[None]] = []
        """Those that wait until the copy is known to be more recent, or a question has failed."""
        self._wanted = asyncio.Event()

    def now(self) -> float:
        """Seconds of the clock by which the copy's age is measured."""
        return self._host.clock.elapsed()

    def moved(self, position: int) -> None:
        """The copy has moved to a position."""
        self.position = position
        if self._at_position:
            reached = [waiter for wanted, waiter in self._at_position if wanted <= position]
            for waiter in reached:
                resolve(waiter, None)
        if self.freshness.moved(position):
            self._tell()
        if any(wanted > position for wanted, _ in self._at_position) or self._at_news:
            self.hurry()

    def _tell(self) -> None:
        for waiter in self._at_news:
            resolve(waiter, None)

    async def reach(self, position: int, waiter: asyncio.Future[None]) -> None:
        """Wait until the copy has reached a position.

        Args:
            waiter: a new future. The caller may fail it, which ends the wait by that error.
        """
        if self.position >= position:
            return
        place = position, waiter
        self._at_position.append(place)
        self.hurry()
        try:
            await waiter
        finally:
            self._at_position.remove(place)

    async def news(self, waiter: asyncio.Future[None]) -> None:
        """Ask for the end of the log, and wait until the copy is known to be more recent than before, or the question has failed.

        Args:
            waiter: as that of `reach`.
        """
        self._at_news.append(waiter)
        self.hurry()
        self._wanted.set()
        try:
            await waiter
        finally:
            self._at_news.remove(waiter)

    async def run(self) -> None:
        """Ask for the end of the log whenever a session wants to know how recent the copy is. Ends by cancellation."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._ask()
            await sleep(self._host.clock, QUESTION_PAUSE_S)
            if self._at_news:
                self._wanted.set()  # An answer may be of a time that was too early for a session.

    async def _ask(self) -> None:
        find_end, asked_at = self.find_end, self.now()
        if find_end is None:
            self.failure = "this copy belongs to no node"
            self._tell()
            return
        try:
            async with timeout_at(deadline_after(self._host.clock, QUESTION_LIMIT_S)):
                end = await find_end()
        except TimeoutError:
            self.failure = f"there was no answer within {QUESTION_LIMIT_S:g} s"
        except TriplicateError as error:
            self.failure = str(error)
        else:
            self.failure = ""
            if self.freshness.answered(end, asked_at):
                self._tell()
            return
        self._host.trace("sql.end_unknown", database=self._name, reason=self.failure)
        self._tell()
