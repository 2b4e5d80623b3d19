"""The options of the source for logs and ledgers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

from triplicate.errors import ConfigError
from triplicate.spark.core.column_checks import READABLE
from triplicate.spark.core.given_options import EARLIEST, EPOCH, LATEST, LOGS, Access, ClientOptions, Options, StartingPoint

RECORDS_PER_PARTITION = 250_000
TARGET_LEDGER_BYTES = 16 * 1024 * 1024
MAX_TRIGGER_DELAY_S = 900.0
CONSUMER_NAME_BYTES = 256
ERROR = "error"
_EDGES = {"starting": "begins", "ending": "ends"}
LEDGERS_LIMIT = 10_000
"""Maximum number of ledgers in one read."""

LOG_OPTIONS = (
    "metadataServiceUri",
    "log",
    "subscribe",
    "subscribePattern",
    "ledgerPassword",
    "keysFile",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "recordsPerPartition",
    "minPartitions",
    "columns",
    "includeHeaders",
    "includeMetadata",
    "failOnDataLoss",
    "consumerName",
)
LEDGER_OPTIONS = ("metadataServiceUri", "ledgers", "ledgerPassword", "recordsPerPartition")
WRITE_OPTIONS = ("metadataServiceUri", "log", "ledgerPassword", "keysFile", "txnAppId", "txnVersion", "targetLedgerBytes")


@dataclass(frozen=True, slots=True)
class LogReadOptions:
    """Options of a read of logs. Offsets count records; an end is exclusive.

    `pattern`: a regular expression for the names of the logs, which are not known then; empty: they are `logs`.
    `may_begin_at_end`: a log without a record at or after its starting time is read from its end; otherwise this is an error.
    """

    metadata_uri: str
    ledger_password: str
    keys_file: str
    logs: tuple[str, ...]
    pattern: str
    starting: StartingPoint | None
    ending: StartingPoint | None
    records_per_partition: int
    min_partitions: int | None
    max_offsets_per_trigger: int | None
    max_bytes_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_s: float
    include_headers: bool
    include_metadata: bool
    fail_on_data_loss: bool
    may_begin_at_end: bool
    client: ClientOptions = ()
    columns: tuple[str, ...] = ()
    """Empty: all."""
    consumer: str = ""
    """The named consumer that gets the positions of a stream; empty: none."""

    @property
    def access(self) -> Access:
        return self.metadata_uri, self.ledger_password, self.keys_file, self.client

    def records_per_task(self, records: int) -> int:
        """Maximum number of records of one task.

        Args:
            records: of all tasks together.
        """
        return min(self.records_per_partition, max(1, records // (self.min_partitions or 1)))

    def reads(self, log: str) -> bool:
        """Whether a log is among those that are read."""
        return compiled(self.pattern).fullmatch(log) is not None if self.pattern else log in self.logs


@dataclass(frozen=True, slots=True)
class LedgerReadOptions:
    """Options of a read of ledgers."""

    metadata_uri: str
    ledger_password: str
    ledger_ids: tuple[int, ...]
    entries_per_partition: int
    client: ClientOptions = ()


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write to a log, or to several: `log` is empty if the rows' column `log` names the log of each.

    `into_table`: the rows are those of an INSERT into a table, whose column `log` is the log's to fill.
    `application` and `version` name a batch job's write, so that running it again adds nothing; a streaming write uses the
    query's id and the batch number if they are not given.
    """

    metadata_uri: str
    ledger_password: str
    log: str
    application: str | None
    version: int | None
    target_ledger_bytes: int = TARGET_LEDGER_BYTES
    keys_file: str = ""
    into_table: bool = False
    client: ClientOptions = ()

    @property
    def access(self) -> Access:
        return self.metadata_uri, self.ledger_password, self.keys_file, self.client


def reads_ledgers(given: Mapping[str, str]) -> bool:
    """Whether the option `ledgers` requests ledgers instead of a log."""
    return any(key.lower() == "ledgers" for key in given)


