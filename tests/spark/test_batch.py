"""Batch reads and writes of logs and ledgers through Spark."""

from __future__ import annotations

import asyncio
import datetime as dt
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException

from tests.spark.conftest import Bench
from triplicate.client import Client
from triplicate.log import LogClientSettings, Logs, add_key


def test_written_records_are_read_back(bench: Bench) -> None:
    log = bench.new_log()
    bench.write(log, range(1000))
    frame = bench.reader(log, recordsPerPartition="300").load()
    table = frame.selectExpr("*", "spark_partition_id() AS part").toArrow().sort_by("offset")
    assert table.column_names == ["log", "offset", "timestamp", "key", "value", "part"]
    assert sorted(set(table["part"].to_pylist())) == [0, 1, 2, 3]
    assert table["offset"].to_pylist() == list(range(1000))
    assert table["value"].to_pylist() == [b"%d" % number for number in range(1000)]
    assert table["key"].to_pylist() == [None if number % 3 == 0 else b"%d" % (number // 2) for number in range(1000)]
    assert table["timestamp"][7].as_py() == dt.datetime(1970, 1, 1, microsecond=7, tzinfo=dt.UTC)
    assert set(table["log"].to_pylist()) == {log}


def test_a_version_written_twice_is_stored_once(bench: Bench) -> None:
    log = bench.new_log()
    for _ in range(2):
        bench.write(log, range(100), txnAppId="ingest", txnVersion="1")
    assert bench.values(log) == list(range(100))
    assert bench.staging_ledgers(log) == []
    bench.write(log, range(100, 110), txnAppId="ingest", txnVersion="2")
    assert bench.values(log) == list(range(110))


def test_an_encrypted_log_is_written_and_read_by_tasks_that_have_the_key(bench: Bench) -> None:
    """Tasks encrypt their staging ledgers, the driver joins and publishes them without decrypting, and tasks decrypt what they read."""
    path = str(bench.folder / "keys")
    add_key(path, "first", "day", lambda: bytes(range(32)))
    keys = LogClientSettings(keys_file=path)
    log = f"encrypted-{uuid.uuid4().hex[:8]}"
    bench.run(lambda client: Logs(client, keys).create(log, key_id="first"))
    with pytest.raises(PySparkException, match=r"LogKeyMissing.*encrypted with key 'first'"):
        bench.write(log, range(10))
    bench.write(log, range(100), keysFile=path)
    rows = bench.reader(log, keysFile=path, recordsPerPartition="30").load().toArrow().sort_by("offset")
    assert rows["value"].to_pylist() == [b"%d" % number for number in range(100)]
    with pytest.raises(PySparkException, match=r"LogKeyMissing"):
        bench.reader(log).load().collect()


def test_options_are_read_in_any_case(bench: Bench) -> None:
    log = bench.new_log()
    bench.write(log, range(10))
    reader = bench.spark.read.format("triplicate").option("METADATAserviceURI", bench.uri).option("LOG", log)
    assert reader.option("StartingOffsets", f'{{"{log}": 4}}').option("endingoffsets", f'{{"{log}": 7}}').load().count() == 3


def test_a_start_after_the_end_is_refused(bench: Bench) -> None:
    log = bench.new_log()
    bench.write(log, range(10))
    with pytest.raises(PySparkException, match="would be read from 8 to 3"):
        bench.reader(log, startingOffsets=f'{{"{log}": 8}}', endingOffsets=f'{{"{log}": 3}}').load().collect()
    with pytest.raises(PySparkException, match="startingOffsets says 11"):
        bench.reader(log, startingOffsets=f'{{"{log}": 11}}').load().collect()


def test_a_write_that_cannot_succeed_is_refused_before_its_tasks_run(bench: Bench) -> None:
    """The input fails before the tasks do anything."""
    from pyspark.sql.functions import lit, raise_error

    frame = bench.spark.range(3).select(raise_error(lit("a task has run")).cast("string").alias("value"))

    def write(log: str, **options: str) -> None:
        frame.write.format("triplicate").mode("append").options(**bench.named(log), **options).save()

    with pytest.raises(PySparkException, match=r"NoSuchLog.*nowhere"):
        write("nowhere")
    log = bench.new_log()
    with pytest.raises(PySparkException, match="a task has run"):
        write(log)
    bench.write(log, range(10), txnAppId="ingest", txnVersion="5")
    bench.write(log, range(10), txnAppId="ingest", txnVersion="3")
    assert bench.values(log) == list(range(10))
    assert "batch 3 of application 'ingest' adds nothing" in bench.spark_log()


def test_a_schema_of_the_users_own_leaves_columns_out(bench: Bench) -> None:
    log = bench.new_log()
    bench.write(log, range(10))
    rows = bench.reader(log).schema("value string, offset long").load().orderBy("offset").collect()
    assert [tuple(row) for row in rows] == [(str(number), number) for number in range(10)]


def test_headers_and_places_are_read_where_asked_for(bench: Bench) -> None:
    log = bench.new_log()

    async def write(client: Client) -> None:
        writer = await Logs(client).writer(log, owner="test")
        await writer.append_entry([b"a", b"b"], headers=[[("source", b"x")], []])
        await writer.close()

    bench.run(write)
    rows = bench.reader(log, includeHeaders="true", includeMetadata="true").load().orderBy("offset").collect()
    assert [row["headers"] for row in rows] == [[("source", b"x")], []]
    assert rows[0]["_ledger_id"] == rows[1]["_ledger_id"]
    assert rows[0]["_entry_id"] == 1, "the entry after the segment's header"


def test_an_open_log_is_read_up_to_its_last_confirmed_record(bench: Bench) -> None:
    log = bench.new_log()

    async def write(client: Client) -> int:
        writer = await Logs(client).writer(log, owner="test")
        for number in range(5):
            await writer.append_entry([b"%d" % number])
        await writer.noop()
        counted: int = await asyncio.to_thread(bench.reader(log).load().count)
        await writer.close()
        return counted

    assert bench.run(write) == 5


def test_ledgers_are_read_entry_by_entry(bench: Bench) -> None:
    async def write(client: Client) -> list[int]:
        ids = []
        for number in range(2):
            async with await client.create(password=b"secret") as writer:
                await writer.append_many([b"%d-%d" % (number, entry) for entry in range(5)])
                ids.append(writer.ledger_id)
        return ids

    ids = bench.run(write)
    source = bench.spark.read.format("triplicate").option("metadataServiceUri", bench.uri)
    source = source.option("ledgers", f"{ids[0]},{ids[1]}").option("ledgerPassword", "secret").option("recordsPerPartition", "2")
    rows = source.load().orderBy("ledger_id", "entry_id").collect()
    assert [(row["ledger_id"], row["entry_id"], row["value"], row["length"]) for row in rows] == [
        (ids[number], entry, b"%d-%d" % (number, entry), 3) for number in range(2) for entry in range(5)
    ]


def test_truncated_records_are_missed_unless_loss_is_allowed(bench: Bench) -> None:
    log = bench.new_log()
    bench.write(log, range(10))
    bench.write(log, range(10, 20))
    bench.run(lambda client: Logs(client).truncate(log, 10))
    from_zero = {"startingOffsets": f'{{"{log}": 0}}'}
    with pytest.raises(PySparkException, match="failOnDataLoss=false"):
        bench.reader(log, **from_zero).load().count()
    assert bench.reader(log, **from_zero, failOnDataLoss="false").load().count() == 10
    assert bench.reader(log).load().agg({"offset": "min"}).collect()[0][0] == 10


def test_the_default_save_mode_is_refused_with_an_alternative(bench: Bench) -> None:
    log = bench.new_log()
    with pytest.raises(AnalysisException, match="Append"):
        bench.numbers(range(5)).write.format("triplicate").options(**bench.named(log)).save()


MISTAKES: list[tuple[Callable[[Bench, str], object], str]] = [
    (lambda bench, log: bench.reader(log, maxOffsetPerTrigger="1").load(), "did you mean 'maxOffsetsPerTrigger'"),
    (lambda bench, log: bench.reader("nowhere").load().count(), "nowhere"),
    (lambda bench, log: bench.spark.read.format("triplicate").option("log", log).load(), "'metadataServiceUri' is missing"),
    (lambda bench, log: bench.reader(log).schema("payload binary").load().count(), "there is no column 'payload'"),
    (lambda bench, log: bench.reader(log).load("flights"), "this source has no paths"),
    (
        lambda bench, log: bench.spark.range(3).write.format("triplicate").mode("append").options(**bench.named(log)).save(),
        "a column 'value'",
    ),
    (
        lambda bench, log: bench.numbers(range(3)).write.format("triplicate").mode("overwrite").options(**bench.named(log)).save(),
        "only appended to",
    ),
]


@pytest.mark.parametrize(("job", "complaint"), MISTAKES)
def test_a_mistake_is_reported_before_any_work(bench: Bench, job: Callable[[Bench, str], object], complaint: str) -> None:
    log = bench.new_log()
    with pytest.raises(PySparkException, match=complaint):
        job(bench, log)


def test_a_task_that_fails_once_is_tried_again_and_its_records_are_there_once(bench: Bench) -> None:
    log = bench.new_log()
    marker = str(bench.folder / "failed")

    def fail_once(batches: Iterator[Any]) -> Iterator[Any]:
        import os

        for batch in batches:
            yield batch
            if not os.path.exists(marker):
                open(marker, "w").close()
                raise ValueError("a task fails after it has staged records")

    frame = bench.numbers(range(100)).select("value").mapInArrow(fail_once, "value string")
    frame.write.format("triplicate").mode("append").options(**bench.named(log)).save()
    assert bench.values(log) == list(range(100))
    assert bench.staging_ledgers(log) == []


def test_a_column_that_may_be_null_is_refused_as_not_null(bench: Bench) -> None:
    """Spark would not return rows with a NULL key."""
    log = bench.new_log()
    bench.write(log, range(10))
    frame = bench.reader(log).schema("offset LONG NOT NULL, key BINARY").load()
    assert frame.where("key IS NULL").count() == 4
    with pytest.raises(PySparkException, match=r"column 'key' may be null in a record, and the schema says NOT NULL"):
        bench.reader(log).schema("offset LONG NOT NULL, key BINARY NOT NULL").load().collect()


def test_timestamps_are_sparks_in_every_time_zone(bench: Bench) -> None:
    log = bench.new_log()
    zone, kind = (bench.spark.conf.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.timestampType"))
    bench.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    bench.spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        local = bench.spark.sql("SELECT 'a' AS value, TIMESTAMP_NTZ '1955-06-01 00:00:00.000001' AS timestamp")
        writer = local.write.format("triplicate").mode("append").options(**bench.named(log))
        with pytest.raises(PySparkException, match=r"not timestamp_ntz; cast it .* CAST\(timestamp AS TIMESTAMP\)"):
            writer.save()
        moment = local.selectExpr("value", "CAST(timestamp AS TIMESTAMP_LTZ) AS timestamp")
        moment.write.format("triplicate").mode("append").options(**bench.named(log)).save()
        (row,) = bench.reader(log).load().selectExpr("CAST(timestamp AS STRING) AS text", "unix_micros(timestamp) AS micros").collect()
        assert (row["text"], row["micros"]) == ("1955-06-01 00:00:00.000001", -460_324_799_999_999)
    finally:
        bench.spark.conf.set("spark.sql.session.timeZone", str(zone))
        bench.spark.conf.set("spark.sql.timestampType", str(kind))


def test_filters_bound_no_plan_which_spark_keeps_for_the_frame(bench: Bench) -> None:
    """A plan that was bounded by the filters of one query would serve the next query of the same frame, too."""
    log = bench.new_log()
    bench.write(log, range(100))
    frame = bench.reader(log, columns="value,offset").load()
    assert frame.columns == ["value", "offset"]
    bench.spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        assert frame.where("offset = 50").count() == 1
        assert frame.count() == 100
    finally:
        bench.spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    bench.write(log, range(10))
    assert frame.count() == 100, "a frame is planned once"
    assert bench.reader(log).load().count() == 110


def test_rows_are_routed_by_their_log_and_read_by_a_pattern_from_a_time(bench: Bench) -> None:
    prefix = f"routed-{uuid.uuid4().hex[:8]}"
    for end in "ab":
        bench.create_log(f"{prefix}-{end}")
    rows = bench.numbers(range(100)).selectExpr("value", f"concat('{prefix}-', if(int(value) % 2 = 0, 'a', 'b')) AS log")
    options = {"metadataServiceUri": bench.uri, "client.read_timeout_s": "20"}
    rows.write.format("triplicate").mode("append").options(**options).save()
    assert bench.values(f"{prefix}-a") == [*range(0, 100, 2)]
    reader = bench.spark.read.format("triplicate").options(**options, subscribePattern=f"{prefix}-.*")
    found = reader.option("startingTimestamp", "0").option("minPartitions", "4").load()
    assert sorted(int(row.value) for row in found.selectExpr("string(value) AS value").collect()) == [*range(100)]
    with pytest.raises(PySparkException, match=r"NoSuchLog.*nowhere"):
        rows.selectExpr("value", "if(value = '99', 'nowhere', log) AS log").write.format("triplicate").mode("append").options(
            **options
        ).save()
    assert len(bench.values(f"{prefix}-b")) == 50, "nothing of the batch is published"


def test_the_message_of_an_error_is_among_the_first_lines(bench: Bench) -> None:
    log = bench.new_log()
    for name, options in ((log, {"startingofsets": "earliest"}), ("nowhere", {}), (log, {"startingTimestamp": "99999999999999"})):
        with pytest.raises(AnalysisException) as caught:
            bench.reader(name, **options).load().count()
        assert len(str(caught.value).splitlines()) <= 6
