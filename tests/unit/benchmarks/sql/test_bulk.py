"""The rows of a transaction are made as lines, as parameters and as texts, each row once."""

from __future__ import annotations

from benchmarks.sql import bulk

KEYS = range(11, 11 + 2 * bulk.ROWS_OF_STATEMENT + 1)


def test_each_row_is_a_line_of_copy() -> None:
    lines = bulk._lines(KEYS).decode().splitlines()
    assert [int(line.split("\t")[0]) for line in lines] == list(KEYS)


def test_each_row_is_in_one_statement_of_at_most_a_thousand() -> None:
    parameters = bulk._values(KEYS)
    assert [len(one) // 2 for one in parameters] == [bulk.ROWS_OF_STATEMENT, bulk.ROWS_OF_STATEMENT, 1]
    assert [key for one in parameters for key in one[::2]] == list(KEYS)
    texts = bulk._texts(KEYS)
    assert [text.count(b"(") for text in texts] == [bulk.ROWS_OF_STATEMENT, bulk.ROWS_OF_STATEMENT, 1]
    assert texts[2] == f"INSERT INTO loaded VALUES ({KEYS[-1]}, '{bulk.NAME}')".encode()


def test_at_least_one_transaction_is_loaded() -> None:
    assert list(bulk.batches(-1.0)) == [1]
