"""A SQLite database that runs translated statements, for the tests of the translation."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from triplicate.sql.core.interface import Value
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.executor.scalars import register_scalars
from triplicate.sql.pg.translate.translation import Translation, named_tables, translate
from triplicate.sql.storage.sqlite_schema import columns_of, key_of

NOW = "2026-11-22 18:17:55.123456+00:00"
SCHEMA = """
create table t(id integer primary key, a int, b text, c real, n numeric(10,2), d date, ts timestamp, tz timestamptz, f boolean, u uuid,
    y bytea, j json, x);
create table o(id int, s text);
insert into t values
    (1, 20, 'abc', 1.5, 2.25, '2024-01-05', '2024-01-05 10:00:00', '2024-01-05 10:00:00+00:00', 1,
     'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', x'01', '{"a": 1, "b": "x", "c": null}', 7),
    (2, null, 'ABC%', 2.5, 0.1, null, null, null, 0, null, null, null, null),
    (3, -3, null, null, null, '2024-02-29', null, null, null, null, null, null, null);
insert into o values (1, 'x'), (2, 'y');
"""


class TranslatedDatabase:
    """SQLite with the tables above and the functions of ours."""

    def __init__(self) -> None:
        self.connection = apsw.Connection(":memory:")
        # A name in quotes that SQLite does not know would be a text.
        self.connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
        register_scalars(self.connection)
        self.connection.execute(SCHEMA)

    def translate(self, sql: str, given: Sequence[int] = ()) -> Translation:
        found = [(name, columns_of(self.connection, name)) for name in named_tables(statement_of(sql))]
        tables = tuple((name, tuple(columns)) for name, columns in found if columns is not None)
        return translate(statement_of(sql), tables, given, tuple((name, tuple(key_of(self.connection, name))) for name, _ in tables))

    def rows(self, sql: str, *parameters: Value) -> list[tuple[Value, ...]]:
        """The rows of one statement; parameters as they come from the protocol, decoded."""
        translation = self.translate(sql)
        values = [*parameters, *([NOW] * len(translation.supplied))]
        return self.connection.execute(translation.sql, values or None).fetchall()

    def value(self, expression: str, *parameters: Value) -> Value:
        """The result of ``SELECT expression``, for the first row of `t` where it names a column."""
        ((value, *_),) = self.rows(f"select {expression} from t where id = 1", *parameters)
        return value