def log_read_options(given: Mapping[str, str], *, streaming: bool | None = False) -> LogReadOptions:
    """Raises ConfigError. `streaming` is None while it is unknown whether the read is a stream."""
    options = Options(LOGS, given, LOG_OPTIONS)
    given_names = [name for name in ("log", "subscribe", "subscribePattern") if options.text(name) is not None]
    if len(given_names) > 1:
        raise ConfigError(
            "triplicate: option 'log' names one log, 'subscribe' several, comma-separated, and 'subscribePattern' all whose names match; "
            "give one of them"
        )
    if not given_names:
        raise ConfigError(
            "triplicate: one of the options 'log', 'subscribe' (several logs, comma-separated), 'subscribePattern' or 'ledgers' is needed"
        )
    named, pattern = options.text("log") or options.text("subscribe") or "", options.text("subscribePattern") or ""
    logs = tuple(dict.fromkeys(part.strip() for part in named.split(",") if part.strip()))
    if pattern:
        compiled(pattern)
    elif not logs:
        raise ConfigError(f"triplicate: option 'log' or 'subscribe' names no log: {named!r}")
    ending = _point(options, "ending", logs)
    if ending is not None and streaming:
        raise ConfigError("triplicate: a stream has no end: options 'endingOffsets' and 'endingTimestamp' are for batch reads")
    if ending is not None and ending.word == EARLIEST:
        raise ConfigError("triplicate: option 'endingOffsets' is latest or JSON; a read that ends at the earliest offset holds nothing")
    starting = _point(options, "starting", logs)
    strategy = (options.text("startingOffsetsByTimestampStrategy") or ERROR).lower()
    if strategy not in (ERROR, LATEST):
        raise ConfigError(f"triplicate: option 'startingOffsetsByTimestampStrategy' is {ERROR} or {LATEST}, not {strategy!r}")
    if streaming is False:
        _check_batch(starting, ending)
    least, most = options.limit("minOffsetsPerTrigger"), options.limit("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise ConfigError(f"triplicate: 'minOffsetsPerTrigger' {least} is greater than 'maxOffsetsPerTrigger' {most}")
    if least is None and options.text("maxTriggerDelay") is not None:
        raise ConfigError("triplicate: option 'maxTriggerDelay' limits how long 'minOffsetsPerTrigger' holds a batch back: give that, too")
    return LogReadOptions(
        metadata_uri=options.required("metadataServiceUri"),
        ledger_password=options.text("ledgerPassword") or "",
        keys_file=options.text("keysFile") or "",
        logs=logs,
        pattern=pattern,
        starting=starting,
        ending=ending,
        records_per_partition=options.limit("recordsPerPartition") or RECORDS_PER_PARTITION,
        min_partitions=options.limit("minPartitions"),
        max_offsets_per_trigger=most,
        max_bytes_per_trigger=options.limit("maxBytesPerTrigger"),
        min_offsets_per_trigger=least,
        max_trigger_delay_s=options.duration("maxTriggerDelay", MAX_TRIGGER_DELAY_S),
        include_headers=options.boolean("includeHeaders", False),
        include_metadata=options.boolean("includeMetadata", False),
        fail_on_data_loss=options.boolean("failOnDataLoss", True),
        may_begin_at_end=strategy == LATEST,
        client=options.client(),
        columns=_columns(options),
        consumer=_consumer(options),
    )


def _consumer(options: Options) -> str:
    name = options.text("consumerName") or ""
    if len(name.encode()) > CONSUMER_NAME_BYTES:
        raise ConfigError(f"triplicate: option 'consumerName' has more than {CONSUMER_NAME_BYTES} bytes: {name!r}")
    return name


def _columns(options: Options) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip().lower() for part in (options.text("columns") or "").split(",") if part.strip()))
    for name in names:
        if name not in READABLE:
            raise ConfigError(f"triplicate: option 'columns' names {name!r}; there are {', '.join(READABLE)}")
    return names


@cache
def compiled(pattern: str) -> Any:
    """A regular expression for names of logs, which RE2 matches in linear time. Raises ConfigError."""
    import re2  # Only reads by a pattern need it, and each process of Spark that plans something loads this module.

    silent = re2.Options()
    silent.log_errors = False
    try:
        return re2.compile(pattern, silent)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else error
        raise ConfigError(f"triplicate: option 'subscribePattern' is not a regular expression of RE2: {pattern!r}: {reason}") from None


