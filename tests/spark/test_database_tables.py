"""Tables of databases through Spark: the examples of the documentation, kinds of rows, and a stream that is started again."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException

from tests.spark.conftest import DOCUMENT, Bench
from tests.spark.databases import Shop, connected
from triplicate.log import Logs, LogSettings
from triplicate.sql import create_database


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"tables{number}" for number in range(9))


@pytest.fixture
def shop(bench: Bench, names: Iterator[str]) -> Iterator[Shop]:
    name = next(names)
    bench.run(lambda client: create_database(client, name))
    with connected(bench, name) as connection:
        made = Shop(bench, name, connection)
        made.execute("CREATE TABLE orders (id BIGINT PRIMARY KEY, customer TEXT, amount DOUBLE PRECISION, note TEXT)")
        yield made


def test_the_documents_examples_run(shop: Shop) -> None:
    bench = shop.bench
    text = DOCUMENT.read_text(encoding="utf-8")
    found = re.search(r"## Tables of a database.*?```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    example = found[1].replace('"shop"', repr(shop.name))
    for name in ("orders-and-totals", "arrivals-checkpoint", "copy-checkpoint"):
        assert f'"{name}"' in example
        example = example.replace(f'"{name}"', repr(str(bench.folder / name)))
    shop.execute("INSERT INTO orders VALUES (1, 'Ada', 10.5, NULL), (2, 'Bob', 200, NULL), (3, 'Ada', 2, 'old')")
    shop.execute("CREATE TABLE orders_copy (id BIGINT PRIMARY KEY, customer TEXT, amount DOUBLE PRECISION, note TEXT)")
    bench.run(lambda client: Logs(client).create("arrivals", LogSettings()))
    writer = bench.spark.createDataFrame(
        [('{"id": 3, "customer": "Eve", "amount": 4}',), ('{"id": 4, "customer": "Dan", "amount": 5}',)], "value string"
    )
    writer.coalesce(1).write.format("triplicate").mode("append").options(**bench.named("arrivals")).save()
    exec(example, {"spark": bench.spark, "uri": bench.uri})
    rows = bench.spark.read.parquet(str(bench.folder / "orders-and-totals")).orderBy("id").collect()
    assert [(row["id"], row["total"]) for row in rows] == [(1, 12.5), (2, 200.0), (3, 12.5)]
    expected = [(1, "Ada", 10.5, None), (2, "Bob", 200.0, "large"), (3, "Eve", 4.0, "old"), (4, "Dan", 5.0, None)]
    for table in ("orders", "orders_copy"):
        assert shop.connection.execute(f"SELECT * FROM {table} ORDER BY id").fetchall() == expected
    shop.execute("DELETE FROM orders WHERE id = 1", "UPDATE orders SET note = 'new' WHERE id = 4")
    exec(example[example.index("feed = ") :], {"spark": bench.spark, "uri": bench.uri, "at": {**shop.options(), "table": ""}})
    rest = [*expected[1:3], (4, "Dan", 5.0, "new")]
    assert shop.connection.execute("SELECT * FROM orders_copy ORDER BY id").fetchall() == rest


def test_a_batch_is_written_once_and_all_of_it_is_read(shop: Shop) -> None:
    spark = shop.bench.spark
    source = spark.range(0, 20_000, numPartitions=4).selectExpr(
        "id", "if(id % 5 = 0, NULL, concat('x\"', id, ',\n')) AS customer", "id / 3 AS amount"
    )
    for _ in range(2):
        writer = source.write.format("triplicate-table").mode("append").options(**shop.options(), txnAppId="load", txnVersion="1")
        writer.save()
    read = spark.read.format("triplicate-table").options(**shop.options(), columns="id,customer,amount", rowsPerPartition="6000").load()
    assert read.rdd.getNumPartitions() == 4
    assert read.exceptAll(source).count() == source.exceptAll(read).count() == 0
    with pytest.raises(PySparkException, match="duplicate key value violates unique constraint"):
        source.limit(1).write.format("triplicate-table").mode("append").options(**shop.options()).save()
    spark.range(3).selectExpr("id").write.format("triplicate-table").mode("overwrite").options(**shop.options()).save()
    assert shop.connection.execute("SELECT count(*) FROM orders").fetchone() == (3,)
    with pytest.raises(PySparkException, match="has no column 'nope'"):
        spark.range(3).selectExpr("id AS nope").write.format("triplicate-table").mode("append").options(**shop.options()).save()
