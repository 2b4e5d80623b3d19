"""The records of a transaction that is larger than an entry: its parts, each in an entry of its own, made when they are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from triplicate.sql.core.records import (
    BatchHeader,
    EncodedOperations,
    Transaction,
    TransactionPart,
    encode_header,
    encode_record,
)
from triplicate.sql.core.schema_versions import SchemaVersion
from triplicate.sql.core.table_shape import TableShape
from triplicate.sql.executor.spooled_changes import Piece, SpooledChanges

PART_BYTES = 2 * 1024 * 1024
"""Pieces are put together to parts of about this size."""

HeaderOfPart = Callable[[int, SchemaVersion, SchemaVersion, tuple[TableShape, ...]], BatchHeader]
"""The header of a part: its index from 0, the schema before and behind it, the tables."""


@dataclass(slots=True)
class _PlannedPart:
    part: TransactionPart
    before: SchemaVersion
    after: SchemaVersion
    tables: int
    pieces: list[Piece] = field(default_factory=list)


class StagedParts:
    """The parts of one transaction, which is the only one of its batch.

    Args:
        transaction: with its last operations only. spooled: those before.
        shapes: the batch's tables. schema: before the transaction, and behind it.
    """

    def __init__(
        self,
        transaction: Transaction,
        spooled: SpooledChanges,
        last: EncodedOperations,
        shapes: Sequence[TableShape],
        schema: tuple[SchemaVersion, SchemaVersion],
        header: HeaderOfPart,
    ) -> None:
        self._transaction = transaction
        self._spooled = spooled
        self._last = last
        self._shapes = shapes
        self._header = header
        self._plans = list(_planned(spooled.pieces, len(shapes), schema))

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self._plans)

    @property
    def tables(self) -> list[str]:
        """The names of the changed tables."""
        return [shape.name for shape in self._shapes]

    def read(self, index: int) -> tuple[bytes, list[bytes]]:
        """The preamble and the one record of a part. Blocks; raises apsw.Error."""
        plan = self._plans[index]
        is_last = plan.part.is_last
        whole = self._transaction
        transaction = replace(whole, part=plan.part) if is_last else Transaction(whole.number, part=plan.part)
        encoded = [*self._spooled.read(plan.pieces), *([self._last] if is_last else [])]
        header = self._header(index, plan.before, plan.after, tuple(self._shapes[: plan.tables]))
        return encode_header(header), [encode_record(transaction, encoded)]


def _planned(pieces: Sequence[Piece], tables: int, schema: tuple[SchemaVersion, SchemaVersion]) -> list[_PlannedPart]:
    """The pieces of each part. The last part has none: it holds what was not spooled, and the results."""
    first, final = schema
    groups: list[list[Piece]] = []
    for piece in pieces:
        if not groups or sum(one.size_bytes for one in groups[-1]) + piece.size_bytes > PART_BYTES:
            groups.append([])
        groups[-1].append(piece)
    plans: list[_PlannedPart] = []
    before, changes, of = first, 0, len(groups) + 1
    for number, group in enumerate(groups, start=1):
        schema_changes = sum(piece.schema_changes for piece in group)
        digest = next((piece.digest for piece in reversed(group) if piece.schema_changes), before.digest)
        after = SchemaVersion(before.number + schema_changes, digest)
        plans.append(_PlannedPart(TransactionPart(number, of, changes), before, after, group[-1].tables, group))
        before, changes = after, changes + sum(piece.changes for piece in group)
    return [*plans, _PlannedPart(TransactionPart(of, of, changes), before, final, tables)]
