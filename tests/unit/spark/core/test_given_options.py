"""Options: how they are read, and the error of each mistake."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from triplicate.errors import ConfigError
from triplicate.spark.core.change_options import changes_options
from triplicate.spark.core.database_options import table_read_options, table_write_options
from triplicate.spark.core.log_options import ledger_read_options, log_read_options, write_options

URI = {"metadataserviceuri": "sqlite:///m.db"}


def test_names_are_read_in_any_case() -> None:
    read = log_read_options({"METADATASERVICEURI": "u", "Log": "flights", "maxoffsetspertrigger": "5", "INCLUDEHEADERS": "TRUE"})
    assert (read.metadata_uri, read.logs, read.max_offsets_per_trigger, read.include_headers) == ("u", ("flights",), 5, True)


def test_defaults_are_those_of_kafkas_source() -> None:
    read = log_read_options({**URI, "log": "a"})
    assert (read.starting, read.ending, read.max_offsets_per_trigger, read.include_headers) == (None, None, None, False)
    assert read.fail_on_data_loss


def test_several_logs_are_subscribed_to_once_each() -> None:
    assert log_read_options({**URI, "subscribe": "b, a,b,"}).logs == ("b", "a")


def test_starting_offsets_are_words_or_an_offset_for_each_log() -> None:
    assert log_read_options({**URI, "log": "a", "startingoffsets": "Latest"}, streaming=True).starting.word == "latest"  # type: ignore[union-attr]
    starting = log_read_options({**URI, "subscribe": "a,b", "startingoffsets": '{"a": 3, "b": 4611686018427387904}'}).starting
    assert starting is not None
    assert (starting.word, starting.offsets) == (None, {"a": 3, "b": 2**62})


def test_ledgers_are_ids_and_ranges() -> None:
    assert ledger_read_options({**URI, "ledgers": "9, 3-5,4"}).ledger_ids == (9, 3, 4, 5)


def test_what_spark_adds_itself_is_let_through() -> None:
    write = write_options({**URI, "log": "a", "checkpointlocation": "/c", "queryname": "q"}, streaming=True)
    assert (write.log, write.application, write.version) == ("a", None, None)


def test_changes_start_at_a_word_or_a_version() -> None:
    given = {**URI, "database": "d", "table": "t"}
    assert changes_options({**given, "startingversion": "EARLIEST"}).starting_version == "earliest"
    assert changes_options({**given, "startingversion": "7", "endingversion": "9"}).ending_version == 9


table_batch_options = partial(table_write_options, streaming=False)
table_stream_options = partial(table_write_options, streaming=True)

MISTAKES: list[tuple[Callable[..., Any], dict[str, str], str]] = [
    (log_read_options, {"log": "a"}, "'metadataServiceUri' is missing"),
    (log_read_options, URI, "one of the options 'log', 'subscribe'"),
    (log_read_options, {**URI, "log": "a", "subscribe": "b"}, "give one of them"),
    (log_read_options, {**URI, "log": "a", "startingofsets": "latest"}, "did you mean 'startingOffsets'"),
    (log_read_options, {**URI, "log": "a", "zebra": "1"}, "known are metadataServiceUri, log"),
    (log_read_options, {**URI, "log": "a", "path": "/x"}, "this source has no paths"),
    (log_read_options, {**URI, "log": "a", "startingoffsets": "early"}, "earliest, latest or JSON"),
    (log_read_options, {**URI, "log": "a", "startingoffsets": '{"a": -2}'}, "earliest, latest or JSON"),
    (log_read_options, {**URI, "log": "a", "startingoffsets": '{"a": true}'}, "earliest, latest or JSON"),
    (log_read_options, {**URI, "log": "a", "startingoffsets": '{"a": {"0": 3}}'}, "one number for each log, without partitions, -1 and -2"),
    (log_read_options, {**URI, "log": "a", "startingoffsets": '{"a": 3, "a": 8}'}, "one number for each log"),
    (log_read_options, {**URI, "log": "a", "startingoffsets": '[["a", 3]]'}, "earliest, latest or JSON"),
    (log_read_options, {**URI, "log": "a", "endingoffsets": '{"a": -1}'}, "option 'endingOffsets' is latest or JSON"),
    (log_read_options, {"kafka.bootstrap.servers": "x"}, "did you mean 'metadataServiceUri'?"),
    (log_read_options, {**URI, "assign": "x"}, "did you mean 'subscribe'?"),
    (write_options, {**URI, "log": "a", "txnappid": "x", "txnversion": str(2**63)}, r"option 'txnVersion' must be below 2\^63"),
    (write_options, {**URI, "topic": "a"}, "did you mean 'log'?"),
    (log_read_options, {**URI, "subscribe": "a,b", "startingoffsets": '{"a": 1}'}, "no number for b"),
    (log_read_options, {**URI, "log": "a", "endingoffsets": "earliest"}, "'endingOffsets' is latest or JSON"),
    (log_read_options, {**URI, "log": "a", "maxoffsetspertrigger": "0"}, "at least 1"),
    (log_read_options, {**URI, "log": "a", "maxoffsetspertrigger": "many"}, "must be an integer"),
    (log_read_options, {**URI, "log": "a", "maxoffsetspertrigger": "1", "minoffsetspertrigger": "2"}, "2 is greater than 'maxOff"),
    (log_read_options, {**URI, "log": "a", "maxtriggerdelay": "1m"}, "'minOffsetsPerTrigger' holds a batch back: give that, too"),
    (log_read_options, {**URI, "log": "a", "minoffsetspertrigger": "1", "maxtriggerdelay": "soon"}, "a time as 15m, 30s.*not 'soon'"),
    (log_read_options, {**URI, "log": "a", "includeheaders": "yes"}, "must be true or false"),
    (log_read_options, {**URI, "log": "a", "txnappid": "x"}, "unknown option 'txnappid'"),
    (ledger_read_options, {**URI, "ledgers": "7-3"}, "rising ranges"),
    (ledger_read_options, {**URI, "ledgers": "7,x"}, "not 'x'"),
    (ledger_read_options, {**URI, "ledgers": "0-9999999999"}, "more than 10000 ledgers"),
    (write_options, {**URI}, "'log' is missing"),
    (write_options, {**URI, "log": "a", "txnversion": "1"}, "go together"),
    (write_options, {**URI, "log": "a", "txnappid": "x"}, "go together"),
    (changes_options, {**URI, "table": "t"}, "'database' is missing"),
    (changes_options, {**URI, "database": "d", "table": "t", "startingversion": "soon"}, "must be an integer"),
    (log_read_options, {**URI, "log": "a", "startingoffsets": '{"a": 1, "b": 2}'}, "names b, which is not read; read are a"),
    (log_read_options, {**URI, "log": "a", "endingoffsets": '{"a": 1, "b": 2}'}, "names b, which is not read"),
    (log_read_options, {**URI, "log": "a", "startingoffsets": "latest"}, "'startingOffsets' is earliest or JSON in a batch"),
    (
        log_read_options,
        {**URI, "log": "a", "startingoffsets": '{"a": 8}', "endingoffsets": '{"a": 3}'},
        "log 'a' would be read from 8 to 3",
    ),
    (
        changes_options,
        {**URI, "database": "d", "table": "t", "startingversion": "8", "endingversion": "3"},
        "'startingVersion' 8 lies after 'endingVersion' 3",
    ),
    (changes_options, {}, "CREATE TEMPORARY VIEW t USING triplicate-changes OPTIONS"),
    (
        changes_options,
        {"provider": "triplicate-changes", "database": "d", "option.database": "d"},
        "there are no tables of this source",
    ),
    (log_read_options, {}, "CREATE TABLE t USING triplicate OPTIONS"),
    (write_options, {"checkpointlocation": "/c"}, "there are no options"),
    (log_read_options, {**URI, "subscribe": " , "}, "names no log"),
    (log_read_options, {**URI, "subscribepattern": "(a"}, r"'subscribePattern' is not a regular expression of RE2: '\(a': missing \)"),
    (log_read_options, {**URI, "log": "a", "subscribepattern": "b"}, "give one of them"),
    (
        log_read_options,
        {**URI, "log": "a", "startingoffsets": "earliest", "startingtimestamp": "1"},
        "one of the options 'startingOffsets' and 'startingTimestamp': each says where the read begins",
    ),
    (
        log_read_options,
        {**URI, "log": "a", "endingtimestamp": "1", "endingoffsetsbytimestamp": '{"a": 1}'},
        "'endingTimestamp' and 'endingOffsetsByTimestamp': each says where the read ends",
    ),
    (log_read_options, {**URI, "log": "a", "startingtimestamp": "253402300800000"}, "before the year 10000"),
    (log_read_options, {**URI, "log": "a", "startingtimestamp": "2026-01-01"}, "must be an integer"),
    (log_read_options, {**URI, "subscribe": "a,b", "startingoffsetsbytimestamp": '{"a": 1}'}, "gives no number for b"),
    (log_read_options, {**URI, "log": "a", "startingoffsetsbytimestamp": "5"}, "is JSON with ms since 1970"),
    (log_read_options, {**URI, "log": "a", "startingoffsetsbytimestampstrategy": "earliest"}, "is error or latest, not 'earliest'"),
    (
        log_read_options,
        {**URI, "log": "a", "startingtimestamp": "5", "endingtimestamp": "4"},
        r"would be read from 1970-01-01T00:00:00\.005000\+00:00 to 1970-01-01T00:00:00\.004000\+00:00",
    ),
    (
        log_read_options,
        {**URI, "subscribe": "a,b", "startingoffsetsbytimestamp": '{"a": 3, "b": 5}', "endingtimestamp": "4"},
        r"log 'b' would be read from 1970-01-01T00:00:00\.005000\+00:00 to 1970",
    ),
    (table_read_options, {**URI, "database": "d"}, "give 'table' or 'query'$"),
    (table_read_options, {**URI, "database": "d", "table": "t", "query": "select 1"}, "give 'table' or 'query', not both"),
    (table_read_options, {**URI, "database": "d", "query": "select 1", "columns": "a"}, "a query names its columns itself"),
    (
        table_read_options,
        {**URI, "database": "d", "query": "q", "partitioncolumn": "a"},
        "'partitionColumn' and 'numPartitions' go together",
    ),
    (table_read_options, {**URI, "database": "d", "table": "t", "partitioncolumn": "a", "numpartitions": "2"}, "go together, for a query"),
    (
        table_read_options,
        {**URI, "database": "d", "table": "t", "versionasof": "1", "timestampasof": "5"},
        "'versionAsOf' or 'timestampAsOf'",
    ),
    (table_read_options, {**URI, "database": "d", "table": "t", "timestampasof": "noon"}, "option 'timestampAsOf' is a time as"),
    (table_read_options, {**URI, "database": "d", "table": "t", "action": "upsert"}, "unknown option 'action'"),
    (table_stream_options, {**URI, "database": "d", "table": "t", "txnversion": "1"}, "a stream has the numbers of its batches"),
    (table_batch_options, {**URI, "database": "d", "table": "t", "txnversion": "1"}, "'txnAppId' and 'txnVersion' go together"),
    (
        table_batch_options,
        {**URI, "database": "d", "table": "t", "action": "merge"},
        "is insert or upsert or delete or changes, not 'merge'",
    ),
]


@pytest.mark.parametrize(("read", "given", "complaint"), MISTAKES)
def test_a_mistake_is_refused_by_name(read: Callable[..., Any], given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        read(given)


@pytest.mark.parametrize(
    ("text", "seconds"), [("15m", 900), ("30s", 30), ("2 h", 7200), ("500ms", 0.5), ("1500", 1.5), ("1min", 60), ("1D", 86400)]
)
def test_a_duration_is_written_as_for_kafkas_source(text: str, seconds: float) -> None:
    read = log_read_options({**URI, "log": "a", "minoffsetspertrigger": "1", "maxtriggerdelay": text})
    assert read.max_trigger_delay_s == pytest.approx(seconds)


def test_a_batch_is_held_back_for_a_quarter_of_an_hour() -> None:
    assert log_read_options({**URI, "log": "a", "minoffsetspertrigger": "1"}).max_trigger_delay_s == 900


def test_a_stream_has_no_end_and_numbers_its_batches_itself() -> None:
    with pytest.raises(ConfigError, match="a stream has no end"):
        log_read_options({**URI, "log": "a", "endingoffsets": "latest"}, streaming=True)
    with pytest.raises(ConfigError, match="a stream has no end"):
        log_read_options({**URI, "log": "a", "endingtimestamp": "1"}, streaming=True)
    with pytest.raises(ConfigError, match="numbers its batches itself"):
        write_options({**URI, "log": "a", "txnappid": "x", "txnversion": "1"}, streaming=True)
    with pytest.raises(ConfigError, match="a stream has no end"):
        changes_options({**URI, "database": "d", "table": "t", "endingversion": "1"}, streaming=True)
