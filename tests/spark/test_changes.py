"""A database's change feed through Spark, from real nodes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.errors import PySparkException

from tests.spark.conftest import Bench, needs_limits
from tests.spark.databases import Shop, connected
from triplicate.sql import create_database


@pytest.fixture(scope="module")
def names() -> list[str]:
    return [f"shop{number}" for number in range(9, 0, -1)]


@pytest.fixture
def shop(bench: Bench, names: list[str]) -> Iterator[Shop]:
    name = names.pop()
    bench.run(lambda client: create_database(client, name))
    with connected(bench, name) as connection:
        made = Shop(bench, name, connection)
        made.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT, amount REAL, paid BOOLEAN)")
        yield made


def test_every_change_is_in_the_feed_with_the_tables_own_types(shop: Shop) -> None:
    shop.execute("INSERT INTO orders VALUES (1, 'Ada', 10.5, true), (2, 'Bob', 20, false)")
    shop.execute("UPDATE orders SET amount = 21 WHERE id = 2", "DELETE FROM orders WHERE id = 1")
    assert shop.feed() == [("insert", 1, 10.5, 0), ("insert", 2, 20.0, 1), ("update_postimage", 2, 21.0, 0), ("delete", 1, None, 1)]
    frame = shop.bench.spark.read.format("triplicate-changes").options(**shop.options("ORDERS")).load()
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema.fields] == [
        ("id", "bigint"),
        ("customer", "string"),
        ("amount", "double"),
        ("paid", "boolean"),
        ("_change_type", "string"),
        ("_commit_version", "bigint"),
        ("_commit_timestamp", "timestamp"),
        ("_seq", "int"),
    ]
    pruned = shop.bench.spark.read.schema("_seq int, ID long").format("triplicate-changes").options(**shop.options()).load()
    assert sorted(tuple(row) for row in pruned.collect()) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    first, second = shop.versions()
    assert [change[0] for change in shop.feed(startingVersion=str(second))] == ["update_postimage", "delete"]
    assert [change[0] for change in shop.feed(endingVersion=str(first))] == ["insert", "insert"]
    times = frame.selectExpr("cast(unix_millis(_commit_timestamp) AS string) AS at").distinct().orderBy("at").collect()
    assert {change[0] for change in shop.feed(startingTimestamp=times[-1]["at"])} >= {"update_postimage", "delete"}
    with pytest.raises(PySparkException, match=r"is older than startingTimestamp 2100-01-01"):
        shop.feed(startingTimestamp="2100-01-01")
    with pytest.raises(PySparkException, match=rf"ends at version \d+; startingVersion says {second + 1_000}"):
        shop.feed(startingVersion=str(second + 1_000))


@needs_limits
def test_a_stream_of_changes_goes_on_where_it_ended(shop: Shop) -> None:
    bench = shop.bench
    seen: list[list[tuple[str, int]]] = []

    def run() -> None:
        frame = bench.spark.readStream.format("triplicate-changes").options(**shop.options(), maxVersionsPerTrigger="2").load()
        writer = frame.writeStream.foreachBatch(
            lambda part, _: seen.append([(row["_change_type"], row["id"]) for row in part.orderBy("_commit_version", "_seq").collect()])
        )
        writer.option("checkpointLocation", str(bench.folder / "changes")).trigger(availableNow=True).start().awaitTermination()

    for number in (1, 3, 5):
        shop.execute(f"INSERT INTO orders (id) VALUES ({number}), ({number + 1})")
    run()
    assert [change for batch in seen for change in batch] == [("insert", number) for number in range(1, 7)]
    assert all(len(batch) % 2 == 0 for batch in seen), "no batch cuts a transaction"
    seen.clear()
    shop.execute("DELETE FROM orders WHERE id = 3")
    run()
    assert [change for batch in seen for change in batch] == [("delete", 3)]


def test_a_stream_begins_with_the_content_of_the_table(shop: Shop) -> None:
    """From a real node: the content as of the position in the checkpoint, then the changes after it."""
    bench = shop.bench
    seen: list[list[tuple[Any, ...]]] = []
    shop.execute("CREATE TABLE plain (day DATE, price NUMERIC(10,2))", "INSERT INTO plain VALUES ('2026-01-31', 2.5), ('2026-02-01', 7)")
    shop.execute("DELETE FROM plain WHERE price = 7", "INSERT INTO orders VALUES (7, 'O''Neill', 0.1, true), (9, NULL, NULL, NULL)")
    moments = [datetime.fromisoformat("2026-01-31").date(), Decimal("2.50")]
    (row,) = bench.spark.read.format("triplicate-changes").options(**shop.options("plain"), startingVersion="snapshot").load().collect()
    assert [row["_change_type"], row["_rowid"], row["_seq"], row["day"], row["price"]] == ["insert", 1, 0, *moments]

    def run() -> None:
        frame = bench.spark.readStream.format("triplicate-changes").options(**shop.options(), startingVersion="snapshot").load()
        writer = frame.writeStream.foreachBatch(lambda part, _: seen.append([tuple(row)[:5] for row in part.orderBy("id").collect()]))
        writer.option("checkpointLocation", str(bench.folder / "content")).trigger(availableNow=True).start().awaitTermination()

    run()
    assert [rows for rows in seen if rows] == [[(7, "O'Neill", 0.1, True, "insert"), (9, None, None, None, "insert")]]
    shop.execute("UPDATE orders SET amount = 5 WHERE id = 9")
    seen.clear()
    run()
    assert [rows for rows in seen if rows] == [[(9, None, 5.0, None, "update_postimage")]]


def test_changes_have_timestamps_in_a_session_without_time_zones(shop: Shop) -> None:
    """The feed was unreadable there: its column was requested as a timestamp without time zone."""
    kind = shop.bench.spark.conf.get("spark.sql.timestampType")
    shop.bench.spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        shop.execute("INSERT INTO orders VALUES (1, 'a', 1.5, TRUE)")
        frame = shop.bench.spark.read.format("triplicate-changes").options(**shop.options()).load()
        assert dict(frame.dtypes)["_commit_timestamp"] == "timestamp"
        assert [row["id"] for row in frame.collect()] == [1]
        shop.execute("CREATE TABLE e (id INT PRIMARY KEY, day DATE, at TIMESTAMP, seen TIMESTAMPTZ, price NUMERIC(10,2))")
        shop.execute("INSERT INTO e VALUES (1, '2026-01-31', '2026-01-31 04:05:06.5', '2026-01-31 04:05:06+02', 19.99)")
        frame = shop.bench.spark.read.format("triplicate-changes").options(**shop.options("e")).load()
        assert [kind for _, kind in frame.dtypes[1:5]] == ["date", "timestamp_ntz", "timestamp", "decimal(10,2)"]
        (row,) = frame.selectExpr("day", "at", "cast(seen AS long) AS seen", "price").collect()
        moment = datetime.fromisoformat("2026-01-31 04:05:06.500000")
        assert tuple(row) == (moment.date(), moment, datetime(2026, 1, 31, 2, 5, 6, tzinfo=UTC).timestamp(), Decimal("19.99"))
    finally:
        shop.bench.spark.conf.set("spark.sql.timestampType", str(kind))


def test_an_unknown_table_or_database_is_named(shop: Shop) -> None:
    source = shop.bench.spark.read.format("triplicate-changes")
    with pytest.raises(PySparkException, match="has no table 'invoices'"):
        source.options(**shop.options("invoices")).load()
    with pytest.raises(PySparkException, match="nowhere"):
        source.options(**{**shop.options(), "database": "nowhere"}).load()


def rebuilt(shop: Shop, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """The table's final rows, rebuilt from its feed by the rule of `docs/spark.md`."""
    frame = shop.bench.spark.read.format("triplicate-changes").options(**shop.options(table)).load()
    rows: dict[int, tuple[Any, ...]] = {}
    for row in frame.orderBy("_commit_version", "_seq").collect():
        if row["_change_type"] == "delete":
            del rows[row["id"]]
        else:
            rows[row["id"]] = tuple(row[name] for name in columns)
    return sorted(rows.values())


