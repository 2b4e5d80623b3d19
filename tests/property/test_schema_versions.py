"""Schema versions and savepoints under orders of changes and rollbacks, against a plain model."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from triplicate.errors import SqlError
from triplicate.sql.core.schema_versions import SchemaVersion, SchemaVersions

START = SchemaVersion(7, b"start")


@dataclass
class _Saved:
    name: str
    changes: int
    schemas: list[SchemaVersion] = field(default_factory=list)


class Histories(RuleBasedStateMachine):
    """The model: the list of all schemas of the transaction, copied at each savepoint."""

    def __init__(self) -> None:
        super().__init__()
        self.history = SchemaVersions(START)
        self.schemas = [START]
        self.changes = 0
        self.saved: list[_Saved] = []
        self.committed = START

    @rule()
    def a_row_changes(self) -> None:
        self.changes += 1

    @rule(digest=st.binary(min_size=1, max_size=2))
    def the_schema_changes(self, digest: bytes) -> None:
        self.history.change(digest)
        self.changes += 1
        self.schemas.append(SchemaVersion(self.schemas[-1].number + 1, digest))

    @rule(name=st.sampled_from("ab"))
    def a_savepoint(self, name: str) -> None:
        assert self.history.depth == len(self.saved)
        self.history.save(name, self.changes)
        self.saved.append(_Saved(name, self.changes, list(self.schemas)))

    @rule(name=st.sampled_from("abc"))
    def back_to_a_savepoint(self, name: str) -> None:
        levels = [level for level, saved in enumerate(self.saved) if saved.name == name]
        if not levels:
            with pytest.raises(SqlError, match="does not exist"):
                self.history.level_of(name)
            return
        level = self.history.level_of(name)
        assert level == levels[-1]
        point = self.history.back_to(level)
        saved = self.saved[level]
        assert point.changes == saved.changes
        assert self.history.undo(point) is (saved.schemas[-1] != self.schemas[-1])
        del self.saved[level + 1 :]
        self.changes, self.schemas = saved.changes, list(saved.schemas)

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def a_release(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([saved.name for saved in self.saved]))
        level = self.history.level_of(name)
        self.history.release(level)
        del self.saved[level:]

    @rule(digest=st.binary(min_size=1, max_size=2))
    def a_failed_statement(self, digest: bytes) -> None:
        before = self.history.point(self.changes)
        self.history.change(digest)
        assert self.history.undo(before)

    @rule()
    def a_commit(self) -> None:
        self.history.commit()
        self.committed = self.schemas[-1]
        self._next_transaction()

    @rule()
    def a_rollback(self) -> None:
        self.history.begin()
        self.history.undo(self.history.committed_point())
        self._next_transaction()

    def _next_transaction(self) -> None:
        self.history.begin()
        self.schemas, self.saved, self.changes = [self.committed], [], 0

    @invariant()
    def both_agree(self) -> None:
        assert self.history.current == self.schemas[-1]
        assert self.history.committed == self.committed
        assert self.history.depth == len(self.saved)


TestHistories = Histories.TestCase
