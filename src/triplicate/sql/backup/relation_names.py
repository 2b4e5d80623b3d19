"""The present names of a past database's tables and views, by the schema changes of the log since.

Rights are kept by name. A name may have had another table then, so a role's right to the name says nothing about that table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from triplicate.errors import NotKept
from triplicate.log import Logs
from triplicate.sql.backup.core.record_file import BatchFrame
from triplicate.sql.backup.past_copy import PastCopies
from triplicate.sql.core.records import SchemaChange, decode_header, decode_transaction
from triplicate.sql.core.schema_changes import TableDropped, TableRenamed, dropped_view, fold, table_change

CHANGES_MAX = 10_000
"""Schema changes that are followed. Each is found by some reads of the log."""
_LINEAR_OFFSETS = 200
"""A part of the log of this length is read from its beginning to its end."""


@dataclass(frozen=True, slots=True)
class RelationNames:
    """The names at one version of the schema.

    Args:
        position, version: of the log and of the schema, up to which the changes are known.
        moved: maps a name of then, as `fold` has it, to the present one; None if the relation was dropped.
    """

    position: int
    version: int
    moved: Mapping[str, str | None] = field(default_factory=dict)

    def now(self, name: str) -> str | None:
        """The present name of a relation of then; None if it was dropped."""
        return self.moved.get(fold(name), name)


def follow(moved: Mapping[str, str | None], sql: str) -> dict[str, str | None]:
    """`RelationNames.moved` after one more schema change."""
    names, change = dict(moved), table_change(sql)
    view = dropped_view(sql) if change is None else None
    match change:
        case TableRenamed(table, new_name):
            return _moved(names, table, new_name)
        case TableDropped(table):
            return _moved(names, table, None)
    return names if view is None else _moved(names, view, None)


def _moved(names: dict[str, str | None], name: str, to: str | None) -> dict[str, str | None]:
    old = fold(name)
    holder = next((then for then, now in names.items() if now is not None and fold(now) == old), None)
    if holder is not None:
        names[holder] = to
    elif old not in names:
        names[old] = to
    return names


async def present_names(logs: Logs, log: str, copies: PastCopies, names: RelationNames) -> RelationNames:
    """The names after all acknowledged schema changes.

    Raises:
        NotKept: there are too many changes. Also the errors of `PastCopies.frames` and `Logs.acknowledged_end`.
    """
    end = await logs.acknowledged_end(log)
    if end <= names.position:
        return names
    last = await _frame_at(copies, end - 1)
    version = decode_header(last.preamble).schema_version_after
    if version - names.version > CHANGES_MAX:
        raise NotKept(f"the schema has changed {version - names.version} times since, of which {CHANGES_MAX} are followed")
    moved = dict(names.moved)
    for sql in await _changes(copies, names.position, end, names.version, version):
        moved = follow(moved, sql)
    return RelationNames(end, version, moved)


async def _changes(copies: PastCopies, begin: int, end: int, before: int, after: int) -> list[str]:
    """The schema changes of a part of the log, in their order. The versions before and after it show where there are none."""
    if begin >= end or before == after:
        return []
    found: list[str] = []
    if end - begin <= _LINEAR_OFFSETS:
        async with aclosing(copies.frames(begin, end)) as frames:
            async for frame in frames:
                found += _changes_in(frame, begin)
        return found
    middle = await _frame_at(copies, (begin + end) // 2)
    header, first, behind = decode_header(middle.preamble), middle.first_offset, middle.first_offset + len(middle.records)
    found += await _changes(copies, begin, first, before, header.schema_version_before)
    found += _changes_in(middle, begin)
    return found + await _changes(copies, behind, end, header.schema_version_after, after)


async def _frame_at(copies: PastCopies, offset: int) -> BatchFrame:
    async with aclosing(copies.frames(offset, offset + 1)) as frames:
        async for frame in frames:
            return frame
    raise NotKept(f"offset {offset} cannot be read")


def _changes_in(frame: BatchFrame, begin: int) -> Iterator[str]:
    """The schema changes of a batch from an offset on."""
    header = decode_header(frame.preamble)
    if header.schema_version_before == header.schema_version_after:
        return
    for offset, record in enumerate(frame.records, frame.first_offset):
        if offset >= begin:
            for operation in decode_transaction(record, header.tables).operations:
                if isinstance(operation, SchemaChange):
                    yield operation.sql
