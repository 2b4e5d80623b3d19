"""The point of a log at which a database is wanted, and the search for it among the log's batches. Pure.

A position is an offset of the log: everything before it belongs to the database as it was. Each record is one whole transaction, or a part
of a large one. So a position lies between two transactions, even where several share an entry; one between two parts stands for the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from triplicate.errors import ArgumentError
from triplicate.sql.core.records import (
    BatchHeader,
    SchemaChange,
    decode_header,
    decode_transaction,
    encode_header,
    part_of,
    transaction_number,
)

OR_LATER = " or later"
_NUMBER_BITS = 40
_LARGEST = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class AtPosition:
    """All records before an offset.

    Args:
        or_later: any later position may be taken instead.
    """

    position: int
    or_later: bool = False

    def __str__(self) -> str:
        return f"position {self.position}{OR_LATER if self.or_later else ''}"


@dataclass(frozen=True, slots=True)
class AtTime:
    """All records whose log time is not later, ms since the epoch. The log's time follows its leaders' clocks and never goes back."""

    time_ms: int

    def __str__(self) -> str:
        return f"time {time_text(self.time_ms)}"


@dataclass(frozen=True, slots=True)
class AtTransaction:
    """All records up to this transaction, itself included. Ids are those of ``pg_current_xact_id()``."""

    transaction_id: int

    @property
    def epoch(self) -> int:
        return self.transaction_id >> _NUMBER_BITS

    @property
    def number(self) -> int:
        return self.transaction_id & ((1 << _NUMBER_BITS) - 1)

    def __str__(self) -> str:
        return f"transaction {self.transaction_id}"


Target = AtPosition | AtTime | AtTransaction


def time_text(time_ms: int) -> str:
    """A time in UTC with milliseconds, as `parse_time` reads it."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds")


def parse_time(text: str) -> int:
    """A moment in ISO 8601, in UTC where it has no offset; ms since the epoch.

    A date alone is its first moment. Raises ArgumentError.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ArgumentError(f"{text!r} is not a time: write it as 2026-01-31 12:00:00, in UTC, or with an offset behind it") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def parse_number(text: str, what: str) -> int:
    """A position, or a transaction's id. Raises ArgumentError."""
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit()) or int(stripped) > _LARGEST:
        raise ArgumentError(f"{text!r} is not a {what}: it is a whole number, not below 0")
    return int(stripped)


def parse_target(text: str) -> Target:
    """``position N``, ``position N or later``, ``time T`` or ``transaction ID``; the value may be in quotes. Raises ArgumentError."""
    kind, _, value = text.strip().partition(" ")
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] == "'":
        value = value[1:-1]
    match kind.lower():
        case "position":
            number = value.removesuffix(OR_LATER)
            return AtPosition(parse_number(number, "position"), or_later=number != value)
        case "time":
            return AtTime(parse_time(value))
        case "transaction":
            return AtTransaction(parse_number(value, "transaction's id"))
    raise ArgumentError(f"{text!r} names no point of a log: write 'position 123', 'time 2026-01-31 12:00:00' or 'transaction 456'")


class TargetSearch:
    """Finds a target among the batches of a log, which are given in order.

    Args:
        target: None for everything.
        position: where the batches begin.
    """

    def __init__(self, target: Target | None, position: int) -> None:
        self._target = target
        self.position = position
        """Offset after the last record that belongs to the target."""
        self.time_ms = 0
        """Log time of the last batch with such a record; 0 before the first."""
        self.reached = isinstance(target, AtPosition) and target.position <= position
        """Whether no later record belongs to the target."""

    def take(self, first_offset: int, header: BatchHeader, records: Sequence[bytes]) -> int:
        """How many of a batch's records, from the first on, belong to the target. Raises FormatError."""
        count = self._count(first_offset, header, records)
        if count:
            self.position = first_offset + count
            self.time_ms = max(self.time_ms, header.time_ms)
        return count

    def _count(self, first_offset: int, header: BatchHeader, records: Sequence[bytes]) -> int:
        match self._target:
            case _ if self.reached:
                return 0
            case AtPosition(position):
                self.reached = first_offset + len(records) >= position
                return max(0, min(len(records), position - first_offset))
            case AtTime(time_ms):
                self.reached = header.time_ms > time_ms
                return 0 if self.reached else len(records)
            case AtTransaction():
                return self._through_transaction(self._target, header, records)
        return len(records)

    def _through_transaction(self, target: AtTransaction, header: BatchHeader, records: Sequence[bytes]) -> int:
        if header.epoch != target.epoch:
            return len(records)
        for index, record in enumerate(records):
            if transaction_number(record) == target.number and part_of(record).is_last:
                self.reached = True
                return index + 1
        return len(records)

    @property
    def is_missing(self) -> bool:
        """Whether the target was not met in what has been given so far, and cannot be taken for everything."""
        match self._target:
            case AtPosition(position):
                return self.position < position
            case AtTransaction():
                return not self.reached
        return False


def preamble_of_first(preamble: bytes, records: Sequence[bytes]) -> bytes:
    """The header of a batch that has only these, its first records: the schema behind it is another where a later record changes it.

    Raises:
        FormatError: the header or a record cannot be read.
    """
    header = decode_header(preamble)
    if header.schema_version_after == header.schema_version_before:
        return preamble
    version, digest = header.schema_version_before, header.digest_before
    for record in records:
        for operation in decode_transaction(record, header.tables).operations:
            if isinstance(operation, SchemaChange):
                version, digest = version + 1, operation.digest_after
    return encode_header(replace(header, schema_version_after=version, digest_after=digest))
