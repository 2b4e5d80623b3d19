"""Started statements, as sessions hand them out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from triplicate.sql.interface import Column, Row


class RowsCursor:
    """A statement whose rows are all here."""

    def __init__(self, columns: tuple[Column, ...] = (), rows: Sequence[Row] = (), rows_affected: int = 0) -> None:
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
        start = self._next
        self._next = min(start + max_rows, len(self._rows))
        return list(self._rows[start : self._next])

    async def close(self) -> None:
        self._rows = ()


class StreamCursor:
    """A reading statement that is fetched as it is asked for.

    Args:
        rows: the first rows, fetched already.
        more: fetches up to so many further rows; fewer means the end.
        finish: frees what the statement holds; called once.
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
        taken, self._rows = self._rows[:max_rows], self._rows[max_rows:]
        missing = max_rows - len(taken)
        if missing and not self._ended:
            try:
                further = await self._more(missing)
            except BaseException:
                await self.close()
                raise
            taken += further
            if len(further) < missing:
                await self.close(keep_rows=True)
        return taken

    async def drain(self, limit: int) -> bool:
        """Fetch everything that is left into memory, at most `limit` rows; False when there is more."""
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