def test_the_feed_follows_a_table_through_schema_changes(shop: Shop) -> None:
    shop.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO items VALUES (1, 'gone'), (2, 'gone')")
    shop.execute("DROP TABLE items")
    shop.execute("CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO things VALUES (1, 'A'), (2, 'B'), (3, 'C')")
    shop.execute("ALTER TABLE things ADD COLUMN qty INTEGER DEFAULT 7", "UPDATE things SET qty = 8 WHERE id = 2")
    shop.execute("ALTER TABLE things RENAME COLUMN name TO title", "UPDATE things SET id = 30 WHERE id = 3")
    shop.execute("ALTER TABLE things RENAME TO items", "INSERT INTO items VALUES (4, 'D', 9)")
    columns = ("id", "title", "qty")
    expected = shop.connection.execute("SELECT id, title, qty FROM items ORDER BY id").fetchall()
    assert expected == [(1, "A", 7), (2, "B", 8), (4, "D", 9), (30, "C", 7)]
    assert rebuilt(shop, "items", *columns) == expected
    with pytest.raises(PySparkException, match="has no table 'things'"):
        shop.bench.spark.read.format("triplicate-changes").options(**shop.options("things")).load()


def test_a_stream_ends_at_a_schema_change_and_goes_on_with_its_events(shop: Shop) -> None:
    bench = shop.bench
    seen: list[tuple[Any, ...]] = []

    def run(**options: str) -> None:
        frame = bench.spark.readStream.format("triplicate-changes").options(**shop.options("notes"), **options).load()

        columns = ("_change_type", *(name for name in ("text", "stars", "_rowid") if name in frame.columns))

        def gather(part: Any, _batch: int) -> None:
            rows = part.orderBy("_commit_version", "_seq").collect()
            seen.extend(tuple(row[name] for name in columns) for row in rows)

        writer = frame.writeStream.foreachBatch(gather).option("checkpointLocation", str(bench.folder / "notes"))
        writer.trigger(availableNow=True).start().awaitTermination()

    shop.execute("CREATE TABLE notes (text TEXT)", "INSERT INTO notes VALUES ('A')")
    run()
    assert seen == [("insert", "A", 1)]
    shop.execute("ALTER TABLE notes ADD COLUMN stars INTEGER DEFAULT 3")
    shop.execute("INSERT INTO notes VALUES ('B', 5)", "DELETE FROM notes WHERE text = 'A'")
    with pytest.raises(PySparkException, match="column 'stars' was added, with 3 in all rows"):
        run()
    run(schemaEvents="deliver")
    assert seen[1:] == [("add_column", None, 3, None), ("insert", "B", 5, 2), ("delete", None, None, 1)]
