"""Encoding and decoding of the row log: the preamble and the records of a batch of transactions.

One log entry is one batch. Its preamble is the batch header with a dictionary of the tables that occur. Each record is one client
transaction: its effects in their order, and a summary of its results. So a reader can start at any entry.

    header       'TB', version u8 (2), flags u8 (0), database 16 bytes, epoch u64, batch u64, schema version before and after u32,
                 schema digest before and after 16 bytes each, time u64, forget before u64 (both ms; not in version 1; all
                 little-endian), number of tables, tables (`table_shape.py`)
    record       version u8 (1), kind u8 (1 transaction), part u8, parts u8 (1 of 1), number, request id, results, operations
                 version u8 (2), kind u8 (1 transaction), part, parts, changes of the parts before, number, request id, results, operations
    result       rows affected, flag u8 (0 no rows, 1 rows follow, 2 rows were too large to keep), [columns, rows, each column]
    operation    1 insert, 2 update, 3 delete: flags u8 (1 moved, 2 keys, 4 old), table, rows, [rowids], [new rowids if moved],
                 [key columns if keys], [stored columns new], [stored columns old if old]
                 8 schema: SQL text, digest of the schema afterwards 16 bytes
                 9 setting: name, one column of one value

A transaction that is larger than an entry has several records, each in an entry of its own. They are neighbours, and the log has all of
them or none. The last has the request id and the results. Numbers without a size are varints. Kinds 2 (snapshot pointer), 3 (check) and 4
(lease) are reserved; a reader of this version refuses them by name.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from typing import NamedTuple

from triplicate.errors import FormatError
from triplicate.sql.core.binary import read_count, read_exactly, read_text, read_varint, write_text, write_varint
from triplicate.sql.core.column_codec import Value, decode_column, decode_columns, decode_single_values, encode_column, encode_single_values
from triplicate.sql.core.statement_results import StatementResult, encode_results, read_results
from triplicate.sql.core.table_shape import TableShape, decode_tables, encode_table

FORMAT_VERSION = 1
PART_VERSION = 2
"""The version of a record that is one of several of its transaction."""
HEADER_VERSION = 2
DIGEST_SIZE = 16
_HEADER = struct.Struct("<2sBB16sQQII16s16s")
_TIMES = struct.Struct("<QQ")
_MAGIC = b"TB"
_TRANSACTION = 1
_KIND_NAMES = {2: "snapshot pointer", 3: "check", 4: "lease"}
_SCHEMA = 8
_SETTING = 9
_MOVED, _KEYS, _OLD = 1, 2, 4
_RECORD_START = bytes((FORMAT_VERSION, _TRANSACTION, 1, 1))
_PART_START = bytes((PART_VERSION, _TRANSACTION))
_NO_REQUEST = b"\0\0"
"""An empty request id and no results: most transactions have neither."""
_ONE_OPERATION = _NO_REQUEST + b"\1"
Column = Sequence[Value]


class RowKind(IntEnum):
    INSERT = 1
    UPDATE = 2
    DELETE = 3


_ROW_KINDS = {int(kind): kind for kind in RowKind}
"""By the byte of an operation; a call of the class takes as long as the rest of a small operation's decoding."""


@dataclass(slots=True)
class RowRun:
    """Consecutive changes of one kind to one table, by column; every sequence has `count` values.

    `rowids` are those before the change (of an insert: the new ones), None in a WITHOUT ROWID table. `new` and `old` have one
    sequence for each of the table's columns. `keys` (the old values of the primary key's columns) are always there for updates
    and deletes of a WITHOUT ROWID table; elsewhere they are for readers that know rows by their declared key.
    """

    table: TableShape
    kind: RowKind
    count: int
    rowids: Sequence[int] | None = None
    new_rowids: Sequence[int] | None = None
    keys: Sequence[Column] | None = None
    new: Sequence[Column] | None = None
    old: Sequence[Column] | None = None


class RowChange(NamedTuple):
    """The change of one row, as it is encoded."""

    table: TableShape
    operation: bytes
    """The start of its operation, by `row_operation`."""
    values: Sequence[Value]
    """In the order of the operation: rowid, new rowid, key, new columns, old columns, as far as it has them."""


