"""Tables of Spark SQL over logs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException

from tests.spark.conftest import Bench
from triplicate.log import Logs


class Shop:
    """Tables over logs, dropped at the end: the catalogue is the session's."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.names: list[str] = []

    def options(self, log: str, *more: str) -> str:
        given = (f"metadataServiceUri '{self.bench.uri}'", f"log '{log}'", *more)
        return f"OPTIONS ({', '.join(given)})"

    def create(self, name: str, *more: str, columns: str = "") -> str:
        log = self.bench.new_log()
        self.names.append(name)
        self.sql(f"CREATE TABLE {name} {columns} USING triplicate {self.options(log, *more)} COMMENT 'a log' TBLPROPERTIES ('a.b' = 'c')")
        return log

    def sql(self, statement: str) -> list[Any]:
        return self.bench.spark.sql(statement).collect()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.sql(query)]


@pytest.fixture
def shop(bench: Bench) -> Iterator[Shop]:
    made = Shop(bench)
    yield made
    for name in made.names:
        bench.spark.sql(f"DROP TABLE IF EXISTS {name}")


def test_a_table_over_a_log_is_created_read_written_and_described(shop: Shop) -> None:
    log = shop.create("flights", "includeHeaders 'true'")
    shop.sql("INSERT INTO flights (key, value) VALUES (X'61', X'31'), (NULL, X'32')")
    shop.sql("INSERT INTO flights (value, headers) SELECT X'33', array(named_struct('key', 'from', 'value', X'7A'))")
    assert shop.rows("SELECT log, offset, key, value, headers FROM flights ORDER BY offset") == [
        (log, 0, b"a", b"1", None),
        (log, 1, None, b"2", None),
        (log, 2, None, b"3", [("from", b"z")]),
    ]
    assert shop.rows(f"SELECT value FROM flights WITH (startingOffsets '{{\"{log}\": 2}}')") == [(b"3",)]
    described = {row[0]: row[1] for row in shop.rows("DESCRIBE TABLE flights")}
    assert described["offset"] == "bigint"
    assert shop.rows("SELECT count(*), min(timestamp) IS NOT NULL FROM flights") == [(3, True)]
    for _ in range(2):
        shop.sql("INSERT INTO flights WITH (txnAppId 'once', txnVersion '1') (value) VALUES (X'34')")
    assert shop.rows("SELECT count(*) FROM flights") == [(4,)]


def test_rows_are_inserted_from_another_table_without_its_offsets(shop: Shop) -> None:
    first, second = shop.create("first"), shop.create("second")
    shop.bench.write(first, range(10))
    shop.sql("INSERT INTO second (key, value, timestamp) SELECT key, value, timestamp FROM first ORDER BY offset")
    assert shop.bench.values(second) == list(range(10))
    with pytest.raises(PySparkException, match=r"is filled by the log.*INSERT INTO t \(key, value\)"):
        shop.sql("INSERT INTO second SELECT * FROM first")
    assert (len(shop.bench.values(first)), len(shop.bench.values(second))) == (10, 10)


def test_a_table_with_a_column_list_is_refused_with_an_alternative(shop: Shop) -> None:
    log = shop.create("pairs", columns="(key BINARY, value VARCHAR(10))")
    for statement in ("SELECT * FROM pairs", "INSERT INTO pairs VALUES (X'61', '1')"):
        with pytest.raises(PySparkException, match=r"there are no options.*INSERT INTO t \(key, value\).*WITH \(metadataServiceUri"):
            shop.sql(statement)
    named = f"WITH (metadataServiceUri '{shop.bench.uri}', log '{log}')"
    shop.sql(f"INSERT INTO pairs {named} VALUES (X'61', '1')")
    assert shop.rows(f"SELECT * FROM pairs {named}") == [(b"a", "1")]


def test_create_table_as_select_is_refused_with_an_alternative(shop: Shop) -> None:
    log = shop.bench.new_log()
    with pytest.raises(PySparkException, match="never to CREATE TABLE … AS SELECT"):
        shop.sql(f"CREATE TABLE made USING triplicate {shop.options(log)} AS SELECT X'31' AS value")
    assert not shop.bench.spark.catalog.tableExists("made")


def test_a_temporary_view_is_read_and_written(shop: Shop) -> None:
    log = shop.bench.new_log()
    shop.sql(f"CREATE OR REPLACE TEMPORARY VIEW passing (key BINARY, value STRING) USING triplicate {shop.options(log)}")
    shop.sql("INSERT INTO passing VALUES (X'61', 'one'), (NULL, 'two')")
    assert shop.rows("SELECT value FROM passing ORDER BY value") == [("one",), ("two",)]


