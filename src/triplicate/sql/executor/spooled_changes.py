"""The changes of one large transaction beside the memory: encoded pieces in a temporary file of SQLite's, until they become records.

A piece never has changes from both sides of a point to which the transaction can still be rolled back, so undoing drops whole pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import apsw

from triplicate.errors import SqlError
from triplicate.sql.core.batch_builder import MAX_TRANSACTION_BYTES
from triplicate.sql.core.notifications import Notification, notifications_of
from triplicate.sql.core.records import EncodedOperations, Operation, SchemaChange, TableDictionary, encode_operations

PIECE_BYTES = 1024 * 1024
"""Changes are spooled when they take this many bytes by their upper bound."""
SMALLER = "Use several smaller transactions."
_CACHE_KIB = 4096
"""Pages that SQLite keeps in memory."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Consecutive captured changes that are spooled.

    Args:
        number: from 1.
        end: captured changes before its end, since the transaction began.
        operations, changes: as `EncodedOperations`.
        size_bytes: of the encoded operations.
        tables: the length of the batch's dictionary behind it.
        schema_changes: number of them; `digest` is that of the schema after the last.
        notifications: those among them.
        reached: the greatest rowids that it inserts, by table with a counter of AUTOINCREMENT.
    """

    number: int
    end: int
    operations: int
    changes: int
    size_bytes: int
    tables: int
    schema_changes: int
    digest: bytes
    notifications: tuple[Notification, ...]
    reached: Mapping[str, int]


class SpooledChanges:
    """The pieces of one transaction, in order.

    Args:
        limit_bytes: upper bound on the encoded changes of one transaction.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._connection: apsw.Connection | None = None
        self.dictionary = TableDictionary()
        """The tables of the transaction's batch."""
        self._tables_before = 0
        """Tables that other transactions of the batch have added."""
        self.pieces: list[Piece] = []
        self.size_bytes = 0

    @property
    def end(self) -> int:
        """Captured changes that are spooled."""
        return self.pieces[-1].end if self.pieces else 0

    def begin(self) -> None:
        """Another transaction begins. The room of the one before is given back."""
        self._tables_before = len(self.dictionary.shapes)
        if self.pieces:
            self.pieces.clear()
            self.size_bytes = 0
            self.close()

    def add(self, operations: Sequence[Operation], end: int, reached: Mapping[str, int]) -> SqlError | None:
        """Spool further changes; the error where the transaction is too large with them. It must be undone then, with these.

        Args:
            end, reached: as in `Piece`.

        Raises:
            apsw.Error: the temporary file cannot grow.
        """
        encoded = encode_operations(operations, self.dictionary)
        digests = [operation.digest_after for operation in operations if isinstance(operation, SchemaChange)]
        number, size, sent = len(self.pieces) + 1, len(encoded.data), tuple(notifications_of(operations))
        refusal = self._refusal(size, end)
        self._file().execute("insert into pieces(number, data) values(?, ?)", (number, b"" if refusal else encoded.data))
        counts = encoded.operations, encoded.changes, size, len(self.dictionary.shapes), len(digests)
        self.pieces.append(Piece(number, end, *counts, digests[-1] if digests else b"", sent, reached))
        self.size_bytes += size
        return refusal

    def _refusal(self, size: int, end: int) -> SqlError | None:
        if size > MAX_TRANSACTION_BYTES:
            return SqlError("54000", f"a row takes {size} bytes in the log; one may have {MAX_TRANSACTION_BYTES}")
        if self.size_bytes + size > self._limit_bytes:
            reason = f"the transaction's changes take more than {self._limit_bytes} bytes, which row {end} goes beyond"
            return SqlError("54000", reason, hint=f"{SMALLER} The limit is node.transaction_bytes.")
        return None

    def cut(self, end: int) -> None:
        """Drop the changes from `end` on."""
        kept = len(self.pieces)
        while kept and self.pieces[kept - 1].end > end:
            kept -= 1
        assert (self.pieces[kept - 1].end if kept else 0) == end, "a piece has changes of one side of a savepoint only"
        self._file().execute("delete from pieces where number > ?", (kept,))
        self.size_bytes -= sum(piece.size_bytes for piece in self.pieces[kept:])
        del self.pieces[kept:]
        self.dictionary.truncate(self.pieces[-1].tables if kept else self._tables_before)

    def notifications(self) -> list[Notification]:
        """Those among the changes."""
        return [one for piece in self.pieces for one in piece.notifications]

    def all(self) -> Iterator[EncodedOperations]:
        """The operations of all pieces."""
        return self.read(self.pieces)

    def read(self, pieces: Sequence[Piece]) -> Iterator[EncodedOperations]:
        """The operations of pieces."""
        for piece in pieces:
            ((data,),) = self._file().execute("select data from pieces where number = ?", (piece.number,))
            yield EncodedOperations(piece.operations, piece.changes, data)

    def close(self) -> None:
        """Delete the file. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close(True)

    def _file(self) -> apsw.Connection:
        if self._connection is None:
            # A database without a name is a temporary file: SQLite makes it when its pages exceed the cache, and deletes it at the end.
            connection = self._connection = apsw.Connection("")
            for pragma in ("journal_mode = off", "synchronous = off", f"cache_size = -{_CACHE_KIB}"):
                connection.execute(f"pragma {pragma}")
            connection.execute("create table pieces(number integer primary key, data blob)")
        return self._connection
