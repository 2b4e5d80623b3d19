"""Results that are stored under a request id, and those that a repeat of the request reads."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.request_results import KEPT_ROWS_BYTES, repeated_result, storable_results
from triplicate.sql.core.statement_results import StatementResult, encode_results


def results_of(size_bytes: int) -> list[StatementResult]:
    """Two results whose encoding has exactly this size."""
    filler = size_bytes
    while True:
        found = [StatementResult(3), StatementResult(1, ((b"x" * filler,),))]
        excess = len(encode_results(found)) - size_bytes
        if excess == 0:
            return found
        filler -= excess


def test_results_up_to_the_bound_are_stored_with_their_rows() -> None:
    results = results_of(KEPT_ROWS_BYTES)
    assert storable_results(results) == tuple(results)


def test_beyond_the_bound_all_rows_are_left_out_and_marked_where_there_were_some() -> None:
    assert storable_results(results_of(KEPT_ROWS_BYTES + 1)) == (StatementResult(3), StatementResult(1, (), True))


def test_a_database_without_room_for_rows_stores_the_counts_alone() -> None:
    small = [StatementResult(3), StatementResult(1, ((7,),))]
    assert storable_results(small, with_rows=False) == (StatementResult(3), StatementResult(1, (), True))


def test_a_repeat_reads_the_result_of_its_own_statement() -> None:
    stored = storable_results([StatementResult(3), StatementResult(1, ((7,),))])
    assert [repeated_result(stored, index) for index in (0, 1)] == [StatementResult(3), StatementResult(1, ((7,),))]


def test_a_statement_beyond_the_stored_ones_has_an_empty_result() -> None:
    assert repeated_result((StatementResult(3),), 1) == StatementResult(0)
    assert repeated_result((), 0) == StatementResult(0)


def test_rows_that_were_too_many_to_keep_are_an_error_and_not_an_empty_result() -> None:
    stored = storable_results([StatementResult(3), StatementResult(1, ((7,),))], with_rows=False)
    assert repeated_result(stored, 0) == StatementResult(3)
    with pytest.raises(SqlError, match="too many to keep") as refused:
        repeated_result(stored, 1)
    assert refused.value.sqlstate == "55000"
