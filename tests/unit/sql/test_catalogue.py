"""The catalogue's rows and functions over one SQLite connection, without a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw
import pytest

from triplicate.errors import SqlError
from triplicate.sql.catalogue import register_functions, register_tables
from triplicate.sql.catalogue.live_tables import LIVE_TABLES
from triplicate.sql.catalogue.object_ids import object_ids
from triplicate.sql.catalogue.relations import TABLES
from triplicate.sql.catalogue.type_names import TYPES, declared_type, format_type, type_named

SCHEMA = """
create table author(id integer primary key, name varchar(50) not null unique, born timestamp with time zone default 'now',
  rate numeric(10, 2) constraint positive check (rate > 0));
create table book(isbn text not null, part int, author_id integer not null references author on delete cascade, "Odd name" text,
  constraint book_key primary key (isbn, part), constraint short check (length(isbn) < (20)));
create index by_author on book(author_id desc, lower(isbn)) where part > 3;
create view titles as select isbn from book;
create table triplicate_state(a);
"""


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    opened = apsw.Connection(":memory:")
    register_functions(opened, register_tables(opened))
    opened.execute(SCHEMA)
    yield opened
    opened.close()


def ask(connection: apsw.Connection, sql: str, *parameters: Any) -> list[Any]:
    return connection.execute(sql, parameters).fetchall()


def test_relations_are_those_of_the_schema_and_ours_are_not_shown(connection: apsw.Connection) -> None:
    found = ask(connection, "select relname, relkind, relnatts from pg_class order by relkind desc, relname")
    assert found == [
        ("titles", "v", 1),
        ("author", "r", 4),
        ("book", "r", 4),
        ("author_name_key", "i", 1),
        ("author_pkey", "i", 1),
        ("book_key", "i", 2),
        ("by_author", "i", 2),
        ("author_id_seq", "S", 3),
    ]


def test_columns_say_what_they_declare(connection: apsw.Connection) -> None:
    found = ask(
        connection,
        "select attname, attnum, format_type(atttypid, atttypmod), attnotnull, attidentity from pg_attribute"
        " where attrelid = to_regclass('author') order by attnum",
    )
    assert found == [
        ("id", 1, "integer", 1, "d"),
        ("name", 2, "character varying(50)", 1, ""),
        ("born", 3, "timestamp with time zone", 0, ""),
        ("rate", 4, "numeric(10,2)", 0, ""),
    ]
    found = ask(connection, "select adnum, pg_get_expr(adbin, adrelid) from pg_attrdef order by adnum")
    assert found == [(1, "nextval('author_id_seq'::regclass)"), (3, "'now'::timestamp with time zone")]


def test_constraints_have_their_names_and_texts(connection: apsw.Connection) -> None:
    found = ask(connection, "select conname, contype, conkey, confkey, pg_get_constraintdef(oid) from pg_constraint order by conname")
    assert found == [
        ("author_name_key", "u", "{2}", None, "UNIQUE (name)"),
        ("author_pkey", "p", "{1}", None, "PRIMARY KEY (id)"),
        ("book_author_id_fkey", "f", "{3}", "{1}", "FOREIGN KEY (author_id) REFERENCES author(id) ON DELETE CASCADE"),
        ("book_key", "p", "{1,2}", None, "PRIMARY KEY (isbn, part)"),
        ("positive", "c", "{4}", None, "CHECK ((rate > 0))"),
        ("short", "c", "{}", None, "CHECK ((length(isbn) < (20)))"),
    ]


def test_a_foreign_key_names_the_index_of_the_key_to_which_it_refers(connection: apsw.Connection) -> None:
    connection.execute(
        "create table paper(a text, b int, c text, foreign key (b, a) references book(part, isbn), foreign key (c) references gone)"
    )
    connection.execute("create table note(author text references author(name))")
    found = ask(
        connection,
        "select conname, relname from pg_constraint left join pg_class i on i.oid = conindid where contype = 'f' order by conname",
    )
    assert found == [
        ("book_author_id_fkey", "author_pkey"),
        ("note_author_fkey", "author_name_key"),
        ("paper_b_a_fkey", "book_key"),
        ("paper_c_fkey", None),
    ]


def test_an_index_shows_its_columns_expressions_and_condition(connection: apsw.Connection) -> None:
    found = ask(
        connection,
        "select indkey, indoption, indisunique, indisprimary, indpred, pg_get_indexdef(indexrelid), pg_get_indexdef(indexrelid, 2, 1)"
        " from pg_index where indexrelid = to_regclass('by_author')",
    )
    text = "CREATE INDEX by_author ON public.book USING btree (author_id DESC, lower(isbn)) WHERE (part > 3)"
    assert found == [("3 0", "3 0", 0, 0, "part > 3", text, "lower(isbn)")]


def test_information_schema(connection: apsw.Connection) -> None:
    tables = ask(connection, 'select table_schema, table_name, table_type from "information_schema.tables" order by table_name')
    assert tables == [("public", "author", "BASE TABLE"), ("public", "book", "BASE TABLE"), ("public", "titles", "VIEW")]
    columns = ask(
        connection,
        "select column_name, data_type, is_nullable, character_maximum_length, numeric_precision, numeric_scale, is_identity"
        " from \"information_schema.columns\" where table_name = 'author' order by ordinal_position",
    )
    assert columns == [
        ("id", "integer", "NO", None, 32, 0, "YES"),
        ("name", "character varying", "NO", 50, None, None, "NO"),
        ("born", "timestamp with time zone", "YES", None, None, None, "NO"),
        ("rate", "numeric", "YES", None, 10, 2, "NO"),
    ]


def test_information_schema_has_the_constraints_and_their_columns(connection: apsw.Connection) -> None:
    connection.execute("create table paper(a text, b int, foreign key (b, a) references book(part, isbn) deferrable initially deferred)")
    found = ask(
        connection,
        'select table_name, constraint_name, constraint_type, is_deferrable from "information_schema.table_constraints" order by 1, 2',
    )
    assert found == [
        ("author", "author_name_key", "UNIQUE", "NO"),
        ("author", "author_pkey", "PRIMARY KEY", "NO"),
        ("author", "positive", "CHECK", "NO"),
        ("book", "book_author_id_fkey", "FOREIGN KEY", "NO"),
        ("book", "book_key", "PRIMARY KEY", "NO"),
        ("book", "short", "CHECK", "NO"),
        ("paper", "paper_b_a_fkey", "FOREIGN KEY", "YES"),
    ]
    found = ask(
        connection,
        "select constraint_name, column_name, ordinal_position, position_in_unique_constraint"
        ' from "information_schema.key_column_usage" order by constraint_name, ordinal_position',
    )
    assert found == [
        ("author_name_key", "name", 1, None),
        ("author_pkey", "id", 1, None),
        ("book_author_id_fkey", "author_id", 1, 1),
        ("book_key", "isbn", 1, None),
        ("book_key", "part", 2, None),
        ("paper_b_a_fkey", "b", 1, 2),
        ("paper_b_a_fkey", "a", 2, 1),
    ]


def test_rows_follow_the_schema_of_the_running_transaction(connection: apsw.Connection) -> None:
    count = "select count(*) from pg_class where relname = 'later'"
    connection.execute("begin")
    connection.execute("create table later(a)")
    assert ask(connection, count) == [(1,)]
    connection.execute("rollback")
    assert ask(connection, count) == [(0,)]
    connection.execute("create table later(a); drop table later")
    assert ask(connection, count) == [(0,)]


def test_a_schema_that_was_rolled_back_is_not_shown_for_another_of_its_number(connection: apsw.Connection) -> None:
    names = "select relname from pg_class where relname in ('x', 'y') order by 1"
    connection.execute("begin; create table x(a)")
    assert ask(connection, names) == [("x",)]
    connection.execute("rollback; begin; create table y(a)")
    assert ask(connection, names) == [("y",)]
    connection.execute("savepoint s; drop table y; create table x(a)")
    assert ask(connection, names) == [("x",)]
    connection.execute("rollback to s; create view x as select 1; drop view x")
    assert ask(connection, names) == [("y",)]
    connection.execute("commit")
    assert ask(connection, names) == [("y",)]


def test_a_value_of_another_type_is_compared_as_sqlite_does(connection: apsw.Connection) -> None:
    assert ask(connection, "select typname from pg_type where oid = ?", 23) == [("int4",)]
    assert ask(connection, "select typname from pg_type where oid = ?", "23") == [("int4",)]
    assert ask(connection, "select typname from pg_type where oid = ?", None) == []
    assert ask(connection, "select typname from pg_type where typname = ?", "INT4") == []


def test_object_ids_come_from_names_alone() -> None:
    first, second = object_ids(["author", "book"]), object_ids(["book", "more", "author"])
    assert first["author"] == second["author"]
    assert first == {"author": 1447154815, "book": 390491793}, "an oid of a release before this one must stay"
    assert len(set(object_ids([f"t{number}" for number in range(5000)]).values())) == 5000
    assert all(16384 <= number < 2**31 for number in object_ids([f"t{number}" for number in range(5000)]).values())


def test_names_of_relations_and_types(connection: apsw.Connection) -> None:
    oid = ask(connection, "select oid from pg_class where relname = 'book'")[0][0]
    for name in ("book", "BOOK", "public.book", '"book"', 'public."book"', str(oid)):
        assert ask(connection, "select pg_cast_regclass(?)", name) == [(oid,)], name
    assert ask(connection, "select pg_regclass_text(?), pg_regclass_text(1259), pg_regclass_text(7)", oid) == [("book", "pg_class", "7")]
    assert ask(connection, "select to_regclass('absent'), to_regclass('other.book'), to_regtype('absent')") == [(None, None, None)]
    for sql, state in (
        ("pg_cast_regclass('absent')", "42P01"),
        ("pg_cast_regtype('absent')", "42704"),
        ("pg_cast_regnamespace('x')", "3F000"),
    ):
        with pytest.raises(SqlError) as refused:
            ask(connection, f"select {sql}")
        assert refused.value.sqlstate == state


def test_arrays_are_gathered_and_taken_apart(connection: apsw.Connection) -> None:
    assert ask(connection, "select array_agg(column1 order by column1 desc) from (values (1), (3), (2))") == [("{3,2,1}",)]
    assert ask(connection, "select array_agg(column1) from (values ('a,b'), (null), ('NULL'), (''))") == [('{"a,b",NULL,"NULL",""}',)]
    assert ask(connection, "select array_agg(1) where false") == [(None,)]
    taken = ask(connection, "select value1, value2, ordinality, subscript from pg_unnest(?, ?)", '{"a,b",NULL,"say \\"x\\""}', "{1,2}")
    assert taken == [("a,b", 1, 1, 1), (None, 2, 2, 2), ('say "x"', None, 3, 3)]
    assert ask(connection, "select value1, subscript from pg_unnest('3 0')") == [(3, 0), (0, 1)]
    assert ask(connection, "select value1 from pg_unnest('{}')") == []
    assert ask(connection, "select pg_array_has('{1,2}', 2), pg_array_has('{1,NULL}', 2), pg_array_has('[\"a\"]', 'a')") == [(1, None, 1)]
    assert ask(connection, "select pg_array_item('{5,6}', 2), pg_array_item('5 6', 0), pg_array_item('{5}', 2)") == [(6, 5, None)]
    for text in ("{1,2", "{{1},{2}}", "x"):
        with pytest.raises(SqlError):
            ask(connection, "select value1 from pg_unnest(?)", text)


def test_views_and_triggers_may_not_hang_on_the_catalogue(connection: apsw.Connection) -> None:
    connection.execute("create view v as select relname from pg_class")
    with pytest.raises(apsw.SQLError, match="unsafe use of virtual table"):
        ask(connection, "select * from v")
    with pytest.raises(apsw.SQLError, match="unsafe use"):
        connection.execute("create table d(a default (to_regtype('int4'))); insert into d default values")
    with pytest.raises(apsw.SQLError):
        connection.execute("delete from pg_class")


def test_a_referenced_table_has_triggers_as_in_postgresql(connection: apsw.Connection) -> None:
    """psql asks for the tables that refer to one only where it has triggers."""
    connection.execute("create table alone(a); create view shown as select 1")
    found = ask(connection, "select relname, relhastriggers from pg_class where relkind in ('r', 'v') order by 1")
    assert found == [("alone", 0), ("author", 1), ("book", 1), ("shown", 0), ("titles", 0)]


TRIGGERS = [
    ("create trigger late after update of isbn on book begin select 1; end", 1 | 16,
     "late after update of isbn on book begin select 1; end"),
    ('CREATE TRIGGER IF NOT EXISTS "first" BEFORE INSERT ON book BEGIN SELECT 1; END', 1 | 2 | 4,
     '"first" BEFORE INSERT ON book BEGIN SELECT 1; END'),
    ("create trigger main.plain delete on book begin select 1; end", 1 | 2 | 8, "plain delete on book begin select 1; end"),
    ("create trigger for_view instead of insert on titles begin select 1; end", 1 | 64 | 4,
     "for_view instead of insert on titles begin select 1; end"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "kind", "text"), TRIGGERS)
def test_a_trigger_shows_its_kind_and_its_stored_text(connection: apsw.Connection, sql: str, kind: int, text: str) -> None:
    connection.execute(sql)
    found = ask(connection, "select tgtype, pg_get_triggerdef(t.oid, 1), relname from pg_trigger t join pg_class c on c.oid = tgrelid")
    assert found == [(kind, f"CREATE TRIGGER {text}", "titles" if "titles" in sql else "book")]


def test_a_view_shows_its_query(connection: apsw.Connection) -> None:
    connection.execute('create view "As"(a, "as") as /* types 1 | - | - */ select isbn as x, part from book')
    found = ask(
        connection, "select pg_get_viewdef(ev_class), ev_type from pg_rewrite r join pg_class c on ev_class = c.oid order by relname"
    )
    assert found == [(" select isbn as x, part from book;", "1"), (" select isbn from book;", "1")]
    assert ask(connection, "select viewname, definition from pg_views where viewname = 'titles'") == [("titles", " select isbn from book;")]


def test_a_definition_for_people_has_fewer_brackets(connection: apsw.Connection) -> None:
    found = ask(connection, "select pg_get_constraintdef(oid, 1), pg_get_constraintdef(oid, 0) from pg_constraint where contype = 'c'")
    assert ("CHECK (rate > 0)", "CHECK ((rate > 0))") in found
    text = "CREATE INDEX by_author ON book USING btree (author_id DESC, lower(isbn)) WHERE part > 3"
    assert ask(connection, "select pg_get_indexdef(to_regclass('by_author'), 0, 1)") == [(text,)]


def test_an_index_and_a_sequence_have_columns(connection: apsw.Connection) -> None:
    connection.execute("create index two on book(lower(isbn), lower(isbn || 'x'), (part + 1), (part + 2))")
    query = "select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = to_regclass(?) order by attnum"
    assert ask(connection, query, "by_author") == [("author_id", "integer"), ("lower", "-")]
    assert [name for name, _ in ask(connection, query, "two")] == ["lower", "lower1", "expr", "expr1"]
    assert ask(connection, query, "author_id_seq") == [("last_value", "bigint"), ("log_cnt", "bigint"), ("is_called", "boolean")]
    assert ask(connection, "select seqtypid, seqmax from pg_sequence") == [(23, 2**31 - 1)]


SIZES = [(0, "0 bytes"), (10239, "10239 bytes"), (10240, "10 kB"), (10485247, "10239 kB"), (10485248, "10 MB"), (123456789012, "115 GB"),
         (-10240, "-10 kB"), (None, None)]  # fmt: skip


@pytest.mark.parametrize(("size", "text"), SIZES)
def test_a_size_has_a_unit(connection: apsw.Connection, size: int | None, text: str | None) -> None:
    assert ask(connection, "select pg_size_pretty(?)", size) == [(text,)]


def test_sizes_are_those_of_the_pages(connection: apsw.Connection) -> None:
    connection.execute("insert into book select 'x' || value, value, 1, zeroblob(1000) from json_each('[1,2,3,4,5,6,7,8,9]')")
    (page,) = ask(connection, "pragma page_size")[0]
    sizes = "select pg_table_size({0}), pg_relation_size({0}, 'main'), pg_indexes_size({0}), pg_total_relation_size({0})"
    table, main, indexes, total = ask(connection, sizes.format("'book'"))[0]
    assert table == main > 2 * page
    assert (indexes, total) == (2 * page, table + 2 * page)
    assert ask(connection, sizes.format("'titles'")) == [(0, 0, 0, 0)]
    assert ask(connection, sizes.format("'author_pkey'")) == [(0, 0, 0, 0)], "the index of a rowid is the table"
    (pages,) = ask(connection, "pragma page_count")[0]
    assert ask(connection, "select pg_database_size(datname), pg_database_size('other') from pg_database") == [(pages * page, None)]
    with pytest.raises(SqlError) as refused:
        ask(connection, "select pg_relation_size('book', 'other')")
    assert refused.value.sqlstate == "22023"


def test_the_sessions_of_administrators_have_a_row(connection: apsw.Connection) -> None:
    query = "select rolname, rolsuper, rolcanlogin, oid = ? from pg_roles(?, ?) where rolname = 'me'"
    (oid,) = object_ids(["me"]).values()
    assert ask(connection, query, oid, "me", "") == [("me", 1, 1, 1)]
    assert ask(connection, query, oid, "me", "me") == [], "a role of the database has its own row"
    assert ask(connection, "select count(*) from pg_user('triplicate', '')") == [(1,)]
    assert ask(connection, "select usename, usesuper from pg_user('me', '') where usename = 'me'") == [("me", 1)]


DECLARED = [
    ("INTEGER", "integer"),
    ("int", "integer"),
    ("BIGINT", "bigint"),
    ("varchar(20)", "character varying(20)"),
    ("character varying (20)", "character varying(20)"),
    ("CHAR", "character(1)"),
    ("DECIMAL(10,2)", "numeric(10,2)"),
    ("numeric", "numeric"),
    ("double precision", "double precision"),
    ("FLOAT(53)", "double precision"),
    ("timestamp with time zone", "timestamp with time zone"),
    ("TIMESTAMP", "timestamp without time zone"),
    ("DATETIME", "timestamp without time zone"),
    ("int[]", "integer[]"),
    ("UNSIGNED BIG INT", "bigint"),
    ("nvarchar(10)", "text"),
    ("", "text"),
    ("7", "text"),
]


@pytest.mark.parametrize(("declared", "shown"), DECLARED)
def test_declared_types(declared: str, shown: str) -> None:
    assert format_type(*declared_type(declared)) == shown


def test_types_are_found_by_every_name_of_theirs() -> None:
    for oid, facts in TYPES.items():
        assert type_named(facts.name) in (oid, 1042), facts.name  # `char` is the SQL type, `"char"` the catalogue's.
        assert type_named(facts.shown) == oid
        assert facts.array in TYPES or facts.category in "AP"
    assert type_named("pg_catalog.int4") == type_named("INT4") == 23


def test_every_table_can_be_read(connection: apsw.Connection) -> None:
    for name, columns in TABLES.items():
        live = name in LIVE_TABLES
        rows = ask(connection, f'select * from "{name}"' + ("('[[1, 2], []]')" if live else ""))
        assert all(len(row) == len(columns.split(",")) for row in rows), name
        assert not live or [row[:3] for row in rows] == [(1, 2, None), (None, None, None)]


def test_a_live_table_without_its_rows_is_refused(connection: apsw.Connection) -> None:
    with pytest.raises(SqlError) as refused:
        ask(connection, "select * from triplicate_nodes")
    assert refused.value.sqlstate == "0A000"


def test_a_serial_or_identity_key_has_the_sequence_that_tools_read(connection: apsw.Connection) -> None:
    connection.execute("create table taken_id_seq(x)")
    connection.execute("create table taken(id integer primary key)")
    owned = (
        "select s.relname, t.relname, a.attname from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S'"
        " join pg_class t on t.oid = d.refobjid join pg_attribute a on a.attrelid = t.oid and a.attnum = d.refobjsubid"
        " where d.deptype = 'a' and d.classid = pg_cast_regclass('pg_class') order by 2"
    )
    assert ask(connection, owned) == [("author_id_seq", "author", "id"), ("taken_id_seq1", "taken", "id")]
    assert ask(connection, "select count(*) from pg_class where oid = to_regclass('author_id_seq')") == [(1,)]
    assert ask(connection, "select table_name from \"information_schema.tables\" where table_name like 'author%'") == [("author",)]


def test_a_generated_column_shows_its_expression(connection: apsw.Connection) -> None:
    connection.execute("create table g(a int, b int generated always as (a + (1)) stored, c text as (upper('as (x)')) check (c > ''))")
    found = ask(
        connection,
        "select attname, attgenerated, pg_get_expr(adbin, adrelid) from pg_attribute a left join pg_attrdef d"
        " on adrelid = attrelid and adnum = attnum where attrelid = to_regclass('g') order by attnum",
    )
    assert found == [("a", "", None), ("b", "s", "a + (1)"), ("c", "s", "upper('as (x)')")]
    found = ask(
        connection,
        "select column_default, generation_expression from \"information_schema.columns\" where table_name = 'g' order by ordinal_position",
    )
    assert found == [(None, None), (None, "a + (1)"), (None, "upper('as (x)')")]


def test_a_serial_or_identity_key_shows_its_declared_type(connection: apsw.Connection) -> None:
    connection.execute("create table wide(id INTEGER /* bigint */ PRIMARY KEY AUTOINCREMENT, x INTEGER /* bigint */)")
    connection.execute("create table narrow(id INTEGER /* smallint */ CONSTRAINT k PRIMARY KEY AUTOINCREMENT)")
    connection.execute("alter table wide rename to wider")
    found = ask(
        connection,
        "select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid in (to_regclass('wider'), to_regclass('narrow'))"
        " order by attrelid = to_regclass('narrow'), attnum",
    )
    assert found == [("id", "bigint"), ("x", "integer"), ("id", "smallint")]


def test_a_view_that_cannot_be_computed_hides_nothing_else(connection: apsw.Connection) -> None:
    everything = [
        "select relname, relnatts from pg_class where relname <> 'nowhere' order by relname",
        "select attrelid, attname from pg_attribute order by attrelid, attnum",
        'select table_name, column_name from "information_schema.columns" order by 1, ordinal_position',
    ]
    before = [ask(connection, query) for query in everything]
    connection.execute("create view nowhere as select nosuch() as n")
    assert [ask(connection, query) for query in everything] == before
    assert ask(connection, "select relkind, relnatts from pg_class where relname = 'nowhere'") == [("v", 0)]


def test_a_view_shows_the_types_that_it_keeps(connection: apsw.Connection) -> None:
    kept = "/* types 1 | - | date | numeric(1000,2) | numeric(12,2) | ? */"
    connection.execute(f"create view kept(a, b, c, d, e) as {kept} select isbn, 1, 2, 3, 4 from book")
    query = "select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = to_regclass('kept') order by attnum"
    (isbn,) = [kind for name, kind in ask(connection, query.replace("kept", "book")) if name == "isbn"]
    assert ask(connection, query) == [("a", isbn), ("b", "date"), ("c", "numeric"), ("d", "numeric(12,2)"), ("e", "text")]
