"""pgjdbc, the driver of Java, called over Py4J, which needs no compiler: dates, keys, batches, and its own catalogue queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError

from tests.clients.foreign import leader_port
from tests.clients.stand import Db

TABLE = "(id INTEGER PRIMARY KEY, x INTEGER, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, n NUMERIC(10,2), b BOOLEAN, t TEXT)"


@pytest.fixture
def connection(java: JavaGateway, shared: Db, table: str) -> Iterator[Any]:
    url = f"jdbc:postgresql://127.0.0.1:{leader_port(shared)}/{shared.name}?user=tester&connectTimeout=10"
    opened = java.jvm.java.sql.DriverManager.getConnection(url)
    run(opened, f"CREATE TABLE {table} {TABLE}")
    yield opened
    opened.close()


def run(connection: Any, sql: str) -> None:
    statement = connection.createStatement()
    statement.execute(sql)
    statement.close()


def rows_of(result: Any, read: Callable[[Any], Any]) -> list[Any]:
    found = []
    while result.next():
        found.append(read(result))
    result.close()
    return found


def ask(connection: Any, sql: str, read: Callable[[Any], Any], *numbers: int) -> list[Any]:
    statement = connection.prepareStatement(sql)
    for place, number in enumerate(numbers, start=1):
        statement.setInt(place, number)
    return rows_of(statement.executeQuery(), read)


def pair(row: Any) -> tuple[int, int]:
    return row.getInt(1), row.getInt(2)


def test_casts_stand_where_they_are_written_also_when_the_statement_is_kept_on_the_server(connection: Any, table: str) -> None:
    run(connection, f"INSERT INTO {table}(id, x) VALUES (1, 10), (2, 20)")
    statement = connection.prepareStatement(f"UPDATE {table} SET x = ?::int WHERE id = ?::int")
    for turn in range(8):  # From the fifth execution on the driver uses a named statement and binary values.
        statement.setInt(1, 100 + turn)
        statement.setInt(2, 2)
        assert statement.executeUpdate() == 1
    assert ask(connection, f"SELECT id, x FROM {table} ORDER BY id", pair) == [(1, 10), (2, 107)]


def test_dates_and_times_come_back_as_they_were_given(connection: Any, java: JavaGateway, table: str) -> None:
    sql = java.jvm.java.sql
    day, moment = sql.Date.valueOf("2026-02-03"), sql.Timestamp.valueOf("2026-02-03 04:05:06.789")
    statement = connection.prepareStatement(f"INSERT INTO {table}(id, d, ts, tz, n, b) VALUES (?, ?, ?, ?, ?, ?)")
    for turn in range(7):
        statement.setInt(1, turn)
        statement.setDate(2, day)
        statement.setTimestamp(3, moment)
        statement.setTimestamp(4, moment)
        statement.setBigDecimal(5, java.jvm.java.math.BigDecimal("2.50"))
        statement.setBoolean(6, turn % 2 == 0)
        assert statement.executeUpdate() == 1

    def read(row: Any) -> tuple[str, str, str, str, bool]:
        decimal = str(row.getBigDecimal(4))
        return row.getDate(1).toString(), row.getTimestamp(2).toString(), row.getTimestamp(3).toString(), decimal, row.getBoolean(5)

    found = ask(connection, f"SELECT d, ts, tz, n, b FROM {table} ORDER BY id", read)
    text = "2026-02-03 04:05:06.789"
    assert found == [("2026-02-03", text, text, "2.50", turn % 2 == 0) for turn in range(7)]


def test_generated_keys_and_a_batch(connection: Any, java: JavaGateway, table: str) -> None:
    statement = connection.prepareStatement(f"INSERT INTO {table}(x) VALUES (?)", java.jvm.java.sql.Statement.RETURN_GENERATED_KEYS)
    statement.setInt(1, 5)
    statement.executeUpdate()
    assert rows_of(statement.getGeneratedKeys(), lambda row: row.getLong("id")) == [1]
    batch = connection.prepareStatement(f"INSERT INTO {table}(id, x) VALUES (?, ?)")
    for number in range(10, 15):
        batch.setInt(1, number)
        batch.setInt(2, number * 2)
        batch.addBatch()
    assert list(batch.executeBatch()) == [1] * 5
    assert ask(connection, f"SELECT count(*), sum(x) FROM {table}", pair) == [(6, 125)]


def test_any_of_an_array_and_booleans(connection: Any, java: JavaGateway, table: str) -> None:
    run(connection, f"INSERT INTO {table}(id, x) VALUES (1, 10), (2, 20), (3, 30)")
    statement = connection.prepareStatement(f"SELECT id, x FROM {table} WHERE id = ANY(?) ORDER BY id")
    wanted = java.new_array(java.jvm.java.lang.Integer, 2)
    wanted[0], wanted[1] = 3, 1
    statement.setArray(1, connection.createArrayOf("int4", wanted))
    assert rows_of(statement.executeQuery(), pair) == [(1, 10), (3, 30)]
    found = ask(
        connection, f"SELECT exists(SELECT 1 FROM {table} WHERE id = ?), 1 < 2", lambda row: (row.getBoolean(1), row.getBoolean(2)), 9
    )
    assert found == [(False, True)]


def test_a_transaction_is_undone_and_a_broken_constraint_has_its_sqlstate(connection: Any, table: str) -> None:
    connection.setAutoCommit(False)
    run(connection, f"INSERT INTO {table}(id, x) VALUES (1, 10)")
    savepoint = connection.setSavepoint("here")
    with pytest.raises(Py4JJavaError) as refused:
        run(connection, f"INSERT INTO {table}(id, x) VALUES (1, 11)")
    assert refused.value.java_exception.getSQLState() == "23505"
    connection.rollback(savepoint)
    assert ask(connection, f"SELECT id, x FROM {table}", pair) == [(1, 10)]
    connection.rollback()
    connection.setAutoCommit(True)
    assert ask(connection, f"SELECT id, x FROM {table}", pair) == []


def test_metadata_queries_of_the_driver_for_a_result(connection: Any, table: str) -> None:
    run(connection, f"INSERT INTO {table}(id, x, n) VALUES (1, 10, 2.5)")
    result = connection.createStatement().executeQuery(f"SELECT * FROM {table}")
    shape = result.getMetaData()
    names = [(shape.getColumnName(place), shape.getColumnTypeName(place)) for place in range(1, shape.getColumnCount() + 1)]
    assert names[:3] == [("id", "int8"), ("x", "int8"), ("d", "date")]
    assert names[3:] == [("ts", "timestamp"), ("tz", "timestamptz"), ("n", "numeric"), ("b", "bool"), ("t", "text")]
    assert connection.isValid(5)
    assert connection.getSchema() == "public"
    assert connection.getMetaData().getDatabaseProductName() == "PostgreSQL"


def test_copy_manager_copies_in_and_out(connection: Any, table: str, java: JavaGateway) -> None:
    manager = java.jvm.org.postgresql.copy.CopyManager(connection)
    reader = java.jvm.java.io.StringReader('1,one,2024-01-01\n2,"two, three",\n')
    assert manager.copyIn(f"COPY {table} (id, t, d) FROM STDIN WITH (FORMAT csv)", reader) == 2
    writer = java.jvm.java.io.StringWriter()
    assert manager.copyOut(f"COPY (SELECT id, t, d FROM {table} ORDER BY id) TO STDOUT", writer) == 2
    assert writer.toString() == "1\tone\t2024-01-01\n2\ttwo, three\t\\N\n"
    with pytest.raises(Py4JJavaError, match="duplicate key value violates unique constraint"):
        manager.copyIn(f"COPY {table} (id) FROM STDIN", java.jvm.java.io.StringReader("3\n1\n"))
    assert ask(connection, f"SELECT count(*) FROM {table}", lambda row: row.getInt(1)) == [2]


def test_the_metadata_of_the_driver_describe_tables_and_keys(connection: Any, table: str) -> None:
    run(
        connection,
        f"CREATE TABLE {table}_r (a int, b int, o INTEGER REFERENCES {table}(id) ON DELETE CASCADE, PRIMARY KEY (b, a), UNIQUE (o))",
    )
    run(connection, f"CREATE VIEW {table}_v AS SELECT id, t FROM {table}")
    facts = connection.getMetaData()
    try:
        found = rows_of(
            facts.getTables(None, "public", f"{table}%", None), lambda row: (row.getString(3).removeprefix(table), row.getString(4))
        )
        assert {("", "TABLE"), ("_r", "TABLE"), ("_v", "VIEW"), ("_r_pkey", "INDEX"), ("_id_seq", "SEQUENCE")} <= set(found)
        found = rows_of(facts.getColumns(None, "public", table, "%"), lambda row: (row.getString(4), row.getString(6), row.getString(18)))
        assert found[:2] == [("id", "serial", "NO"), ("x", "int4", "YES")]
        keys = rows_of(facts.getPrimaryKeys(None, "public", f"{table}_r"), lambda row: (row.getString(4), row.getInt(5), row.getString(6)))
        assert keys == [("b", 1, f"{table}_r_pkey"), ("a", 2, f"{table}_r_pkey")]
        for result in (facts.getImportedKeys(None, "public", f"{table}_r"), facts.getExportedKeys(None, "public", table)):
            references = rows_of(result, lambda row: tuple(row.getString(place) for place in (3, 4, 7, 8, 9, 11, 13)))
            assert references == [(table, "id", f"{table}_r", "o", "1", "0", f"{table}_pkey")]
        indexes = rows_of(
            facts.getIndexInfo(None, "public", f"{table}_r", False, False), lambda row: (row.getBoolean(4), row.getInt(8), row.getString(9))
        )
        assert sorted(indexes) == [(False, 1, "b"), (False, 1, "o"), (False, 2, "a")]
        assert rows_of(facts.getBestRowIdentifier(None, "public", table, 0, False), lambda row: row.getString(2)) == ["id"]
        types = rows_of(facts.getTypeInfo(), lambda row: row.getString(1))
        assert {"int4", "text", "timestamptz", "jsonb"} <= set(types)
        for result in (
            facts.getFunctions(None, "public", "%"),
            facts.getProcedures(None, "public", "%"),
            facts.getUDTs(None, None, "%", None),
        ):
            assert rows_of(result, lambda row: row.getString(3)) == []
    finally:
        run(connection, f"DROP VIEW {table}_v")
        run(connection, f"DROP TABLE {table}_r")
