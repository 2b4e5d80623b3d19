"""Cursors: the started statements of a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

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

    async def fetch(self, max_rows: int) -> list[Row]:
        start, self._next = self._next, self._next + max_rows
        return list(self._rows[start : self._next])

    async def close(self) -> None:
        self._rows = ()


class StreamCursor:
    """A reading statement whose rows are fetched on demand.

    Args:
        rows: the first rows, fetched already.
        more: fetches further rows, up to a number; fewer rows mean the end.
        finish: closes the statement; called once.
    """

    def __init__(
        self,
        columns: tuple[Column, ...],
        rows: list[Row],
        more: Callable[[int], Awaitable[list[Row]]],
        finish: Callable[[], Awaitable[None]],
    ) -> None:
        self._columns = columns
        self._rows = rows
        self._more = more
        self._finish = finish
        self._ended = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self._columns

    @property
    def rows_affected(self) -> int:
        return 0

    async def fetch(self, max_rows: int) -> list[Row]:
        rows, self._rows = self._rows[:max_rows], self._rows[max_rows:]
        missing = max_rows - len(rows)
        if missing and not self._ended:
            try:
                further = await self._more(missing)
            except BaseException:
                await self.close()
                raise
            rows += further
            if len(further) < missing:
                await self.close(keep_rows=True)
        return rows

    async def drain(self, limit: int) -> bool:
        """Fetch all remaining rows into memory, at most `limit`; False when there are more."""
        while not self._ended and len(self._rows) <= limit:
            self._rows += await self.fetch_further(limit)
        return self._ended

    async def fetch_further(self, max_rows: int) -> list[Row]:
        further = await self._more(max_rows)
        if len(further) < max_rows:
            await self.close(keep_rows=True)
        return further

    async def close(self, *, keep_rows: bool = False) -> None:
        if not keep_rows:
            self._rows = []
        if not self._ended:
            self._ended = True
            await self._finish()
