"""The comparison detects every kind of difference."""

from __future__ import annotations

import pytest

from tests.differential.comparison import Answer, differences, extended, simple
from tests.differential.corpus import Parameter, Statement, parse
from tests.differential.documentation import COLUMNS, HEADING, read_ids
from tests.differential.runner import Pair, Tally, Verdict, judge
from tests.differential.servers import Database

ROWS = (("a", "1"), ("b", None))
ANSWER = Answer("SELECT 2", ("t", "n"), (25, 23), ROWS)
ERROR = Answer(sqlstate="22012", message="division by zero")
REFUSED = Answer(sqlstate="0A000", message="WIDGETS are not supported")


@pytest.mark.parametrize(
    ("here", "found"),
    [
        (Answer("SELECT 2", ("t", "n"), (25, 23), ROWS), []),
        (Answer("SELECT 2", ("t", "n"), (1043, 20), ROWS), []),
        (Answer("SELECT 3", ("t", "n"), (25, 23), ROWS), ["tag"]),
        (Answer("SELECT 2", ("t", "m"), (25, 23), ROWS), ["names"]),
        (Answer("SELECT 2", ("t",), (25,), (("a",), ("b",))), ["names", "types", "rows"]),
        (Answer("SELECT 2", ("t", "n"), (25, 25), ROWS), ["types"]),
        (Answer("SELECT 2", ("t", "n"), (25, 23), ROWS, parameter_types=(25,)), ["parameters"]),
        (Answer("SELECT 2", ("t", "n"), (25, 23), (("a", "1"), ("b", ""))), ["rows"]),
        (Answer("SELECT 2", ("t", "n"), (25, 23), (("a", 1), ("b", None))), ["rows"]),
        (Answer("SELECT 2", ("t", "n"), (25, 23), ROWS[:1]), ["rows"]),
        (ERROR, ["error"]),
    ],
)
def test_every_part_of_an_answer_is_compared(here: Answer, found: list[str]) -> None:
    assert differences(ANSWER, here, "SELECT t, n FROM x") == found


def test_errors_are_compared_by_their_sqlstates_alone() -> None:
    assert differences(ERROR, Answer(sqlstate="22012", message="in other words"), "SELECT 1 / 0") == []
    assert differences(ERROR, Answer(sqlstate="22003", message="division by zero"), "SELECT 1 / 0") == ["error"]
    assert differences(ERROR, ANSWER, "SELECT 1 / 0") == ["error"]


def test_the_order_of_rows_counts_where_the_statement_orders_them() -> None:
    turned = Answer("SELECT 2", ("t", "n"), (25, 23), ROWS[::-1])
    assert differences(ANSWER, turned, "SELECT t, n FROM x ORDER BY n") == ["order"]
    assert differences(ANSWER, turned, "SELECT t, n FROM x") == []


def outcome(statement: Statement, postgresql: Answer, here: Answer) -> str:
    return judge(statement, [Pair("text", ANSWER, ANSWER), Pair("binary", postgresql, here)], {"known"}).outcome


@pytest.mark.parametrize(
    ("mark", "detail", "postgresql", "here", "expected"),
    [
        ("", "", ANSWER, ANSWER, "equal"),
        ("", "", ANSWER, ERROR, "DIFFERENT"),
        ("", "", ANSWER, REFUSED, "DIFFERENT"),
        ("documented", "known", ANSWER, ERROR, "documented"),
        ("documented", "known", ANSWER, ANSWER, "DIFFERENT"),
        ("documented", "unknown", ANSWER, ERROR, "DIFFERENT"),
        ("refused", "widgets", ANSWER, REFUSED, "refused"),
        ("refused", "gadgets", ANSWER, REFUSED, "DIFFERENT"),
        ("refused", "widgets", ANSWER, ANSWER, "DIFFERENT"),
        ("refused", "division", ANSWER, ERROR, "DIFFERENT"),
        ("refused", "widgets", ERROR, REFUSED, "DIFFERENT"),
        ("fault", "", ANSWER, ERROR, "DIFFERENT"),
        ("fault", "", ANSWER, ANSWER, "DIFFERENT"),
        ("documented", "known", ANSWER, Answer(sqlstate="lost"), "DIFFERENT"),
    ],
)
def test_a_mark_must_be_true(mark: str, detail: str, postgresql: Answer, here: Answer, expected: str) -> None:
    assert outcome(Statement("SELECT t, n FROM x", "x:1", mark=mark, detail=detail), postgresql, here) == expected