@dataclass(frozen=True, slots=True)
class SchemaChange:
    sql: str
    digest_after: bytes


@dataclass(frozen=True, slots=True)
class SettingChange:
    """`name` is ``user_version``, ``application_id``, ``sequence:<table>`` or ``change_images:<table>``."""

    name: str
    value: Value


Operation = RowRun | SchemaChange | SettingChange


class TransactionPart(NamedTuple):
    """The place of a record among those of its transaction."""

    number: int
    """From 1."""
    of: int
    changes_before: int
    """The changes of rows and of the schema in the parts before it."""

    @property
    def is_last(self) -> bool:
        return self.number == self.of


WHOLE = TransactionPart(1, 1, 0)


@dataclass(slots=True)
class Transaction:
    """One client transaction, or a part of one; `number` counts from 1 in each epoch."""

    number: int
    operations: list[Operation] = field(default_factory=list)
    request_id: str = ""
    results: tuple[StatementResult, ...] = ()
    part: TransactionPart = WHOLE


@dataclass(frozen=True, slots=True)
class BatchHeader:
    database: bytes
    """16 bytes, the database's identity."""
    epoch: int
    batch: int
    schema_version_before: int
    schema_version_after: int
    digest_before: bytes
    digest_after: bytes
    tables: tuple[TableShape, ...] = ()
    time_ms: int = 0
    """The log's own time, ms since the epoch: the leader's clock, never before an earlier batch's. 0 in a header of version 1."""
    forget_before_ms: int = 0
    """Results and ids of transactions from before this time are deleted with this batch."""


class TableDictionary:
    """The tables of one batch, numbered in the order of their first use."""

    def __init__(self) -> None:
        self._by_identity: dict[int, int] = {}
        self._by_value: dict[TableShape, int] = {}
        self.shapes: list[TableShape] = []

    def index(self, shape: TableShape) -> int:
        known = self._by_identity.get(id(shape))
        if known is None:
            # Only shapes in `shapes` are known by identity. They are alive, so their identities are not reused.
            known = self._by_value.get(shape)
            if known is None:
                known = self._by_value[shape] = len(self.shapes)
                self.shapes.append(shape)
                self._by_identity[id(shape)] = known
        return known

    def truncate(self, length: int) -> None:
        """Drop the tables that a refused transaction has added."""
        for shape in self.shapes[length:]:
            del self._by_value[shape]
            del self._by_identity[id(shape)]
        del self.shapes[length:]


def encode_header(header: BatchHeader) -> bytes:
    """A header of version 2, or of version 1 when it has no time."""
    out = bytearray(
        _HEADER.pack(
            _MAGIC,
            HEADER_VERSION if header.time_ms else 1,
            0,
            header.database,
            header.epoch,
            header.batch,
            header.schema_version_before,
            header.schema_version_after,
            header.digest_before,
            header.digest_after,
        )
    )
    if header.time_ms:
        out += _TIMES.pack(header.time_ms, header.forget_before_ms)
    write_varint(out, len(header.tables))
    for shape in header.tables:
        out += encode_table(shape)
    return bytes(out)


def decode_header(data: bytes) -> BatchHeader:
    """Raises FormatError: not a batch header, or of an unknown version."""
    try:
        magic, version, flags, database, epoch, batch, before, after, digest_before, digest_after = _HEADER.unpack_from(data)
        if magic != _MAGIC:
            raise ValueError("it does not begin with 'TB'")
        if version not in (1, HEADER_VERSION) or flags:
            raise ValueError(f"version {version}, flags {flags:#x}; this release knows versions up to {HEADER_VERSION}, flags 0")
        time_ms, forget_before_ms = _TIMES.unpack_from(data, _HEADER.size) if version == HEADER_VERSION else (0, 0)
        tables = decode_tables(data[_HEADER.size + (_TIMES.size if version == HEADER_VERSION else 0) :])
    except (IndexError, ValueError, struct.error) as error:
        raise FormatError(f"the header of a batch of transactions cannot be read: {error}") from error
    return BatchHeader(database, epoch, batch, before, after, digest_before, digest_after, tables, time_ms, forget_before_ms)


