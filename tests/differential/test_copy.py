"""COPY: the same data give the same rows or the same SQLSTATE and line, and the same rows give the same data."""

from __future__ import annotations

import random
import re

import psycopg
import pytest

from tests.differential.servers import Database

Both = tuple[Database, Database]
TEXTS = "CREATE TABLE c (a text, b text)"
TYPES = (
    "CREATE TABLE c (i integer PRIMARY KEY, n numeric(10,2), f float8, t varchar(5) NOT NULL, p boolean, d date, k time, m timestamp,"
    " z timestamptz, u uuid, y bytea, j jsonb, x varchar(4), w integer DEFAULT 7)"
)
_PLACE = re.compile(r"COPY \w+, line \d+(?:, column \w+)?")
_CHARACTERS = 'ab1\\\\.N""\',,\t\t;\n\n\r\u00e9 x'
DRAWN = 150
"""Texts that are drawn for each set of options."""

CASES: list[tuple[str, str, list[str]]] = [
    (TEXTS, "", ["1\tx\n", "1\tx", "\\N\t\\n\\\\\n", "a\\\tb\tc\n", "1\tx\n\\.\nmore\n", "1\tx\n\\.", "1\n", "1\t2\t3\n"]),
    (TEXTS, "", ["1\tx\r2\ty\r", "1\tx\n2\ty\r\n", "\\303\\251\t\\xe9\n", "\\x41\\101\\7\t\\q\n", "1\tx\\", "1\tx\\\ny\n"]),
    (TEXTS, "", ["\\.x\n", "", "1\tx\r\n2\ty\r\n", "\n", "1\tx\n\n"]),
    (TEXTS, "(DELIMITER '|', NULL '')", ["1|\n", "\\||x\n", "|\n", "1|\\N\n"]),
    (TEXTS, "(HEADER)", ["x\ty\tz\n1\t2\n", "x\n", "a\tb\n1\t2\n"]),
    (TEXTS, "(HEADER match)", ["a\tb\n1\t2\n", "a\tc\n1\t2\n", "a\n1\t2\n", "a\tb\tc\n1\t2\n", "a\t\\N\n"]),
    (TEXTS, "CSV", ['1,"a ""b"" c"\n', '1,""\n2,\n', '"1,2",x\n', 'a"b,c"d,e\n', '1,"x\ny"\n', '1,"x', "1,x\n\\.\n2,y\n", "1,\\.\n"]),
    (TEXTS, "CSV", ["\\N,x\n", "1,x\n\\.", '"a\r\nb",c\r\n', "1,x\r\n2,y\n", "1,2,3\n", "1\n", '1,"x"y\n', ' "1" ,x\n', '1,"\n"\n2\n']),
    (TEXTS, "(FORMAT csv, QUOTE '''', ESCAPE '!', DELIMITER ';', NULL 'nil')", ["'a!'b!!c!d';nil\n", "'nil';x\n", "'a''b';x\n"]),
    (TEXTS, "(FORMAT csv, FORCE_NOT_NULL (a), FORCE_NULL (b))", [',""\n', '"",\n', "x,y\n"]),
    (
        TYPES,
        "(DELIMITER '|')",
        ['1|1.005|1e3|abc|t|2024-02-29|12:00|2024-02-29 12:00:00.25|2024-02-29 12:00+02|\\N|\\\\x00ff|{"a": 1}|ab|3\n'],
    ),
]
COLUMNS = ["(i, t)", "(t, i)", "(i, t, w)"]
VALUES = ["1\tabc", "x\tabc", "1\tabcdef", "1\t\\N", "99999999999\ta", " 5 \ta", "1_0\ta", "1.5\ta", "\ta"]


