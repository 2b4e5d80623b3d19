"""A session's transaction block under orders of statements, failures and savepoints."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from triplicate.errors import SqlError
from triplicate.sql.core.statement_results import StatementResult
from triplicate.sql.core.transaction_block import TransactionBlock, TransactionStatus

IDLE, ACTIVE, FAILED = TransactionStatus.IDLE, TransactionStatus.ACTIVE, TransactionStatus.FAILED


class Blocks(RuleBasedStateMachine):
    """`schema` is the unique number of the schema in which the next statement runs."""

    def __init__(self) -> None:
        super().__init__()
        self.block = TransactionBlock()
        self.savepoints: list[tuple[str, int, int]] = []
        """Name, schema, and the number of results that had begun before."""
        self.begun: list[int] = []
        """The number of the innermost savepoint as each result began that is not undone."""
        self.statements = 0
        self.last_schema = 0
        self.schema = self.committed_schema = 0
        self.seen: dict[int, set[int]] = {}
        """Count of alterations → schemas that a client may have seen while none was committed."""

    @precondition(lambda self: self.block.status is IDLE)
    @rule(request_id=st.sampled_from(["", "one"]))
    def begin(self, request_id: str) -> None:
        self.block.request_id = request_id
        assert self.block.begin()
        self.statements = 0

    @precondition(lambda self: self.block.status is ACTIVE)
    @rule()
    def begin_again(self) -> None:
        assert not self.block.begin()

    @precondition(lambda self: self.block.status is ACTIVE)
    @rule(altered=st.booleans())
    def a_change(self, altered: bool) -> None:
        self.block.record(StatementResult(self.statements), altered=altered)
        self.statements += 1
        if altered:
            self.last_schema += 1
            self.schema = self.last_schema

    @precondition(lambda self: self.block.status is ACTIVE)
    @rule(doomed=st.booleans())
    def a_failure(self, doomed: bool) -> None:
        self.block.fail(doomed=doomed)
        assert self.block.status is FAILED
        if doomed:
            with pytest.raises(SqlError, match="current transaction is aborted"):
                self.block.check_savepoints()
            self.end(committed=False)

    @precondition(lambda self: self.block.status is ACTIVE)
    @rule(name=st.sampled_from("ab"))
    def a_savepoint(self, name: str) -> None:
        self.block.check_savepoints()
        self.block.save(name)
        self.savepoints.append((name, self.schema, len(self.begun)))

    @precondition(lambda self: self.block.status is ACTIVE)
    @rule()
    def a_result(self) -> None:
        self.begun.append(self.block.innermost_savepoint())

    @precondition(lambda self: self.block.status is not IDLE)
    @rule(name=st.sampled_from("abc"), release=st.booleans())
    def to_a_savepoint(self, name: str, release: bool) -> None:
        levels = [level for level, (found, _, _) in enumerate(self.savepoints) if found == name]
        if not levels:
            with pytest.raises(SqlError, match="does not exist"):
                self.block.number_of(name)
            return
        number = self.block.number_of(name)
        if release:
            self.block.release(name)
            del self.savepoints[levels[-1] :]
        else:
            self.block.rollback_to(name)
            _, self.schema, began = self.savepoints[levels[-1]]
            assert self.block.innermost_savepoint() == number
            assert [mark >= number for mark in self.begun] == [index >= began for index in range(len(self.begun))]
            del self.begun[began:]
            del self.savepoints[levels[-1] + 1 :]
        assert self.block.status is ACTIVE

    @precondition(lambda self: self.block.status is not IDLE)
    @rule(committed=st.booleans())
    def end(self, committed: bool) -> None:
        if committed and self.block.status is ACTIVE:
            self.committed_schema = self.schema
        self.schema = self.committed_schema
        self.block.end()
        self.savepoints, self.statements = [], 0
        self.begun = []
        assert self.block.status is IDLE
        assert self.block.request_id == ""

    @invariant()
    def the_block_is_as_its_history(self) -> None:
        assert list(self.block.savepoints) == [name for name, _, _ in self.savepoints]
        assert [result.rows_affected for result in self.block.results] == list(range(self.statements))

    @invariant()
    def each_count_of_alterations_stands_for_one_schema(self) -> None:
        met = self.seen.setdefault(self.block.alterations, set())
        met.add(self.schema)
        assert len(met) == 1


TestBlocks = Blocks.TestCase


def test_a_repeat_answers_as_the_first_run_did() -> None:
    block = TransactionBlock()
    block.begin()
    block.repeat([StatementResult(2, ((1,), (2,))), StatementResult(3, (), rows_dropped=True)])
    assert block.is_repeat
    assert block.next_repeated() == StatementResult(2, ((1,), (2,)))
    with pytest.raises(SqlError, match="too many to keep"):
        block.next_repeated()
    block.end()
    assert not block.is_repeat


def test_a_request_id_set_outside_a_block_applies_to_the_next_block() -> None:
    block = TransactionBlock()
    block.request_id = "one"
    block.end()
    assert block.request_id == "one"