def encode_transaction(transaction: Transaction, dictionary: TableDictionary) -> bytes:
    """One record. New tables are added to `dictionary`."""
    return encode_record(transaction, [encode_operations(transaction.operations, dictionary)])


class EncodedOperations(NamedTuple):
    """Consecutive operations of a transaction, encoded with the tables of its batch."""

    operations: int
    changes: int
    """Of rows and of the schema."""
    data: bytes


def encode_operations(operations: Sequence[Operation], dictionary: TableDictionary) -> EncodedOperations:
    """Operations without the rest of a record. New tables are added to `dictionary`."""
    out, changes = bytearray(), 0
    for operation in operations:
        if isinstance(operation, RowRun):
            _encode_run(out, operation, dictionary.index(operation.table))
            changes += operation.count
        elif isinstance(operation, SchemaChange):
            out.append(_SCHEMA)
            write_text(out, operation.sql)
            out += operation.digest_after
            changes += 1
        else:
            out.append(_SETTING)
            write_text(out, operation.name)
            encode_column(out, (operation.value,))
    return EncodedOperations(len(operations), changes, bytes(out))


def decode_operations(encoded: EncodedOperations, tables: Sequence[TableShape]) -> list[Operation]:
    """The operations that `encode_operations` has encoded."""
    operations: list[Operation] = []
    position = 0
    for _ in range(encoded.operations):
        operation, position = _decode_operation(encoded.data, position, tables)
        operations.append(operation)
    return operations


def encode_record(transaction: Transaction, encoded: Sequence[EncodedOperations]) -> bytes:
    """The record of a transaction, or of a part of one, whose operations are encoded: those that it has itself do not count."""
    part = transaction.part
    out = bytearray(_RECORD_START if part.of == 1 else _PART_START)
    if part.of > 1:
        for number in part:
            write_varint(out, number)
    write_varint(out, transaction.number)
    if transaction.request_id or transaction.results:
        write_text(out, transaction.request_id)
        out += encode_results(transaction.results)
    else:
        out += _NO_REQUEST
    write_varint(out, sum(one.operations for one in encoded))
    for one in encoded:
        out += one.data
    return bytes(out)


def encode_row_change(number: int, change: RowChange, dictionary: TableDictionary) -> bytes:
    """The record of a transaction that consists of one row's change and has no request id, as `encode_transaction` makes it.

    Most transactions are of this kind. A new table is added to `dictionary`.
    """
    out = bytearray(_RECORD_START)
    write_varint(out, number)
    out += _ONE_OPERATION
    out += change.operation
    write_varint(out, dictionary.index(change.table))
    out.append(1)
    encode_single_values(out, change.values)
    return bytes(out)


def decode_transaction(record: bytes, tables: Sequence[TableShape]) -> Transaction:
    """The transaction in a record, given its batch's tables.

    Raises:
        FormatError: damaged, or of an unknown kind or version.
    """
    try:
        part, position = _read_start(record)
        number, position = read_varint(record, position)
        request_id = ""
        results: tuple[StatementResult, ...] = ()
        if record.startswith(_NO_REQUEST, position):
            position += len(_NO_REQUEST)
        else:
            request_id, position = read_text(record, position)
            results, position = read_results(record, position)
        count, position = read_varint(record, position)
        operations: list[Operation] = []
        for _ in range(count):
            operation, position = _decode_operation(record, position, tables)
            operations.append(operation)
        if position != len(record):
            raise ValueError(f"{len(record) - position} bytes too many")
    except (IndexError, ValueError, struct.error) as error:
        raise FormatError(f"a transaction's record cannot be read: {error}") from error
    return Transaction(number, operations, request_id, results, part)


def _read_start(record: bytes) -> tuple[TransactionPart, int]:
    """The place of a record among those of its transaction, and where its number begins. Raises ValueError, IndexError."""
    version, kind = record[0], record[1]
    if version not in (FORMAT_VERSION, PART_VERSION):
        raise ValueError(f"version {version}; this release knows versions up to {PART_VERSION}")
    if kind != _TRANSACTION:
        raise ValueError(f"kind {kind} ({_KIND_NAMES.get(kind, 'unknown')}), which this release does not read")
    if version == FORMAT_VERSION:
        number, of, before, position = record[2], record[3], 0, 4
    else:
        number, position = read_varint(record, 2)
        of, position = read_varint(record, position)
        before, position = read_varint(record, position)
    if not 1 <= number <= of or (of == 1) != (version == FORMAT_VERSION):
        raise ValueError(f"part {number} of {of} in a record of version {version}")
    return TransactionPart(number, of, before), position


