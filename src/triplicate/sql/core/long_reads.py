"""Which statements are too long for the event loop: those that exceeded the limits of a short read before. Pure.

A statement that exceeds the limits has cost its limit for nothing and runs again in a reader's thread. Its next executions therefore go to
the thread at once. It is tried again after a number of executions that doubles with each failure, because its table may shrink or get an
index. Executions are counted, not time, so that a simulated node behaves the same each time.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.sql.core.schema_cache import SchemaCache

_REMEMBERED = 1000
"""Statements that are remembered."""
_FIRST_PAUSE = 8
"""Executions in the thread after the first failure."""
_LONGEST_PAUSE = 4096


@dataclass(slots=True)
class _Pause:
    """The executions of one statement that go to the thread."""

    length: int
    remaining: int


class LongReads:
    """Remembers statements by their text, while the version of the schema stays."""

    def __init__(self) -> None:
        self._pauses: SchemaCache[_Pause] = SchemaCache(_REMEMBERED)

    def admits(self, sql: str, schema_version: int) -> bool:
        """Whether the next execution may be tried as a short read. Counts the execution."""
        if self._pauses.find(sql, schema_version) is None:
            return True
        pause = self._pauses.get(sql)
        if not pause.remaining:
            return True
        pause.remaining -= 1
        return False

    def exceeded(self, sql: str, schema_version: int) -> None:
        """An admitted statement exceeded the limits."""
        if sql in self._pauses:
            pause = self._pauses.get(sql)
            pause.length = pause.remaining = min(2 * pause.length, _LONGEST_PAUSE)
        else:
            self._pauses.remember(sql, _Pause(_FIRST_PAUSE, _FIRST_PAUSE), schema_version)
