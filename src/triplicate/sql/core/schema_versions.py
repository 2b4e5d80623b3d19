"""The schema versions of a leader's open transaction, and the points to which it can be rolled back. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import SqlError


class SchemaVersion(NamedTuple):
    """One state of the schema. Numbers count up with each change; an undone number is given out again for another schema."""

    number: int
    digest: bytes


class RollbackPoint(NamedTuple):
    """The state of a transaction at some moment, to which it can be rolled back."""

    changes: int
    """Captured changes."""
    schema: SchemaVersion


@dataclass(frozen=True, slots=True)
class _Savepoint:
    name: str
    point: RollbackPoint


class SchemaVersions:
    """The committed schema, that of the open transaction, and the transaction's savepoints.

    Savepoints of one name may nest; a name stands for the innermost one. Levels count from 0 for the outermost savepoint.
    """

    def __init__(self, schema: SchemaVersion) -> None:
        self.committed = schema
        self.current = schema
        """Of the open transaction."""
        self._savepoints: list[_Savepoint] = []

    def point(self, changes: int) -> RollbackPoint:
        """The present point, to be given to `undo` later.

        Args:
            changes: captured changes so far.
        """
        return RollbackPoint(changes, self.current)

    def committed_point(self) -> RollbackPoint:
        """The point before the transaction's first change."""
        return RollbackPoint(0, self.committed)

    def change(self, digest: bytes) -> None:
        """The schema was changed and has this digest now."""
        self.current = SchemaVersion(self.current.number + 1, digest)

    def undo(self, point: RollbackPoint) -> bool:
        """Return to the schema of an earlier point; whether it was another one."""
        changed = self.current != point.schema
        self.current = point.schema
        return changed

    @property
    def depth(self) -> int:
        """Number of open savepoints, which is the level of the next one."""
        return len(self._savepoints)

    def save(self, name: str, changes: int) -> None:
        """Open a savepoint at the present point."""
        self._savepoints.append(_Savepoint(name, self.point(changes)))

    def marks(self) -> list[int]:
        """The captured changes at each open savepoint."""
        return [savepoint.point.changes for savepoint in self._savepoints]

    def release(self, level: int) -> None:
        """Forget the savepoint of this level and those within it; what they did stays."""
        del self._savepoints[level:]

    def back_to(self, level: int) -> RollbackPoint:
        """The point of the savepoint of this level, which stays open; those within it are forgotten. `undo` is a step of its own."""
        del self._savepoints[level + 1 :]
        return self._savepoints[level].point

    def level_of(self, name: str) -> int:
        """The level of the innermost savepoint of this name.

        Raises:
            SqlError: 3B001, there is none.
        """
        for level in range(len(self._savepoints) - 1, -1, -1):
            if self._savepoints[level].name == name:
                return level
        raise SqlError("3B001", f'savepoint "{name}" does not exist')

    def begin(self) -> None:
        """A transaction begins, without savepoints."""
        self._savepoints.clear()

    def commit(self) -> None:
        """The open transaction's schema is the committed one."""
        self.committed = self.current
