"""Work on a client's messages that sends the answers that are due whenever it waits."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any

from triplicate.sql.pg.protocol.message_stream import MessageStream


class FlushingWork(Coroutine[Any, Any, None]):
    """Runs a coroutine, and sends the answers that the client waits for before each of its waits.

    Other answers are collected and sent together at the end of the work.

    Args:
        work: the coroutine; it has not been started.
        stream: to which the work writes.
    """

    __slots__ = ("_stream", "_work")

    def __init__(self, work: Coroutine[Any, Any, None], stream: MessageStream) -> None:
        self._work = work
        self._stream = stream

    def send(self, value: Any) -> Any:
        waited_for = self._work.send(value)
        self._stream.flush_due()
        return waited_for

    def throw(self, *error: Any) -> Any:
        waited_for = self._work.throw(*error)
        self._stream.flush_due()
        return waited_for

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, None, None]:
        return self._work.__await__()