def part_of(record: bytes) -> TransactionPart:
    """The place of a record among those of its transaction. Raises FormatError as `decode_transaction`."""
    if record.startswith(_RECORD_START):
        return WHOLE
    try:
        return _read_start(record)[0]
    except (IndexError, ValueError) as error:
        raise FormatError(f"a transaction's record cannot be read: {error}") from error


def transaction_number(record: bytes) -> int:
    """The number of the transaction in a record, without the rest. Raises FormatError as `decode_transaction`."""
    try:
        return read_varint(record, _read_start(record)[1])[0]
    except (IndexError, ValueError) as error:
        raise FormatError(f"a transaction's record cannot be read: {error}") from error


class JoinedRows(NamedTuple):
    """Consecutive transactions of one row each, decoded together."""

    numbers: list[int]
    """Of each transaction."""
    run: RowRun
    """Their rows, one of each."""


def decode_joined(records: Sequence[bytes], start: int, tables: Sequence[TableShape]) -> JoinedRows | None:
    """The longest stretch of records from `start` on that change one row each, all by one kind of change to one table.

    Most entries of the log hold such transactions alone, and decoding them one by one takes three times as long. The stretch ends before a
    damaged record, which `decode_transaction` reports.

    Returns:
        None if the first record is another transaction, or is damaged.
    """
    try:
        head = _head_of_one_row(records[start], tables)
    except (IndexError, ValueError):
        head = None
    if head is None:
        return None
    numbers: list[int] = []
    rows: list[list[Value]] = []
    same, width = head.same, _width_of(head.shape, head.kind, head.flags)
    try:
        for record in islice(records, start, None):
            if not record.startswith(_RECORD_START):
                break
            number, position = read_varint(record, len(_RECORD_START))
            if not record.startswith(same, position):
                break
            row: list[Value] = []
            if decode_single_values(row, record, position + len(same), width) != len(record):
                break
            numbers.append(number)
            rows.append(row)
    except (IndexError, ValueError, struct.error):
        pass  # `decode_transaction` raises for this record.
    try:
        return JoinedRows(numbers, _run_of(head.shape, head.kind, head.flags, len(rows), list(zip(*rows, strict=True)))) if rows else None
    except ValueError:
        return None


class _OneRowHead(NamedTuple):
    """The fields that the records of a stretch share."""

    same: bytes
    """The bytes between a record's number and its values."""
    shape: TableShape
    kind: RowKind
    flags: int


def _head_of_one_row(record: bytes, tables: Sequence[TableShape]) -> _OneRowHead | None:
    """The head of a transaction of one row, with flags that `_width_of` accepts; None of another record. Raises IndexError, ValueError."""
    if not record.startswith(_RECORD_START):
        return None
    _, begin = read_varint(record, len(_RECORD_START))
    position = begin + len(_ONE_OPERATION)
    kind = _ROW_KINDS.get(record[position]) if record.startswith(_ONE_OPERATION, begin) else None
    if kind is None:
        return None
    flags = record[position + 1]
    index, position = read_varint(record, position + 2)
    count, position = read_count(record, position)
    shape = tables[index]
    _width_of(shape, kind, flags)
    return _OneRowHead(record[begin:position], shape, kind, flags) if count == 1 else None


def row_operation(kind: RowKind, *, moved: bool, keys: bool, old: bool) -> bytes:
    """The start of the operation of rows: its kind and flags.

    Args:
        moved, keys, old: whether new rowids, key columns and old columns follow.
    """
    return bytes((kind, (_MOVED if moved else 0) | (_KEYS if keys else 0) | (_OLD if old else 0)))