def load(database: Database, table: str, columns: str, options: str, data: bytes) -> tuple[str, object]:
    """(the SQLSTATE or the number of rows, the place of the error or the rows)"""
    with database.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS c")
        connection.execute(table.encode())
        try:
            with connection.cursor() as cursor:
                with cursor.copy(f"COPY c {columns} FROM STDIN {options}".encode()) as copy:
                    copy.write(data)
                count = cursor.rowcount
        except psycopg.Error as error:
            found = _PLACE.search(error.diag.context or "")
            place = found[0] if found else str(error.diag.context)
            # Lengths are checked with the whole row here.
            return str(error.sqlstate), place.partition(", column")[0] if error.sqlstate == "22001" else place
        return f"COPY {count}", sorted(dump(connection, "COPY c TO STDOUT").splitlines())


def dump(connection: psycopg.Connection[tuple[object, ...]], statement: str) -> bytes:
    with connection.cursor().copy(statement.encode()) as copy:
        return b"".join(copy)


@pytest.mark.parametrize(("table", "options", "data"), [(table, options, text) for table, options, texts in CASES for text in texts])
def test_data_have_the_same_meaning(databases: Both, table: str, options: str, data: str) -> None:
    there, here = (load(database, table, "", options, data.encode()) for database in databases)
    assert here == there


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("row", VALUES)
def test_named_columns_and_wrong_values(databases: Both, columns: str, row: str) -> None:
    there, here = (load(database, TYPES, columns, "", f"7\tok\n{row}\n".encode()) for database in databases)
    if here[0] == "22003" and "99999999999" in row:
        assert there[0] == "22003"  # Integers have 64 bits here.
    elif "99999999999" not in row:
        assert here == there


@pytest.mark.parametrize("options", ["", "CSV", "(DELIMITER ';', NULL '')", "(FORMAT csv, QUOTE '''', ESCAPE '\\', DELIMITER ';')"])
def test_drawn_data_have_the_same_meaning(databases: Both, options: str) -> None:
    source = random.Random(options)
    drawn = ["".join(source.choices(_CHARACTERS, k=source.randrange(1, 30))) for _ in range(DRAWN)]
    for data in drawn:
        there, here = (load(database, TEXTS, "", options, data.encode()) for database in databases)
        assert here == there, repr(data)


OUTPUTS = [
    "COPY c TO STDOUT",
    "COPY c TO STDOUT (FORMAT csv, HEADER)",
    "COPY c TO STDOUT (HEADER, DELIMITER '|', NULL '')",
    "COPY c TO STDOUT (FORMAT csv, FORCE_QUOTE *, NULL 'nil')",
    "COPY c TO STDOUT (FORMAT csv, FORCE_QUOTE (t), QUOTE '''', ESCAPE '!', DELIMITER ';')",
    "COPY c (t, n) TO STDOUT",
    "COPY (SELECT t, n + 1 AS m, p FROM c ORDER BY i DESC) TO STDOUT CSV HEADER",
    "COPY (SELECT i::int8, t, f, p, d, k, m, z, u, y FROM c ORDER BY i) TO STDOUT BINARY",
    "COPY (SELECT i FROM c WHERE i < 0) TO STDOUT BINARY",
    "COPY (SELECT '\\.'::text) TO STDOUT CSV",
]


@pytest.mark.parametrize("statement", OUTPUTS)
def test_rows_give_the_same_data(databases: Both, statement: str) -> None:
    rows = (
        "(1, 1.5, 1e20, 'a\"b', true, '2024-02-29', '01:02', '2024-02-29 01:02:03.5', '2024-02-29 01:02:03+00',"
        " 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '\\x00ff', '[1]', 'x', 1), (2, NULL, -0.5, E'\\t\\n\\\\,', false, NULL, NULL, NULL, NULL,"
        " NULL, NULL, NULL, NULL, NULL), (3, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, '\\N', 0),"
        " (4, 0, NULL, '''!;', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'nil', 0)"
    )
    found = []
    for database in databases:
        with database.connect() as connection:
            connection.execute("DROP TABLE IF EXISTS c")
            connection.execute(TYPES)
            connection.execute(f"INSERT INTO c VALUES {rows}".encode())
            found.append(dump(connection, statement))
    there, here = found
    assert here == there
