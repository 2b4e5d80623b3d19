"""The data source without Spark: what it refuses before a task runs, and how it learns the options of a table."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types
from pyspark.sql.datasource import DataSourceArrowWriter

from tests.unit.spark.stand import LOG, Stand, rows, stand
from triplicate.errors import ConfigError, EnvironmentFault, FormatError, LogReserved, NoSuchLog, NotEnoughBookies
from triplicate.log import EntryView, LogSettings, Purpose, PurposeKind
from triplicate.spark.cluster import access
from triplicate.spark.core import source_schema, table_options
from triplicate.spark.logs.admission import DiscardedBatch
from triplicate.spark.logs.batch_readers import LedgerBatchReader, LogBatchReader
from triplicate.spark.logs.log_source import TriplicateDataSource
from triplicate.spark.logs.writing import BatchPublisher, StreamPublisher

VALUE = types.StructType([types.StructField("value", types.BinaryType())])
TABLE = {"provider": "triplicate", "owner": "me", "comment": "a log", "some.property": "x"}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    with stand(monkeypatch) as made:
        yield made


def source(**options: str) -> TriplicateDataSource:
    return TriplicateDataSource({"metadataserviceuri": "memory:", "log": LOG, **options})


def bare(**options: str) -> TriplicateDataSource:
    """With nothing but these options."""
    return TriplicateDataSource(options)


def created(**options: str) -> types.StructType:
    """The columns of a table as the catalogue keeps them: through JSON."""
    given = {"metadataserviceuri": "memory:", "log": LOG, **options}
    made = bare(**TABLE, **given, **{f"option.{key}": value for key, value in given.items()}).schema()
    assert isinstance(made, types.StructType)
    return types.StructType.fromJson(made.jsonValue())


# Refusals before a task runs.


def both_writers(data_source: TriplicateDataSource) -> Iterator[Any]:
    yield lambda: data_source.writer(VALUE, False)
    yield lambda: data_source.streamWriter(VALUE, False)


def test_a_write_that_can_succeed_is_admitted(cluster: Stand) -> None:
    assert isinstance(source().writer(VALUE, False), BatchPublisher)
    assert isinstance(source().streamWriter(VALUE, False), StreamPublisher)


def test_a_write_into_a_log_that_is_not_there_is_refused(cluster: Stand) -> None:
    for write in both_writers(source(log="nowhere")):
        with pytest.raises(NoSuchLog, match="nowhere"):
            write()


def test_a_write_into_a_log_of_a_database_is_refused(cluster: Stand) -> None:
    cluster.loop.call(cluster.logs.create("d", LogSettings(), purpose=Purpose(PurposeKind.DATABASE, "shop")))
    for write in both_writers(source(log="d")):
        with pytest.raises(LogReserved, match="shop"):
            write()


def test_a_write_into_a_log_with_a_living_writer_is_admitted(cluster: Stand) -> None:
    writer = cluster.loop.call(cluster.logs.writer(LOG, owner="the-app"))
    for write in both_writers(source()):
        write()
    cluster.loop.call(writer.close())


def test_a_write_without_enough_bookies_is_refused(cluster: Stand) -> None:
    cluster.bookies.writable = ["bookie-1"]
    for write in both_writers(source()):
        with pytest.raises(NotEnoughBookies, match=r"needs 2 writable bookies, there are 1 \(bookie-1\)"):
            write()
    cluster.bookies.writable = ["bookie-0", "bookie-1"]
    assert isinstance(source().writer(VALUE, False), BatchPublisher)


def test_a_write_to_a_cluster_that_is_down_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def down(metadata_uri: str, ledger_password: str = "", keys_file: str = "", client: Any = ()) -> Any:
        raise EnvironmentFault("nobody answers")

    monkeypatch.setattr(access, "logs", down)
    for write in both_writers(source()):
        with pytest.raises(EnvironmentFault, match="nobody answers"):
            write()


def test_wrong_columns_are_refused_without_asking_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(access, "logs")
    columns = types.StructType([types.StructField("payload", types.BinaryType())])
    with pytest.raises(ConfigError, match="'value'"):
        source().writer(columns, False)
    with pytest.raises(ConfigError, match="'value'"):
        source().streamWriter(columns, False)


def test_a_batch_that_is_there_already_is_neither_read_nor_written(cluster: Stand, caplog: pytest.LogCaptureFixture) -> None:
    publisher = source(txnappid="ingest", txnversion="5").writer(VALUE, False)
    assert isinstance(publisher, DataSourceArrowWriter)
    publisher.commit([publisher.write(rows(b"a", b"b"))])
    before = set(cluster.bookies.ledgers)
    for version in ("5", "3"):
        writer = pickle.loads(pickle.dumps(source(txnappid="ingest", txnversion=version).writer(VALUE, False)))
        assert isinstance(writer, DiscardedBatch)
        computed = rows(b"c")
        message = writer.write(computed)
        assert next(computed, None) is not None, "the task reads nothing of its input"
        writer.commit([message])
        writer.abort([message])
    assert "batch 3 of application 'ingest' adds nothing to log 'events': its batch 5, which ends at offset 2, is there" in caplog.text
    assert set(cluster.bookies.ledgers) == before
    assert cluster.values() == [b"a", b"b"]
    assert isinstance(source(txnappid="ingest", txnversion="6").writer(VALUE, False), BatchPublisher)
    assert isinstance(source(txnappid="another", txnversion="3").writer(VALUE, False), BatchPublisher)


def test_the_commit_and_the_abort_of_a_stream_are_not_refused(cluster: Stand) -> None:
    """Spark hands the source over to the process that commits or aborts; staged ledgers must be reached there in every case."""
    there = pickle.loads(pickle.dumps(source()))
    writer = cluster.loop.call(cluster.logs.writer(LOG, owner="the-app"))
    cluster.bookies.writable = []
    assert isinstance(there.streamWriter(VALUE, False), StreamPublisher)
    cluster.loop.call(writer.close())


@pytest.mark.parametrize("name", ["key", "Value", "headers"])
def test_a_schema_that_says_that_a_column_is_never_null_is_refused(cluster: Stand, name: str) -> None:
    """Spark leaves tests for null out of a query on such a column."""
    kind = source_schema.struct([source_schema.HEADERS_COLUMN])["headers"].dataType if name == "headers" else types.BinaryType()
    columns = types.StructType([types.StructField("offset", types.LongType(), False), types.StructField(name, kind, False)])
    for read in (source().reader, source().streamReader):
        with pytest.raises(ConfigError, match=f"column '{name}' may be null in a record, and the schema says NOT NULL"):
            read(columns)
    columns.fields[1].nullable = True
    assert isinstance(source().reader(columns), LogBatchReader)


# Columns.


def test_columns_that_are_named_are_the_only_ones_in_their_order(cluster: Stand) -> None:
    assert source(columns="Value, offset,value").schema() == "value BINARY, offset LONG NOT NULL"
    assert source(columns="headers,_entry_id").schema() == "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, _entry_id LONG"
    assert [field.name for field in created(columns="key,value").fields] == ["key", "value"]
    with pytest.raises(ConfigError, match="option 'columns' names 'payload'; there are log, offset"):
        source(columns="payload").schema()


def test_headers_that_are_not_read_are_not_decoded(cluster: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values are buffers of the entry, which is decompressed as a whole; headers are decoded one by one."""
    cluster.write(b"a")

    def decoded(*_: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(EntryView, "headers", decoded)
    reader: Any = source().reader(types.StructType([types.StructField("offset", types.LongType(), False)]))
    (part,) = reader.partitions()
    (batch,) = reader.read(part)
    assert batch.to_pydict() == {"offset": [0]}


def test_a_null_value_is_a_record_without_a_value(cluster: Stand) -> None:
    """As a tombstone of Kafka."""
    publisher: Any = source().writer(VALUE, False)
    keys = pa.array([b"k", b"l"])
    batch = pa.record_batch({"key": keys, "value": pa.array([b"v", None], pa.binary())})
    publisher.commit([publisher.write(iter([batch]))])

    async def records() -> list[tuple[Any, Any]]:
        return [(record.key, record.value) async for record in cluster.logs.records(LOG, to="latest")]

    assert cluster.loop.call(records()) == [(b"k", b"v"), (b"l", None)]
    assert cluster.values() == [b"v", None]


# Settings of the client.


def test_settings_of_the_client_reach_reads_writes_and_tables(cluster: Stand) -> None:
    given = {"client.read_timeout_s": "20", "client.hedge_read_s": "1"}
    own = (("hedge_read_s", "1"), ("read_timeout_s", "20"))
    readers: list[Any] = [source(**given).reader(VALUE), source(**given).streamReader(VALUE), bare().reader(created(**given))]
    assert [reader._read.access[3] for reader in readers] == [own] * 3
    assert source(**given).writer(VALUE, False)._options.access[3] == own  # type: ignore[attr-defined]
    ledgers: Any = bare(metadataserviceuri="u", ledgers="1", **given).reader(VALUE)
    assert ledgers._read.client == own


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("read_timout_s", "20", r"unknown option 'client\.read_timout_s'; did you mean 'client\.read_timeout_s'"),
        ("zzz", "20", "docs/reference/settings.md"),
        ("read_timeout_s", "soon", r"option 'client\.read_timeout_s': .*a number of seconds is expected"),
        ("password_file", "/p", "TRIPLICATE_CLIENT_PASSWORD_FILE in the environment"),
        ("bookie_tls", "off", "is a matter of security"),
    ],
)
def test_other_settings_of_the_client_are_refused(name: str, value: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        source(**{f"client.{name}": value}).schema()


# Tables of Spark SQL.


def test_a_table_has_its_columns_with_its_options_in_each() -> None:
    columns = created(includeheaders="true")
    assert [field.name for field in columns.fields] == ["log", "offset", "timestamp", "key", "value", "headers"]
    assert all(field.nullable for field in columns.fields)
    marks = table_options.options_in([(field.name, field.metadata) for field in columns.fields])
    assert marks == {"metadataserviceuri": "memory:", "log": LOG, "includeheaders": "true"}


def test_columns_outside_tables_are_as_ever() -> None:
    assert source().schema() == "log STRING NOT NULL, offset LONG NOT NULL, timestamp TIMESTAMP_LTZ, key BINARY, value BINARY"
    assert bare(metadataserviceuri="u", ledgers="1-3").schema() == source_schema.ddl(source_schema.LEDGER_COLUMNS)
    assert str(source(startingoffsets="latest").schema()).startswith("log"), "Spark has not said yet that it is a stream"


def test_a_table_is_read_and_written_without_options_of_the_query(cluster: Stand) -> None:
    columns = created(recordsperpartition="7")
    cluster.write(b"a")
    reader = bare().reader(columns)
    assert isinstance(reader, LogBatchReader)
    assert (reader._read.logs, reader._read.records_per_partition) == ((LOG,), 7)
    assert isinstance(bare().streamReader(columns).initialOffset(), dict)
    writer = bare().writer(columns, False)
    assert isinstance(writer, BatchPublisher)
    assert writer._options.log == LOG


def test_a_table_over_ledgers_is_read() -> None:
    given = {"metadataserviceuri": "memory:", "ledgers": "1-3"}
    columns = bare(**TABLE, **{f"option.{key}": value for key, value in given.items()}).schema()
    assert isinstance(columns, types.StructType)
    reader = bare().reader(columns)
    assert isinstance(reader, LedgerBatchReader)
    assert reader._read.ledger_ids == (1, 2, 3)


def test_options_of_the_query_come_before_those_of_the_table(cluster: Stand) -> None:
    reader = bare(startingoffsets=f'{{"{LOG}": 0}}').reader(created())
    assert isinstance(reader, LogBatchReader)
    assert reader._read.starting is not None
    again = bare(txnappid="a", txnversion="1").writer(created(startingoffsets="earliest"), False)
    assert isinstance(again, BatchPublisher)
    assert again._options.version == 1
    elsewhere = bare(metadataserviceuri="memory:", log="other").reader(created(startingoffsets=f'{{"{LOG}": 0}}'))
    assert isinstance(elsewhere, LogBatchReader)
    assert (elsewhere._read.logs, elsewhere._read.starting) == (("other",), None)


def test_columns_of_a_table_that_come_to_another_do_not_bring_its_options() -> None:
    """Spark hands the columns of a query over as they are where they fit those of the table that is written."""
    columns = created()
    part = types.StructType([columns["key"], columns["value"]])
    with pytest.raises(ConfigError, match=r"there are no options.*WITH \(metadataServiceUri"):
        bare().writer(part, False)
    more = types.StructType([*columns.fields, types.StructField("z", types.IntegerType())])
    with pytest.raises(ConfigError, match="there is no column 'z'"):
        bare().reader(more)
    with pytest.raises(ConfigError, match="there are no options"):
        bare().reader(types.StructType(columns.fields[::-1]))
    other = created(log="other")
    mixed = types.StructType([*columns.fields[:3], *other.fields[3:]])
    with pytest.raises(ConfigError, match="there are no options"):
        bare().reader(mixed)


def test_rows_of_another_table_do_not_go_back_into_it(cluster: Stand) -> None:
    """INSERT INTO b SELECT * FROM a: the columns say a."""
    writer = bare().writer(created(), False)
    assert isinstance(writer, DataSourceArrowWriter)
    batch = pa.record_batch({"log": ["events"], "offset": pa.array([0], pa.int64()), "key": pa.array([b"k"]), "value": pa.array([b"v"])})
    with pytest.raises(ConfigError, match="is filled by the log"):
        writer.write(iter([batch]))
    assert cluster.values() == []


def test_what_spark_adds_to_a_table_is_let_through_and_a_typo_is_not() -> None:
    with pytest.raises(ConfigError, match="unknown option 'startingofsets'; did you mean 'startingOffsets'"):
        created(startingofsets="earliest")
    with pytest.raises(ConfigError, match="unknown option 'provider'"):
        source(provider="parquet").schema()
    with pytest.raises(ConfigError, match=r"unknown option 'option\.log'"):
        source(**{"option.log": "x"}).schema()
    with pytest.raises(ConfigError, match="'log', 'subscribe'"):
        bare(**TABLE, metadataserviceuri="u", **{"option.metadataserviceuri": "u"}).schema()
    with pytest.raises(ConfigError, match="there are no options"):
        bare(**TABLE).schema()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"ledgerpassword": "secret"}, "would be kept in the catalogue"),
        ({"txnversion": "1", "txnappid": "a"}, "is for one INSERT"),
    ],
)
def test_options_of_one_query_are_refused_in_a_table(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        created(**options)


def test_a_table_has_no_location() -> None:
    given = {**TABLE, "path": "file:/x", "option.log": LOG, "option.metadataserviceuri": "u"}
    with pytest.raises(ConfigError, match="no LOCATION"):
        bare(**given).schema()


def test_a_table_of_another_release_is_refused() -> None:
    columns = created()
    for field in columns.fields:
        field.metadata = {table_options.MARK: field.metadata[table_options.MARK].replace('"v": 1', '"v": 2')}
    with pytest.raises(FormatError, match="version 2"):
        bare().reader(columns)
