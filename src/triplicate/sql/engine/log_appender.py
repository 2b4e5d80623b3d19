"""The log of a database, as its leader uses it."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from typing import Protocol


class LogAppender(Protocol):
    """The part of `triplicate.log.LogWriter` that a leadership uses."""

    @property
    def epoch(self) -> int: ...

    @property
    def next_offset(self) -> int: ...

    async def append_entry(self, values: Sequence[bytes], *, preamble: bytes | None = None) -> range: ...

    async def append_listed(self, entries: AsyncIterable[tuple[bytes, Sequence[bytes]]]) -> range: ...

    async def noop(self) -> None: ...

    def make_readable(self) -> None: ...