def test_frames_are_saved_as_tables_and_streams_go_into_them(shop: Shop, tmp_path: Path) -> None:
    bench = shop.bench
    source, target = bench.new_log(), shop.create("target")
    bench.write(source, range(10))
    shop.names.append("saved")
    bench.numbers(range(5)).write.format("triplicate").mode("append").options(**bench.named(bench.new_log())).saveAsTable("saved")
    writer = bench.stream(source).select("key", "value").writeStream.options(**bench.named(target)).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "into")).toTable("target").awaitTermination()
    assert bench.values(target) == list(range(10))
    query = bench.spark.readStream.option("startingOffsets", "earliest").table("target").writeStream.format("memory").queryName("seen")
    query.option("checkpointLocation", str(tmp_path / "out")).trigger(availableNow=True).start().awaitTermination()
    assert shop.rows("SELECT count(*) FROM seen") == [(10,)]


def test_a_typo_and_an_overwrite_are_refused(shop: Shop) -> None:
    with pytest.raises(PySparkException, match="did you mean 'startingOffsets'"):
        shop.create("wrong", "startingOfsets 'earliest'")
    shop.create("right")
    with pytest.raises((PySparkException, AnalysisException), match="only appended to"):
        shop.sql("INSERT OVERWRITE right (value) VALUES (X'31')")


def test_a_log_is_copied_with_keys_times_and_headers(shop: Shop) -> None:
    bench = shop.bench
    source, target = bench.new_log(), bench.new_log()

    async def write(client: Any) -> None:
        async with await Logs(client).writer(source, owner="test") as writer:
            await writer.append_many([b"a", None], keys=[b"k", b"l"], timestamps_us=[5, 6], headers=[[("x", b"1"), ("x", None)], []])

    bench.run(write)
    records = bench.reader(source, includeHeaders="true").load().selectExpr("KEY", "value", "timestamp", "headers AS Headers")
    records.write.format("triplicate").mode("append").options(**bench.named(target)).save()
    kept = [bench.reader(log, includeHeaders="true").load().drop("log").orderBy("offset").collect() for log in (source, target)]
    assert kept[0] == kept[1]
    assert [row["headers"] for row in kept[1]] == [[("x", b"1"), ("x", None)], []]


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("TRUNCATE TABLE strict", "does not support truncates"),
        ("DELETE FROM strict WHERE offset = 0", "does not support deletes"),
        ("UPDATE strict SET value = X'61'", "does not support UPDATE"),
        ("INSERT INTO strict PARTITION (key = X'61') (value) VALUES (X'62')", "non-partition column"),
        ("INSERT INTO strict REPLACE WHERE key = X'61' SELECT * FROM strict", "does not support overwrite by filter"),
        ("INSERT INTO strict (key, value) VALUES ('a', 'b')", "Cannot safely cast `key`"),
        ("INSERT INTO strict (value) VALUES (1)", "Cannot safely cast `value`"),
        ("INSERT INTO strict (value, offset) VALUES (X'61', 7)", "'offset' is filled by the log"),
        ("INSERT INTO strict (value, topic) VALUES (X'61', 'x')", "`topic` cannot be resolved"),
    ],
)
def test_unsupported_operations_on_a_log_are_refused_and_change_nothing(shop: Shop, statement: str, complaint: str) -> None:
    log = shop.create("strict")
    shop.bench.write(log, range(3))
    with pytest.raises(PySparkException, match=complaint):
        shop.sql(statement)
    assert shop.bench.values(log) == [0, 1, 2]


def test_columns_of_an_insert_are_known_by_name_and_the_example_of_the_docs_runs(shop: Shop) -> None:
    log = shop.create("ordered")
    shop.sql("INSERT INTO ordered (value, key) VALUES (X'76', X'6B')")
    shop.sql("INSERT INTO ordered BY NAME SELECT X'77' AS value, X'6C' AS key")
    arrivals = "(SELECT 'AA' AS carrier, 7 AS delay)"
    shop.sql(f"INSERT INTO ordered (key, value) SELECT CAST(carrier AS BINARY), CAST(to_json(struct(*)) AS BINARY) FROM {arrivals}")
    rows = [(b"k", b"v"), (b"l", b"w"), (b"AA", b'{"carrier":"AA","delay":7}')]
    assert shop.rows("SELECT key, value FROM ordered ORDER BY offset") == rows
    other = shop.bench.new_log()
    shop.sql(f"CREATE OR REPLACE TABLE ordered USING triplicate {shop.options(other)}")
    assert shop.rows("SELECT count(*) FROM ordered") == [(0,)]
    shop.sql("ALTER TABLE ordered ADD COLUMN more INT")
    with pytest.raises(PySparkException, match="there is no column 'more'"):
        shop.sql("SELECT * FROM ordered")
    assert len(shop.bench.reader(log).load().collect()) == 3