def _encode_run(out: bytearray, run: RowRun, table: int) -> None:
    out += row_operation(run.kind, moved=run.new_rowids is not None, keys=run.keys is not None, old=run.old is not None)
    write_varint(out, table)
    write_varint(out, run.count)
    columns = encoded_columns(run)
    if run.count == 1:
        encode_single_values(out, [value for (value,) in columns])
        return
    for column in columns:
        encode_column(out, column)


def encoded_columns(run: RowRun) -> list[Column]:
    """The columns of a run that its operation holds, in their order."""
    columns: list[Column] = []
    if run.rowids is not None:
        columns.append(run.rowids)
    if run.new_rowids is not None:
        columns.append(run.new_rowids)
    if run.keys is not None:
        columns += run.keys
    skipped = run.table.rowid_column
    for part in (run.new, run.old):
        if part is not None:
            columns += part
            if skipped >= 0:
                del columns[skipped - len(part)]
    return columns


def _decode_operation(data: bytes, position: int, tables: Sequence[TableShape]) -> tuple[Operation, int]:
    code = data[position]
    position += 1
    if code == _SCHEMA:
        sql, position = read_text(data, position)
        return SchemaChange(sql, read_exactly(data, position, DIGEST_SIZE)), position + DIGEST_SIZE
    if code == _SETTING:
        name, position = read_text(data, position)
        column, position = decode_column(data, position, 1)
        return SettingChange(name, column[0]), position
    kind = _ROW_KINDS.get(code)
    if kind is None:
        raise ValueError(f"unknown operation {code}")
    return _decode_run(data, position, kind, tables)


def _decode_run(data: bytes, position: int, kind: RowKind, tables: Sequence[TableShape]) -> tuple[RowRun, int]:
    flags = data[position]
    index, position = read_varint(data, position + 1)
    shape = tables[index]
    count, position = read_count(data, position)
    columns, position = decode_columns(data, position, _width_of(shape, kind, flags), count)
    return _run_of(shape, kind, flags, count, columns), position


def _width_of(shape: TableShape, kind: RowKind, flags: int) -> int:
    """The number of columns that a run holds. Raises ValueError."""
    if flags & ~(_MOVED | _KEYS | _OLD):
        raise ValueError(f"unknown flags {flags:#x} of a row run")
    width = len(shape.columns)
    images = (kind is not RowKind.DELETE) + bool(flags & _OLD)
    keys = len(shape.key) if flags & _KEYS else 0
    if not shape.without_rowid:
        return 1 + (flags & _MOVED) + keys + images * (width - (shape.rowid_column >= 0))
    if not flags & _KEYS and kind is not RowKind.INSERT:
        raise ValueError(f"a change to {shape.name!r} names no row")
    return keys + images * width


def _run_of(shape: TableShape, kind: RowKind, flags: int, count: int, columns: list[Column]) -> RowRun:
    """The run that holds these columns, `_width_of` of them."""
    has_rowids = not shape.without_rowid
    is_moved = has_rowids and flags & _MOVED
    key_width = len(shape.key) if flags & _KEYS else 0
    skipped = shape.rowid_column if has_rowids else -1
    width = len(shape.columns) - (skipped >= 0)
    start = has_rowids + bool(is_moved)
    rowids = _integers(columns[0]) if has_rowids else None
    new_rowids = _integers(columns[1]) if is_moved else None
    run = RowRun(shape, kind, count, rowids, new_rowids)
    if flags & _KEYS:
        run.keys = columns[start : start + key_width]
        start += key_width
    if kind is not RowKind.DELETE:
        run.new = _image(columns[start : start + width], skipped, new_rowids or rowids)
        start += width
    if flags & _OLD:
        run.old = _image(columns[start:], skipped, rowids)
    return run


def _image(columns: list[Column], rowid_column: int, rowids: Sequence[int] | None) -> list[Column]:
    """All columns of a table, with the one that is another name of the rowid."""
    if rowid_column >= 0 and rowids is not None:
        columns.insert(rowid_column, rowids)
    return columns


def _integers(column: Column) -> Sequence[int]:
    if type(column[0]) is not int or (len(column) > 1 and set(map(type, column)) != {int}):
        raise ValueError("rowids that are not integers")
    return column  # type: ignore[return-value]  # just checked
