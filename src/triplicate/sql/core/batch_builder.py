"""The building of one log entry from transactions: which of them fit, and the entry's preamble. Pure.

A builder collects the records of one batch. It refuses a transaction that would make the entry too large, and is then as it was before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from functools import partial
from typing import Protocol

from triplicate.sql.core.notifications import Notification, notifications_of
from triplicate.sql.core.records import (
    BatchHeader,
    EncodedOperations,
    RowChange,
    TableDictionary,
    Transaction,
    encode_header,
    encode_operations,
    encode_record,
    encode_row_change,
    encode_transaction,
)
from triplicate.sql.core.statement_results import encode_results
from triplicate.sql.core.table_shape import TableShape

MAX_ENTRY_BYTES = 4 * 1024 * 1024
"""Upper bound on an entry: preamble, records and margin."""
AIM_ENTRY_BYTES = 1024 * 1024
"""A batch that has reached this size accepts no further transaction."""
ENTRY_MARGIN_BYTES = 64 * 1024
"""Upper bound on the bytes that the log adds to preamble and records."""
MAX_TRANSACTION_BYTES = MAX_ENTRY_BYTES - ENTRY_MARGIN_BYTES
"""Upper bound on a transaction in one record. A larger one has several."""
DEFAULT_TRANSACTION_BYTES = 1024**3
"""Upper bound on a transaction, unless the settings say otherwise."""

MakeHeader = Callable[[tuple[TableShape, ...]], BatchHeader]
"""Makes the batch's header for these tables."""


class BatchFit(Enum):
    """Whether a transaction became part of the batch."""

    ADDED = "added"
    NEXT_BATCH = "next batch"
    """It does not fit beside the transactions before it."""
    TOO_LARGE = "too large"
    """It does not fit any batch."""
    IN_PARTS = "in parts"
    """It has to be written in several records, which are a batch of their own each."""


class EncodedChanges(Protocol):
    """The first changes of a transaction, which were encoded with the batch's dictionary while it ran."""

    @property
    def size_bytes(self) -> int: ...

    def all(self) -> Iterable[EncodedOperations]: ...


class TransactionParts(Protocol):
    """The records of a transaction that is larger than an entry: its parts."""

    @property
    def count(self) -> int: ...

    @property
    def tables(self) -> Sequence[str]:
        """The names of the changed tables."""

    def read(self, index: int) -> tuple[bytes, list[bytes]]:
        """The preamble and the one record of a part, counted from 0. Blocks."""


class BatchBuilder:
    """The records of one batch, in order.

    Args:
        make_header: called when the size of the header matters, and for the preamble.
    """

    def __init__(self, make_header: MakeHeader) -> None:
        self._make_header = make_header
        self.dictionary = TableDictionary()
        self.parts: TransactionParts | None = None
        """The records, where the batch is one transaction that is larger than an entry."""
        self.records: list[bytes] = []
        self.numbers: list[int] = []
        """Transaction numbers, one for each record."""
        self.requests: list[tuple[str, int, bytes]] = []
        """Request id, transaction number, encoded results."""
        self.notifications: list[Notification] = []
        """Of the transactions, in order."""
        self.size_bytes = 0
        """Bytes of the records."""
        self.last_record_bytes = 0
        """Bytes of the record that was tried last."""

    @property
    def is_full(self) -> bool:
        """Whether further transactions belong to the next batch."""
        return self.size_bytes > AIM_ENTRY_BYTES or self.parts is not None

    def has_request(self, request_id: str) -> bool:
        return any(request_id == other for other, _, _ in self.requests)

    def add(self, transaction: Transaction) -> BatchFit:
        """Encode a transaction as one more record. Unless it is added, the batch stays as it is."""
        # All of it is encoded before anything is kept, so that the batch stays as it is also where that fails.
        notifications = notifications_of(transaction.operations)
        results = encode_results(transaction.results) if transaction.request_id else b""
        fit = self._add(transaction.number, partial(encode_transaction, transaction))
        if fit is BatchFit.ADDED:
            self.notifications += notifications
            if transaction.request_id:
                self.requests.append((transaction.request_id, transaction.number, results))
        return fit

    def add_row(self, number: int, change: RowChange) -> BatchFit:
        """As `add`, for a transaction of this number that consists of one row's change and has no request id."""
        return self._add(number, partial(encode_row_change, number, change))

    def add_encoded(self, transaction: Transaction, first: EncodedChanges) -> BatchFit:
        """As `add`, for a transaction whose first changes are encoded already. `transaction` has its last operations.

        It is `IN_PARTS` where it is too large for one record and no other transaction is in the batch.
        """
        last = encode_operations(transaction.operations, self.dictionary)
        results = encode_results(transaction.results) if transaction.request_id else b""
        size = first.size_bytes + len(last.data) + len(results) + ENTRY_MARGIN_BYTES
        if size + len(self.preamble()) > MAX_ENTRY_BYTES:
            return BatchFit.NEXT_BATCH if self.records else BatchFit.IN_PARTS
        fit = self._add(transaction.number, lambda _: encode_record(transaction, [*first.all(), last]))
        if fit is BatchFit.ADDED and transaction.request_id:
            self.requests.append((transaction.request_id, transaction.number, results))
        return fit

    def _add(self, number: int, encode: Callable[[TableDictionary], bytes]) -> BatchFit:
        """Add the record that `encode` makes, which may add tables to the dictionary."""
        known_tables = len(self.dictionary.shapes)
        try:
            record = encode(self.dictionary)
        except BaseException:
            self.dictionary.truncate(known_tables)
            raise
        self.last_record_bytes = len(record)
        # Few entries come near the limit, so the header, which names every table, is measured only then.
        size = len(record) + self.size_bytes + ENTRY_MARGIN_BYTES
        if size > AIM_ENTRY_BYTES and size + len(self.preamble()) > MAX_ENTRY_BYTES:
            self.dictionary.truncate(known_tables)
            return BatchFit.NEXT_BATCH if self.records else BatchFit.TOO_LARGE
        self.records.append(record)
        self.size_bytes += len(record)
        self.numbers.append(number)
        assert len(self.numbers) == len(self.records), "each record has its number"
        return BatchFit.ADDED

    def preamble(self) -> bytes:
        """The encoded header for the records so far."""
        return encode_header(self._make_header(tuple(self.dictionary.shapes)))
