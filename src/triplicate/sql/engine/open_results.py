"""The open results of one session: started statements whose rows are still to be fetched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Column, Row
from triplicate.sql.engine.cursors import StreamCursor
from triplicate.sql.executor.short_reads import BATCH_BYTES

_DRAINED_ROWS = 100_000
_DRAINED_BATCHES = 64
"""Upper bound on the rows of an open result that are read into memory when its transaction begins to write."""


class OpenResults:
    """Opens results and keeps them until they are closed.

    Args:
        call: entered around each fetch, as around every call of the client.
        savepoint: the number of the innermost open savepoint.
    """

    def __init__(self, call: AbstractContextManager[None], savepoint: Callable[[], int]) -> None:
        self._call, self._savepoint = call, savepoint
        self.cursors: dict[StreamCursor, int] = {}
        """Maps each to the savepoint within which it was opened."""

    def open(
        self,
        columns: tuple[Column, ...],
        rows: list[Row],
        fetch: Callable[[int], Awaitable[tuple[list[Row], bool]]],
        finish: Callable[[], Awaitable[None]],
    ) -> StreamCursor:
        """A result whose first rows have been fetched.

        Args:
            fetch: fetches further rows, up to a number, and says whether they are the last ones.
            finish: closes the statement; called once.
        """

        async def more(max_rows: int) -> tuple[list[Row], bool]:
            with self._call:
                return await fetch(max_rows)

        async def end() -> None:
            del self.cursors[cursor]
            await finish()

        cursor = StreamCursor(columns, rows, more, end)
        self.cursors[cursor] = self._savepoint()
        return cursor

    async def drain(self) -> None:
        """Read all open results into memory, before their transaction changes the tables that they read.

        Raises:
            SqlError: 54000, one of them is too long.
        """
        for cursor in list(self.cursors):
            if not await cursor.drain(_DRAINED_ROWS, _DRAINED_BATCHES):
                most = f"{_DRAINED_ROWS} rows or {_DRAINED_BATCHES * BATCH_BYTES} bytes"
                raise SqlError("54000", f"an open result of this transaction has more than {most}; read it to its end first")

    async def close(self, *, since: int = 0) -> None:
        """Close the results that were opened within this savepoint, or all. Those before it stay: nothing was changed since they began."""
        for cursor, savepoint in list(self.cursors.items()):
            if savepoint >= since:
                await cursor.close()
