"""Queries of the catalogue as client libraries write them: rewritten for SQLite, run, and described with their types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw
import pytest
from psycopg.errors import UndefinedColumn, UndefinedObject
from psycopg.types import TypeInfo
from psycopg.types.enum import EnumInfo

from tests.unit.sql.pg.server_rig import Served, run
from triplicate.errors import SqlError
from triplicate.sql.catalogue import register_functions, register_tables
from triplicate.sql.catalogue.array_functions import SERIES_MAX
from triplicate.sql.catalogue.live_tables import LIVE_TABLES
from triplicate.sql.catalogue.relations import TABLES
from triplicate.sql.core.lexer import statement_of
from triplicate.sql.executor.scalars import register_scalars
from triplicate.sql.pg.rewrite.catalogue_queries import _PIECES, _TRIGGERS, catalogue_query
from triplicate.sql.pg.rewrite.catalogue_types import CHAR1, COLUMNS, INT2VECTOR, NAME, TEXT_ARRAY
from triplicate.sql.pg.rewrite.set_functions import SETS_MAX
from triplicate.sql.pg.values import types

SCHEMA = """
create table author(id integer primary key, name text not null unique);
create table book(isbn text not null, part int, author_id int references author, primary key (isbn, part));
create index by_author on book(author_id, isbn desc);
"""


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    opened = apsw.Connection(":memory:")
    register_scalars(opened)
    register_functions(opened, register_tables(opened))
    opened.execute(SCHEMA)
    yield opened
    opened.close()


QUERIES: list[tuple[str, list[Any]]] = [
    (("SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['v', 'r'])"
     " AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) ORDER BY 1"), [("author",), ("book",)]),
    ("SELECT relname FROM pg_class WHERE relkind <> ALL (ARRAY['i', 'v', 'S']) ORDER BY 1", [("author",), ("book",)]),
    ("SELECT relname FROM pg_class c WHERE c.oid = ANY (SELECT indexrelid FROM pg_index WHERE NOT indisunique)", [("by_author",)]),
    ("SELECT 'author'::regclass = oid, oid::regclass::text, CAST(CAST(oid AS regclass) AS text) FROM pg_class WHERE relname = 'author'",
     [(1, "author", "author")]),
    ("SELECT oid::regtype::text, typarray FROM pg_type WHERE oid = to_regtype('int4')", [("integer", 1007)]),
    ("SELECT 'public'::regnamespace::oid, 'pg_catalog'::regnamespace::text", [(2200, "pg_catalog")]),
    ("SELECT table_name FROM information_schema.tables ORDER BY table_name", [("author",), ("book",)]),
    (("SELECT t.table_name FROM information_schema.tables t JOIN information_schema.columns AS c ON c.table_name = t.table_name"
     " WHERE c.column_name = 'isbn'"), [("book",)]),
    (("SELECT con.conname, a.attname FROM (SELECT conname, conrelid, unnest(conkey) AS attnum, generate_subscripts(conkey, 1) AS ord"
     " FROM pg_constraint WHERE contype = 'p') AS con JOIN pg_attribute a ON a.attrelid = con.conrelid AND a.attnum = con.attnum"
     " ORDER BY con.conname, con.ord"), [("author_pkey", "id"), ("book_pkey", "isbn"), ("book_pkey", "part")]),
    (("SELECT c.conname, array(SELECT attname FROM unnest(c.conkey) WITH ORDINALITY cols(colid, place) JOIN pg_attribute AS ca"
     " ON cols.colid = ca.attnum WHERE ca.attrelid = c.conrelid ORDER BY cols.place), c.confkey[1] FROM pg_constraint c"
     " WHERE c.conrelid = 'book'::regclass ORDER BY 1"), [("book_author_id_fkey", "{author_id}", 1), ("book_pkey", "{isbn,part}", None)]),
    (("SELECT key, option & 1, place FROM pg_index i, unnest(i.indkey, i.indoption) WITH ORDINALITY koi(key, option, place)"
     " WHERE i.indexrelid = 'by_author'::regclass"), [(3, 0, 1), (1, 1, 2)]),
    (("SELECT unnest(indkey) AS k, unnest(indoption) AS o, generate_subscripts(indkey, 1) AS at FROM pg_index"
     " WHERE indexrelid = 'by_author'::regclass"), [(3, 0, 0), (1, 3, 1)]),
    ("SELECT array(SELECT attname FROM pg_attribute WHERE attnum > 99)", [("{}",)]),
    ("SELECT CASE WHEN relkind = 'r' THEN 1 ELSE 0 END::int4 FROM pg_class WHERE relname = 'by_author'", [(0,)]),
    ("WITH named AS (SELECT oid FROM pg_class WHERE relname = 'book') SELECT count(*) FROM pg_attribute, named WHERE attrelid = named.oid",
     [(3,)]),
    ("SELECT name, pg_catalog.format_type(tp, tpm) FROM (VALUES ('a', '20'::pg_catalog.oid, -1), ('b', '1043', 24)) s(name, tp, tpm)",
     [("a", "bigint"), ("b", "character varying(20)")]),
    ("SELECT relname FROM pg_class WHERE relname LIKE 'a%' AND relname NOT LIKE 'A' || '%' AND relkind = 'r'", [("author",)]),
    ("SELECT relname FROM pg_class WHERE relname LIKE 'AUTH%'", []),
    ("SELECT relname FROM pg_class WHERE relname ILIKE 'AUTH%\\_pkey'", [("author_pkey",)]),
    (("SELECT indkey[0], indkey[i.indnatts - 1], (i.indkey)[1], (indkey::int2[])[0] FROM pg_index i"
      " WHERE indexrelid = 'by_author'::regclass"), [(3, 1, 1, 3)]),
    (("SELECT a.attname FROM pg_attribute a JOIN pg_index i ON a.attrelid = i.indrelid AND a.attnum = i.indkey[(i.indoption[1])-2]"
      " WHERE i.indexrelid = 'by_author'::regclass"), [("isbn",)]),
    ("WITH a(n) AS (SELECT relname FROM pg_class), b AS (SELECT n FROM a) SELECT count(*) FROM b, a WHERE a.n = b.n", [(7,)]),
    ("SELECT relname FROM pg_class WHERE relname LIKE 'by\\_%' OR relname LIKE 'book/_%' ESCAPE '/' ORDER BY 1",
     [("book_pkey",), ("by_author",)]),
    ("SELECT relname FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(by_.*|author)$' COLLATE pg_catalog.default ORDER BY 1",
     [("author",), ("by_author",)]),
    ("SELECT relname FROM pg_class WHERE relname !~ '^[ab]' OR relname ~* '^BY' ORDER BY 1", [("by_author",)]),
    ("SELECT array(SELECT 'k' || x FROM unnest(conkey) x) FROM pg_constraint x WHERE conname = 'book_pkey'", [("{k1,k2}",)]),
    (("SELECT s.n, q.x FROM (SELECT x FROM unnest('{7,8}') AS t(x)) q, (SELECT * FROM pg_am i, unnest('{7}', '{9}') AS t(m, n)) s"
     " WHERE s.m = q.x AND s.amname = 'heap'"), [(9, 7)]),
    ("SELECT conkey[s] FROM generate_series(1, 2) s, pg_constraint WHERE conname = 'book_pkey' ORDER BY s", [(1,), (2,)]),
    ("SELECT relname FROM pg_class c WHERE c.oid IN (SELECT pg_partition_ancestors(oid) UNION ALL VALUES ('book'::regclass))", [("book",)]),
    ("SELECT (SELECT string_agg(option_name, ',') FROM pg_options_to_table(reloptions)) FROM pg_class WHERE relname = 'book'", [(None,)]),
    (("SELECT c.relname, s.m FROM pg_class c, LATERAL (SELECT max(attnum) AS m FROM pg_attribute WHERE attrelid = c.oid) s"
      " WHERE s.m > 2 AND relkind = 'r'"), [("book", 3)]),
    ("SELECT (SELECT max(relname) FROM pg_class)::text, (oid || '')::text = oid::text FROM pg_am LIMIT 1", [("by_author", 1)]),
    (("SELECT q.seq, q.attname, (q.keys).n FROM (SELECT (information_schema._pg_expandarray(i.indkey)).n AS seq, a.attnum, a.attname,"
      " information_schema._pg_expandarray(i.indkey) AS KEYS FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid"
      " WHERE i.indexrelid = 'by_author'::regclass) q WHERE q.attnum = (q.KEYS).x ORDER BY q.seq"), [(1, "author_id", 1), (2, "isbn", 2)]),
    ("SELECT typname FROM pg_type WHERE typinput = 'pg_catalog.array_in'::regproc AND typelem = 23", [("_int4",)]),
    ("SELECT substring(relname from 1 for 2), substring('abc', 2) FROM pg_class WHERE relname = 'book'", [("bo", "bc")]),
    ("SELECT trim(trailing ';' from 'a;;'), trim(both from ' b '), trim(' c ') FROM pg_am LIMIT 1", [("a", "b", "c")]),
    ("SELECT 'book'::regclass, CAST(oid AS regclass) AS n, (oid::regclass)::text t FROM pg_class WHERE relname = 'book'",
     [("book", "book", "book")]),
    ("SELECT 'pg_class'::regclass::oid, 0::regproc, quote_literal('a''b'), left('pg_class', 2) FROM pg_am LIMIT 1",
     [(1259, "-", "'a''b'", "pg")]),
    ("SELECT tableoid::regclass FROM pg_am LIMIT 1", [("pg_am",)]),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "rows"), QUERIES)
def test_a_query_of_the_catalogue_finds_what_there_is(connection: apsw.Connection, sql: str, rows: list[Any]) -> None:
    query = catalogue_query(statement_of(sql))
    assert query is not None
    assert connection.execute(query.text).fetchall() == rows


@pytest.mark.parametrize(
    "sql", ["SELECT 1", "SELECT pg_class_name FROM t", "INSERT INTO t SELECT relname FROM pg_class", "SELECT 'pg_class'"]
)
def test_other_statements_are_left_alone(sql: str) -> None:
    assert catalogue_query(statement_of(sql)) is None


REFUSED = [
    "SELECT relname::point FROM pg_class",
    "SELECT relname > ALL (ARRAY['a']) FROM pg_class",
    "SELECT * FROM pg_class, unnest(reloptions)",
    "SELECT indkey[0:1] FROM pg_index",
    "SELECT conkey[:conkey[1]] FROM pg_constraint",
    "SELECT s.a FROM pg_class c, LATERAL (SELECT attname AS a FROM pg_attribute WHERE attrelid = c.oid) s",
    "SELECT s.a FROM pg_class c LEFT JOIN LATERAL (SELECT max(attnum) AS a FROM pg_attribute WHERE attrelid = c.oid) s ON true",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_what_no_rule_knows_is_refused_by_its_name(sql: str) -> None:
    with pytest.raises(SqlError) as refused:
        catalogue_query(statement_of(sql))
    assert refused.value.sqlstate == "0A000"


@pytest.mark.parametrize("sql", ["SELECT * FROM public.pg_class", 'SELECT "pg_am".* FROM pg_class, PUBLIC."pg_am"'])
def test_schema_public_has_no_table_of_the_catalogue(sql: str) -> None:
    with pytest.raises(SqlError, match='relation "public') as refused:
        catalogue_query(statement_of(sql))
    assert refused.value.sqlstate == "42P01"


def test_a_common_table_expression_hides_a_live_table(connection: apsw.Connection) -> None:
    query = catalogue_query(statement_of("WITH pg_settings AS (SELECT 7 AS q) SELECT q FROM pg_settings"))
    assert query is not None
    assert (query.live, query.tables) == ((), frozenset())
    assert connection.execute(query.text).fetchall() == [(7,)]


def doubling(depth: int) -> str:
    """A query whose length doubles with each LATERAL that is replaced."""
    laterals = [f", LATERAL (SELECT max(s{level}.a + s{level}.a) AS a FROM pg_am) s{level + 1}" for level in range(depth)]
    return f"SELECT s{depth}.a FROM pg_am m, LATERAL (SELECT max(m.oid) AS a FROM pg_am) s0{''.join(laterals)}"


LARGE = [
    "SELECT 1 FROM pg_class c" + "".join(f", unnest(relacl) u{number}" for number in range(SETS_MAX + 1)),
    "SELECT " + ", ".join(["unnest(conkey)"] * (SETS_MAX + 1)) + " FROM pg_constraint",
    doubling(40),
    "SELECT " + "(" * 1000 + "oid" + ")" * 1000 + " FROM pg_class",
]


@pytest.mark.parametrize("sql", LARGE)
def test_a_query_that_would_grow_is_refused(sql: str) -> None:
    with pytest.raises(SqlError) as refused:
        catalogue_query(statement_of(sql))
    assert refused.value.sqlstate == "54001"


def test_a_series_is_bounded(connection: apsw.Connection) -> None:
    query = catalogue_query(statement_of(f"SELECT count(*) FROM pg_am, generate_series(1, {SERIES_MAX + 1}) s"))
    assert query is not None
    with pytest.raises(SqlError) as refused:
        connection.execute(query.text)
    assert refused.value.sqlstate == "54000"


RESULTS: list[tuple[str, tuple[int | None, ...]]] = [
    ("SELECT oid, relname, relkind, relnatts, relhasindex, reloptions FROM pg_class",
     (types.OID, NAME, CHAR1, types.INT8, types.BOOL, TEXT_ARRAY)),
    ("SELECT indkey, indkey[0] IS NULL, NOT indisunique, indisprimary OR indisunique FROM pg_index",
     (INT2VECTOR, types.BOOL, types.BOOL, types.BOOL)),
    ("SELECT oid::regtype::text, oid::regtype, oid::int8, typname || 'x', format_type(oid, NULL) FROM pg_type",
     (types.TEXT, types.TEXT, types.INT8, types.TEXT, types.TEXT)),
    ("SELECT array_agg(attname), array_agg(attnum = 1 ORDER BY attnum), min(attrelid), count(*) FROM pg_attribute",
     (TEXT_ARRAY, 1000, types.OID, types.INT8)),
    (("SELECT q.flags, q.description FROM (SELECT array_agg(i.ok) AS flags, min(i.description) AS description FROM"
     " (SELECT attnum = $1::int AS ok, d.description AS description FROM pg_attribute, pg_description d) AS i) AS q"), (1000, types.TEXT)),
    ("SELECT CASE WHEN attnum > 0 THEN attnotnull END, CASE attname WHEN 'a' THEN NULL ELSE attnum END FROM pg_attribute",
     (types.BOOL, types.INT8)),
    ("SELECT (SELECT nspname FROM pg_namespace LIMIT 1), pg_table_is_visible(oid), current_schemas(true) FROM pg_class",
     (NAME, types.BOOL, TEXT_ARRAY)),
    ("SELECT indkey[0], conkey[indnatts - 1], (current_schemas(true))[1] FROM pg_index, pg_constraint",
     (types.INT8, types.INT8, types.TEXT)),
    ("SELECT * FROM pg_class", ()),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "oids"), RESULTS)
def test_the_types_of_results(sql: str, oids: tuple[int | None, ...]) -> None:
    query = catalogue_query(statement_of(sql))
    assert query is not None
    assert query.columns == oids


NAMES: list[tuple[str, tuple[str, ...]]] = [
    ("SELECT c.relname, RELKIND, \"relname\", oid::text, c.oid::regclass::text FROM pg_class c",
     ("relname", "relkind", "relname", "oid", "oid")),
    ("SELECT relname AS a, relkind b, (oid) \"C\", 'x'::text t, length(relname) n, 1 AS \"Two words\" FROM pg_class",
     ("a", "b", "C", "t", "n", "Two words")),
    ("SELECT 1, 'a', NULL, true, relname || 'x', oid = 1, NOT relhasindex, relname IS NULL, -1, relname LIKE 'a' FROM pg_class",
     ("?column?",) * 10),
    ("SELECT 1::int, '1'::bigint, 'author'::regclass, CAST(1 AS smallint), 1::character varying(3), CAST(relname AS text) FROM pg_class",
     ("int4", "int8", "regclass", "int2", "varchar", "relname")),
    (("SELECT pg_catalog.format_type(1, 2), length(relname), coalesce(relname, 'a')::text, row_number() OVER (ORDER BY oid),"
      " pg_table_is_visible(oid) FROM pg_class"), ("format_type", "length", "coalesce", "row_number", "pg_table_is_visible")),
    (("SELECT CASE WHEN true THEN 1 END, CASE WHEN 1 = 2 THEN 'b' ELSE relname END,"
      " CASE WHEN true THEN CASE WHEN true THEN 1 END ELSE 2 END, CASE WHEN true THEN 1 END::text FROM pg_class"),
     ("case", "relname", "case", "text")),
    (("SELECT (SELECT nspname FROM pg_namespace LIMIT 1), (SELECT oid x FROM pg_type LIMIT 1), EXISTS (SELECT 1 FROM pg_type),"
      " ARRAY(SELECT oid FROM pg_type), ARRAY[1, 2], (SELECT 1) FROM pg_class"), ("nspname", "x", "exists", "array", "array", "?column?")),
    ("SELECT indkey[0], (i.indkey)[1], (indkey::int2[])[0], (current_schemas(true))[1], relname COLLATE \"C\" FROM pg_index i, pg_class",
     ("indkey", "indkey", "indkey", "current_schemas", "relname")),
    ("SELECT current_user, session_user FROM pg_class UNION SELECT relname, relname FROM pg_class", ("current_user", "session_user")),
    ("WITH a AS (SELECT 1 AS n) SELECT DISTINCT n + 1, n FROM a, pg_class", ("?column?", "n")),
    ("SELECT *, 1 FROM pg_class", ()),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "names"), NAMES)
def test_expressions_have_the_names_that_postgresql_gives_them(sql: str, names: tuple[str, ...]) -> None:
    query = catalogue_query(statement_of(sql))
    assert query is not None
    assert query.names == names


def test_clients_see_these_names() -> None:
    async def body(served: Served) -> None:
        async with await served.psycopg() as connection:
            cursor = await connection.execute("SELECT relkind || 'x', count(*) FROM pg_class GROUP BY 1")
            assert [column.name for column in cursor.description or ()] == ["?column?", "count"]

    run(body)


PARAMETERS: list[tuple[str, dict[int, int]]] = [
    ("SELECT 1 FROM pg_class WHERE relname = $1 AND oid = $2 AND relkind = ANY (ARRAY[$3, $4])",
     {1: types.TEXT, 2: types.OID, 3: types.TEXT, 4: types.TEXT}),
    ("SELECT 1 FROM pg_constraint WHERE conrelid IN ($2, $1) AND contype = $3::VARCHAR", {1: types.OID, 2: types.OID, 3: types.VARCHAR}),
    ("SELECT 1 FROM pg_class WHERE oid = CAST($1 AS regclass) OR oid = any($2::oid[]) OR relname = $3::character varying(20)",
     {1: types.TEXT, 2: 1028, 3: types.VARCHAR}),
    ("SELECT 1 FROM pg_type WHERE oid = to_regtype($1)", {}),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "oids"), PARAMETERS)
def test_the_types_of_parameters(sql: str, oids: dict[int, int]) -> None:
    query = catalogue_query(statement_of(sql))
    assert query is not None
    assert query.parameters == oids


def test_psycopg_does_not_find_unsupported_types() -> None:
    async def body(served: Served) -> None:
        connection = await served.psycopg()
        assert await TypeInfo.fetch(connection, "hstore") is None
        assert await EnumInfo.fetch(connection, "hstore") is None
        found = await TypeInfo.fetch(connection, "int4")
        assert found is not None
        assert (found.oid, found.array_oid, found.regtype) == (23, 1007, "integer")
        await connection.close()

    run(body)


def test_settings_are_answered_by_the_session() -> None:
    async def body(served: Served) -> None:
        client = await served.asyncpg()
        row = await client.fetchrow("SELECT set_config('application_name', $1, false), current_setting('application_name') AS now", "given")
        assert dict(row) == {"set_config": "given", "now": "given"}
        await client.close()

    run(body)


def test_a_query_asks_for_the_settings_of_its_session() -> None:
    async def body(served: Served) -> None:
        async with await served.psycopg(autocommit=True) as client:
            await client.execute("SET statement_timeout = '2min'")
            query = (
                "SELECT setting, source, boot_val, current_setting(name) FROM pg_settings WHERE name IN ('statement_timeout', 'TimeZone')"
            )
            assert await (await client.execute(query + " ORDER BY name DESC")).fetchall() == [
                ("2min", "session", "0", "2min"),
                ("UTC", "default", "UTC", "UTC"),
            ]
            query = "SELECT current_setting('role'), current_setting('nothing', true) FROM pg_am LIMIT 1"
            assert await (await client.execute(query)).fetchall() == [("none", None)]
            with pytest.raises(UndefinedObject, match="nothing"):
                await client.execute("SELECT current_setting('nothing') FROM pg_am")

    run(body)


def test_the_name_of_a_session_is_a_role() -> None:
    async def body(served: Served) -> None:
        async with await served.psycopg(autocommit=True) as client:
            for query in (
                "SELECT rolname, rolsuper FROM pg_roles WHERE rolname = current_user",
                "SELECT r.rolname, u.usesuper FROM pg_catalog.pg_roles AS r JOIN pg_user u ON usesysid = r.oid AND usename = session_user",
            ):
                assert await (await client.execute(query)).fetchall() == [("me", True)]
            query = "SELECT bool_and(has_table_privilege(oid, 'pg_class', 'select')) FROM pg_roles WHERE rolname = current_user"
            assert await (await client.execute(query)).fetchall() == [(True,)]
            count = await client.execute("SELECT count(*) FROM pg_namespace JOIN pg_roles r ON r.oid = nspowner")
            assert await count.fetchall() == [(3,)], "the owner has one row"

    run(body)


def test_the_number_of_a_row_is_no_column_of_the_catalogue() -> None:
    async def body(served: Served) -> None:
        async with await served.psycopg(autocommit=True) as client:
            with pytest.raises(UndefinedColumn):
                await client.execute("SELECT oid FROM pg_inherits")

    run(body)


READABLE = sorted(set(TABLES) - {"triplicate_changes"})
"""The tables that have no arguments."""


@pytest.mark.parametrize("table", READABLE)
def test_a_column_has_the_type_of_its_own_table_in_every_query(table: str) -> None:
    columns = COLUMNS[table]
    for items in (", ".join(columns), ", ".join(f'x."{name}"' for name in columns), ", ".join(f"max({name})" for name in columns)):
        query = catalogue_query(statement_of(f"SELECT {items} FROM {table} AS x"))
        assert query is not None
        assert query.columns == tuple(columns.values())


def test_the_tables_of_a_query_determine_the_types_of_its_columns_and_parameters() -> None:
    def described(sql: str) -> tuple[tuple[int | None, ...], dict[int, int]]:
        query = catalogue_query(statement_of(sql))
        assert query is not None
        return query.columns, query.parameters

    assert described("SELECT key FROM triplicate_backups WHERE key = $1") == ((types.TEXT,), {1: types.TEXT})
    assert described("SELECT key FROM triplicate_changes('*', 1)") == ((types.JSONB,), {})
    assert described("SELECT tls FROM triplicate_nodes WHERE tls = $1") == ((types.BOOL,), {1: types.BOOL})
    assert described("SELECT tls FROM triplicate_sessions WHERE tls = $1") == ((types.TEXT,), {1: types.TEXT})
    assert described("SELECT coalesce(n.tls, s.tls), s.application FROM triplicate_nodes n, triplicate_sessions s") == (
        (None, types.TEXT),
        {},
    )
    assert described("SELECT name FROM pg_settings, pg_available_extensions") == ((types.TEXT,), {})


def test_the_types_of_all_columns_are_described() -> None:
    async def body(served: Served) -> None:
        async with await served.psycopg(autocommit=True) as client:
            for table in sorted(set(READABLE) - set(LIVE_TABLES)):  # A session of this rig has no rows of live tables.
                for items in ("*", ", ".join(COLUMNS[table])):
                    found = await client.execute(f"SELECT {items} FROM {table} LIMIT 0".encode())
                    assert {one.name: one.type_code for one in found.description or ()} == COLUMNS[table]

    run(body)


def test_every_word_that_marks_such_a_query_is_found() -> None:
    for word in _TRIGGERS:
        assert any(piece in word.lower() for piece in _PIECES), word
