"""Cursors: the started statements of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Column, Row


class RowsCursor:
    """A statement whose rows are all in memory."""

    def __init__(self, columns: tuple[Column, ...] = (), rows: Sequence[Row] = (), rows_affected: int = 0, last_row_id: int = 0) -> None:
        self.last_row_id = last_row_id
        """The rowid that the session has inserted last."""
        self._columns = columns
        self._rows = rows
        self._next = 0
        self._rows_affected = rows_affected

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._columns

    @property
    def rows_affected(self) -> int:
        return self._rows_affected

    @property
    def is_at_end(self) -> bool:
        return self._next >= len(self._rows)

    async def fetch(self, max_rows: int) -> list[Row]:
        start, self._next = self._next, self._next + max_rows
        return list(self._rows[start : self._next])

    fetch_batch = fetch

    async def close(self) -> None:
        self._rows = ()


class StreamCursor:
    """A reading statement whose rows are fetched on demand.

    Args:
        rows: the first rows, fetched already.
        more: fetches further rows, up to a number, and says whether they are the last ones.
        finish: closes the statement; called once.
    """

    def __init__(
        self,
        columns: tuple[Column, ...],
        rows: list[Row],
        more: Callable[[int], Awaitable[tuple[list[Row], bool]]],
        finish: Callable[[], Awaitable[None]],
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._more = more
        self._finish = finish
        self._ended = self._is_lost = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._columns

    @property
    def rows_affected(self) -> int:
        return 0

    @property
    def is_at_end(self) -> bool:
        return self._ended and not self._rows

    async def fetch(self, max_rows: int) -> list[Row]:
        rows = await self.fetch_batch(max_rows)
        while len(rows) < max_rows and not self.is_at_end:
            rows += await self.fetch_batch(max_rows - len(rows))
        return rows

    async def fetch_batch(self, max_rows: int) -> list[Row]:
        if self._is_lost:
            raise SqlError("55000", "the result has no further rows: it has failed, was closed, or was rolled back", hint="Run it again.")
        if not self._rows and not self._ended:
            await self._fetch_further(max_rows)
        rows, self._rows = self._rows[:max_rows], self._rows[max_rows:]
        return rows

    async def drain(self, max_rows: int, max_batches: int) -> bool:
        """Fetch all remaining rows into memory, up to these limits; False when there are more."""
        for _ in range(max_batches):
            if self._ended or len(self._rows) > max_rows:
                break
            await self._fetch_further(max_rows)
        return self._ended

    async def _fetch_further(self, max_rows: int) -> None:
        try:
            further, is_end = await self._more(max_rows)
        except BaseException:
            await self.close()
            raise
        self._rows += further
        if is_end:
            await self.close(keep_rows=True)

    async def close(self, *, keep_rows: bool = False) -> None:
        if not keep_rows:
            self._rows = []
        if not self._ended:
            self._ended, self._is_lost = True, not keep_rows
            await self._finish()