def test_a_difference_in_one_way_of_sending_is_reported() -> None:
    statement = Statement("SELECT t, n FROM x", "x:1")
    assert judge(statement, [Pair("text", ANSWER, ANSWER), Pair("binary", ANSWER, ERROR)], ()).outcome == "DIFFERENT"


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("SELECT 1 AS a", "SELECT 1 AS a", []),
        ("SELECT 1 AS a", "SELECT 1::int8 AS a", []),
        ("SELECT 1 AS a", "SELECT '1' AS a", ["types"]),
        ("SELECT 1 AS a", "SELECT 1 AS b", ["names"]),
        ("SELECT 1.5 AS a", "SELECT 1.50 AS a", ["rows"]),
        ("SELECT 1 AS a WHERE false", "SELECT 1 AS a", ["tag", "rows"]),
        ("SELECT ''", "SELECT NULL", ["rows"]),
        ("SELECT n FROM (VALUES (1), (2)) v(n) ORDER BY n", "SELECT n FROM (VALUES (1), (2)) v(n) ORDER BY n DESC", ["order"]),
        ("SELECT 1 / 0", "SELECT 1 / 1", ["error"]),
        ("SELECT 1 / 0", "SELECT nosuch", ["error"]),
    ],
)
def test_answers_of_a_server_keep_what_differs(reference: Database, one: str, other: str, found: list[str]) -> None:
    with reference.connect() as connection:
        for send in (simple, lambda pgconn, sql: extended(pgconn, sql, (), binary=False)):
            assert differences(send(connection.pgconn, one), send(connection.pgconn, other), one) == found


def test_values_and_types_of_parameters_are_read_from_the_server(reference: Database) -> None:
    with reference.connect() as connection:
        for binary in (False, True):
            told = extended(connection.pgconn, "SELECT $1 + 1 AS n", [Parameter("?", "41")], binary=binary)
            typed = extended(connection.pgconn, "SELECT $1 AS b", [Parameter("bool", "t")], binary=binary)
            assert (told.parameter_types, told.rows) == ((23,), ((42 if binary else "42",),))
            assert (typed.parameter_types, typed.rows) == ((16,), ((True if binary else "t",),))


def test_scenarios_statements_and_remarks_are_read() -> None:
    text = (
        "== one\nCREATE TABLE t (\n  a int\n);\n\n-- a remark\nSELECT ';', $1;  -- with int4 5, ? \"a, b\", ? null / documented some-id\n"
        "== two\nSELECT 1; -- refused ARRAY [\nSELECT 2; -- fault\n"
    )
    one, two = parse(text, "f.sql")
    assert (one.title, one.place, [statement.place for statement in one.statements]) == ("one", "f.sql:1", ["f.sql:2", "f.sql:7"])
    created, selected = one.statements
    assert (created.text, created.parameters, created.mark) == ("CREATE TABLE t (\n  a int\n)", (), "")
    assert selected.text == "SELECT ';', $1"
    assert selected.parameters == (Parameter("int4", "5"), Parameter("?", "a, b"), Parameter("?", None))
    assert (selected.mark, selected.detail) == ("documented", "some-id")
    assert [(statement.mark, statement.detail) for statement in two.statements] == [("refused", "ARRAY ["), ("fault", "")]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;\n",
        "== a\nSELECT 1\n",
        "== a\nSELECT 1; -- documented\n",
        "== a\nSELECT 1; -- perhaps\n",
        "== a\nSELECT $1; -- with int4 x\n",
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"f\.sql:\d|Expecting value"):
        parse(text, "f.sql")


def test_the_table_of_differences_is_read() -> None:
    head = "| " + " | ".join(COLUMNS) + " |\n|---|---|---|---|---|\n"
    page = (
        f"# P\n\n{HEADING}\n\nText.\n\n{head}| `a-b` | `x \\| y` | p | h | r |\n| c | c | p | h | r |\n\n## Next\n\n| d | c | p | h | r |\n"
    )
    assert read_ids(page) == ["a-b", "c"]
    for wrong in (
        "# P\n",
        f"{HEADING}\n\nno table\n",
        f"{HEADING}\n\n{head}| a | b | c | d |\n",
        f"{HEADING}\n\n{head}| a | b | | d | e |\n",
    ):
        with pytest.raises(ValueError, match=r"differences|section"):
            read_ids(wrong)


def test_the_summary_counts_every_statement() -> None:
    tally = Tally()
    for word in ("equal", "equal", "documented", "refused"):
        tally.verdicts.append(Verdict(Statement("SELECT 1", "x:1"), word))
    tally.generated["equal"] += 3
    assert tally.summary() == "7 statements: 5 equal, 1 documented, 1 refused, 0 different"
