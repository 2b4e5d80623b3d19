"""Reads of tables, views and queries from real nodes, without Spark."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType

from tests.unit.spark.feed_stand import struct_of
from tests.unit.spark.table_stand import TableStand, given, rows_of, table_stand
from triplicate.errors import ConfigError, EnvironmentFault, OffsetTruncated
from triplicate.spark.cluster import database_tables, table_content
from triplicate.spark.tables.table_reading import QueryPart, TablePart
from triplicate.spark.tables.table_source import TableDataSource

TYPES = (
    "create table ty(id int primary key, n numeric(10,2), m numeric, u uuid, j json, d date, t timestamp, tz timestamptz, f real, "
    "bo boolean, vc varchar(20), ti time, g int generated always as (id + 1) stored)"
)


@pytest.fixture
def stand(shared: TableStand) -> TableStand:
    """Without the tables of the test before."""
    shared.clear()
    return shared


def test_each_type_is_read_as_sparks_type_for_it(stand: TableStand) -> None:
    stand.must(
        TYPES,
        "insert into ty(id, n, m, u, j, d, t, tz, f, bo, vc, ti) values (1, 10.5, 3.25, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', "
        "'{\"a\": 1}', '2026-11-01', '2026-11-01 10:00:00.123', '2026-11-01 10:00:00+02', 1.5, true, 'it''s, \"a\"\nline', '10:00:00'), "
        "(2, -3, null, null, null, null, '1999-12-31 23:59:59', null, -0.1, false, 'NULL', null), "
        "(3, null, null, null, null, null, null, null, null, null, null, null), "
        "(4, null, 0.1, null, null, null, null, null, 1e300, null, '', null)",
    )
    first, second, nulls, last = stand.read(table="TY")
    assert first == {
        "id": 1,
        "n": Decimal("10.50"),
        "m": "3.25",
        "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "j": '{"a": 1}',
        "d": date(2026, 11, 1),
        "t": datetime(2026, 11, 1, 10, 0, 0, 123000),  # noqa: DTZ001
        "tz": datetime(2026, 11, 1, 8, tzinfo=UTC),
        "f": 1.5,
        "bo": True,
        "vc": 'it\'s, "a"\nline',
        "ti": "10:00:00",
        "g": 2,
    }
    assert (second["n"], second["f"], second["bo"], second["vc"]) == (Decimal("-3.00"), -0.1, False, "NULL")
    assert {name for name, value in nulls.items() if value is not None} == {"id", "g"}
    assert (last["m"], last["f"], last["vc"]) == ("0.1", 1e300, "")
    # The same rows through a query are converted one by one.
    assert stand.read(query="select * from ty order by id") == [first, second, nulls, last]
    assert stand.read(table="ty", columns="TZ, id")[0] == {"tz": first["tz"], "id": 1}


def test_a_table_is_cut_by_its_rowids_and_read_in_pages(stand: TableStand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_content, "FIRST_PAGE_ROWS", 3)
    stand.must("create table t(id integer primary key, v text)")
    stand.must("insert into t select value * 5 - 500, 'v' || value from generate_series(1, 1000) g(value)")
    expected = [{"id": number * 5 - 500, "v": f"v{number}"} for number in range(1, 1001)]
    assert stand.read(table="t") == expected
    reader = TableDataSource(given({"table": "t", "rowsPerPartition": "300"})).reader(struct_of("id LONG, v STRING"))
    parts = reader.partitions()
    assert [len(rows_of(reader, [part])) for part in parts] == [300, 300, 300, 100]
    assert all(isinstance(part, TablePart) for part in pickle.loads(pickle.dumps(parts)))
    assert len(TableDataSource(given({"table": "t", "minPartitions": "7"})).reader(struct_of("id LONG")).partitions()) == 7
    assert len(stand.read(table="t", minPartitions="19")) == 1000


def test_rowids_may_be_the_least_and_the_greatest_numbers(stand: TableStand) -> None:
    numbers = [-(2**63), -(2**63) + 1, 0, 2**63 - 2, 2**63 - 1]
    stand.must("create table t(id integer primary key, v text)", *(f"insert into t values ({number}, 'v')" for number in numbers))
    for rows in ("1", "2", "3", "5"):
        assert [row["id"] for row in stand.read(table="t", rowsPerPartition=rows)] == numbers
    assert [row["id"] for row in stand.read(table="t", columns="id")] == numbers


def test_rows_much_larger_than_those_before_are_read_in_smaller_pages(stand: TableStand, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = psycopg.errors.ProgramLimitExceeded("too large")
    execute, pages = psycopg.Connection.execute, []

    def limited(self: psycopg.Connection[Any], query: Any, params: Any = None, **named: Any) -> Any:
        cursor = execute(self, query, params, **named)
        if not str(query).startswith("SELECT count(*), max(place)"):
            return cursor
        (row,) = rows = cursor.fetchall()
        if len(row[2] or "") > 3_000 and row[0] > 1:
            raise refused
        pages.append(row[0])
        return type("Fetched", (), {"fetchall": lambda _: rows})()

    monkeypatch.setattr(psycopg.Connection, "execute", limited)
    stand.must("create table t(id integer primary key, v text)", "insert into t select value, 'v' from generate_series(1, 500) g(value)")
    stand.must("insert into t select value, repeat('x', 2000) from generate_series(501, 520) g(value)")
    assert [row["id"] for row in stand.read(table="t")] == list(range(1, 521))
    assert 1 in pages
    assert max(pages) > 100


def test_values_that_no_page_can_have_are_read_one_by_one(stand: TableStand) -> None:
    """A blob among texts, or a text that looks like one; binary columns; tables without rowids; views."""
    stand.must("create table t(id integer primary key, v text, b bytea)", "insert into t values (1, 'X''41''', '\\x00ff'), (2, 'b', null)")
    assert stand.read(table="t") == [{"id": 1, "v": "X'41'", "b": b"\x00\xff"}, {"id": 2, "v": "b", "b": None}]
    assert stand.read(table="t", columns="v") == [{"v": "X'41'"}, {"v": "b"}]
    stand.must("create table w(k text primary key, n int) without rowid", "insert into w values ('b', 1), ('a', 2)")
    assert stand.read(table="w") == [{"k": "a", "n": 2}, {"k": "b", "n": 1}]
    stand.must("create view vw as select n * 2 as twice, k from w")
    assert sorted(row["twice"] for row in stand.read(table="vw")) == [2, 4]
    stand.must("create table empty(id int)")
    assert stand.read(table="empty") == []


def test_a_read_is_of_one_position_while_the_table_changes(stand: TableStand) -> None:
    stand.must("create table t(id integer primary key, v int)", "insert into t select value, 0 from generate_series(1, 100) g(value)")
    before = stand.rows("select triplicate_position()")[0][0]
    reader = TableDataSource(given({"table": "t", "rowsPerPartition": "30"})).reader(struct_of("id LONG, v LONG"))
    parts = reader.partitions()
    stand.must("update t set v = 1", "delete from t where id > 50")
    assert [row["v"] for row in rows_of(reader, parts)] == [0] * 100
    assert len(stand.read(table="t")) == 50
    assert len(stand.read(table="t", versionAsOf=str(before - 1))) == 100
    assert stand.read(table="t", versionAsOf=str(before - 2)) == []
    ((now,),) = stand.rows("select now()")
    assert len(stand.read(table="t", timestampAsOf=now.isoformat())) == 50
    with pytest.raises(OffsetTruncated, match="position 1000 is not written yet"):
        stand.read(table="t", versionAsOf="999")


def test_a_query_names_its_results_as_postgresql_does(stand: TableStand) -> None:
    stand.must("create table t(id integer primary key, v text)", "insert into t values (1, 'lion'), (2, 'zebra')")
    assert stand.read(query="select max(v), count(*) from t") == [{"max": "zebra", "count": 2}]
    with pytest.raises(ConfigError, match=r"two columns of one name \(id, ID\): name them with AS"):
        stand.read(query='select id, id as "ID" from t')


def test_a_query_is_cut_by_a_column_of_integers(stand: TableStand) -> None:
    stand.must(
        "create table t(id int, v text)",
        "insert into t select value, 'v' from generate_series(-5, 20) g(value)",
        "insert into t values (null, 'n')",
    )
    options = {"query": "select id, v from t;", "partitionColumn": "ID", "numPartitions": "4"}
    reader = TableDataSource(given(options)).reader(struct_of("id LONG, v STRING"))
    parts = reader.partitions()
    assert len(parts) == 4
    assert all(isinstance(part, QueryPart) for part in parts)
    found = [[row["id"] for row in rows_of(reader, [part])] for part in parts]
    assert [len(part) for part in found] == [8, 7, 7, 5]
    assert sorted((number for part in found for number in part), key=lambda number: (number is not None, number)) == [None, *range(-5, 21)]
    assert stand.read(query="select id, v from t where id > 100", partitionColumn="id", numPartitions="4") == []
    with pytest.raises(ConfigError, match=r"'partitionColumn' is a column of integers; 'v' holds 'n'"):
        stand.read(query="select id, v from t", partitionColumn="v", numPartitions="4")


def test_names_and_queries_may_hold_any_character(stand: TableStand) -> None:
    stand.must(
        """create table "50% ""of"" it's"("100%s" int primary key, "a,b" text)""", """insert into "50% ""of"" it's" values (1, '%')"""
    )
    expected = [{"100%s": 1, "a,b": "%"}]
    schema = StructType([StructField("100%s", LongType()), StructField("a,b", StringType())])
    assert stand.read(schema, table='50% "of" it\'s') == expected
    assert stand.read(schema, query='select * from "50% ""of"" it\'s" where "a,b" like \'%\' -- all;') == expected


def test_what_cannot_be_read_is_named(stand: TableStand) -> None:
    stand.must("create table t(id integer primary key, v text)", "insert into t values (1, 'x')")
    with pytest.raises(ConfigError, match="refuses this read: no such table: nope"):
        stand.read(table="nope")
    with pytest.raises(ConfigError, match=r"refuses this read: near .*: syntax error"):
        stand.read(query="select 1 +")
    with pytest.raises(ConfigError, match="there is no column 'w'; there are 'id', 'v'"):
        stand.read(table="t", columns="id,w")
    own = StructType([StructField("V", LongType())])
    with pytest.raises(ConfigError, match=r"table 't': column 'V' holds 'x', which is not of type int64; give a schema of your own"):
        stand.read(own, table="t")
    assert stand.read(StructType([StructField("ID", StringType())]), table="t") == [{"ID": "1"}]
    with pytest.raises(ConfigError, match="there is no column 'q'"):
        stand.read(StructType([StructField("q", LongType())]), table="t")
    with pytest.raises(ConfigError, match="'triplicate-changes' is the stream of its changes"):
        TableDataSource(given({"table": "t"})).streamReader(own)


def test_nodes_that_follow_are_read_and_the_leader_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with table_stand(monkeypatch, tmp_path, nodes=2) as stand:
        stand.must("create table t(id integer primary key)", "insert into t values (1), (2)")
        addresses = list(database_tables.node_connections("memory:", "db"))
        leader = "{}:{}".format(*stand.served._servers[stand.cluster.leader_name()].address)
        assert addresses[-1] == leader
        (part,) = TableDataSource(given({"table": "t"})).reader(struct_of("id LONG")).partitions()
        assert isinstance(part, TablePart)
        assert part.content.node == addresses[0] != leader
        follower = next(name for name in stand.cluster.nodes if name != stand.cluster.leader_name())
        reader = TableDataSource(given({"table": "t"})).reader(struct_of("id LONG"))
        stand.loop.call(stand.served._servers.pop(follower).stop())
        assert rows_of(reader, [part]) == [{"id": 1}, {"id": 2}]
        stand.loop.call(stand.served._servers.pop(stand.cluster.leader_name()).stop())
        with pytest.raises(EnvironmentFault, match="no node"):
            reader.partitions()