def _point(options: Options, edge: str, logs: tuple[str, ...]) -> StartingPoint | None:
    """The beginning or the end of a read, by one of three options.

    Raises:
        ConfigError: several are given. Kafka's source follows the time then.
    """
    forms = (f"{edge}Offsets", f"{edge}Timestamp", f"{edge}OffsetsByTimestamp")
    given = [name for name in forms if options.text(name) is not None]
    if len(given) > 1:
        raise ConfigError(f"triplicate: give one of the options {' and '.join(map(repr, given))}: each says where the read {_EDGES[edge]}")
    return options.point(forms[0], logs) or options.time(forms[1]) or options.times(forms[2], logs)


def _check_batch(starting: StartingPoint | None, ending: StartingPoint | None) -> None:
    """Raises ConfigError: a batch read would begin at or after its end."""
    if starting is None:
        return
    if starting.word == LATEST:
        raise ConfigError(
            "triplicate: option 'startingOffsets' is earliest or JSON in a batch read; one that begins at the end holds nothing"
        )
    if ending is None:
        return
    for log, first in starting.offsets.items():
        last = ending.offsets.get(log, first)
        if first > last:
            raise ConfigError(f"triplicate: log {log!r} would be read from {first} to {last}: 'startingOffsets' lies after 'endingOffsets'")
    if starting.times_ms and ending.times_ms:
        for log in {**starting.times_ms, **ending.times_ms}:
            begin, end = starting.time_ms(log), ending.time_ms(log)
            if begin > end:
                which = f"log {log!r}" if log else "the logs"
                times = " to ".join((EPOCH + timedelta(milliseconds=each)).isoformat() for each in (begin, end))
                raise ConfigError(f"triplicate: {which} would be read from {times}: the start lies after the end")


def ledger_read_options(given: Mapping[str, str]) -> LedgerReadOptions:
    """Raises ConfigError. `ledgers` is a comma-separated list of ids and of ranges as ``3-7``, both ends included."""
    options = Options(LOGS, given, LEDGER_OPTIONS)
    ids: dict[int, None] = {}
    for part in options.required("ledgers").split(","):
        first, dash, last = part.strip().partition("-")
        try:
            span = range(int(first), int(last) + 1) if dash else range(int(first), int(first) + 1)
        except ValueError:
            span = range(0)
        if not span:
            raise ConfigError(f"triplicate: option 'ledgers' is a list of ids and of rising ranges as 3-7, not {part.strip()!r}")
        if len(ids) + len(span) > LEDGERS_LIMIT:
            raise ConfigError(f"triplicate: option 'ledgers' names more than {LEDGERS_LIMIT} ledgers; read them in parts")
        ids.update(dict.fromkeys(span))
    return LedgerReadOptions(
        metadata_uri=options.required("metadataServiceUri"),
        ledger_password=options.text("ledgerPassword") or "",
        ledger_ids=tuple(ids),
        entries_per_partition=options.limit("recordsPerPartition") or RECORDS_PER_PARTITION,
        client=options.client(),
    )


def write_options(
    given: Mapping[str, str], *, streaming: bool = False, columns: Iterable[str] = (), into_table: bool = False
) -> WriteOptions:
    """Raises ConfigError. `columns` are the names of the columns that are written."""
    options = Options(LOGS, given, WRITE_OPTIONS)
    application, version = options.text("txnAppId"), options.integer("txnVersion", None)
    if streaming and version is not None:
        raise ConfigError("triplicate: a stream numbers its batches itself; drop option 'txnVersion'")
    if not streaming and (application is None) != (version is None):
        raise ConfigError("triplicate: options 'txnAppId' and 'txnVersion' (greater for each new batch) go together in a batch write")
    log = options.text("log") or ""
    if not log and (into_table or "log" not in (name.lower() for name in columns)):
        raise ConfigError(
            "triplicate: option 'log' is missing; add .option(\"log\", …), or write a column 'log' that names the log of each row"
        )
    target_bytes = options.integer("targetLedgerBytes", TARGET_LEDGER_BYTES)
    return WriteOptions(
        options.required("metadataServiceUri"),
        options.text("ledgerPassword") or "",
        log,
        application,
        version,
        target_bytes if target_bytes is not None else TARGET_LEDGER_BYTES,
        options.text("keysFile") or "",
        into_table,
        options.client(),
    )
