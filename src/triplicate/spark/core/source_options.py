"""Options of the data sources: parsed once, checked, and named in every error. Pure.

Spark passes options as text with keys in lower case; the names here are in the users' spelling.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triplicate.errors import ConfigError
from triplicate.spark.core.table_options import NO_OPTIONS, NO_TABLES, is_created

LOGS = "triplicate"
"""The format name of the source for logs and ledgers."""
EARLIEST = "earliest"
LATEST = "latest"
FAIL, DELIVER = "fail", "deliver"
"""The handling of table changes that ordinary rows of the feed cannot express."""
RECORDS_PER_PARTITION = 250_000
TARGET_LEDGER_BYTES = 16 * 1024 * 1024
LEDGERS_LIMIT = 10_000
"""Maximum number of ledgers in one read."""

_SPARKS_OWN = frozenset(("checkpointlocation", "queryname"))
"""Options that Spark passes to sources and sinks in addition to the user's."""


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """The begin or end of a read: `word` is earliest or latest, or `offsets` has an offset for each log."""

    word: str | None
    offsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LogReadOptions:
    """Options of a read of logs. Offsets count records; an end is exclusive."""

    metadata_uri: str
    ledger_password: str
    keys_file: str
    logs: tuple[str, ...]
    starting: StartingPoint | None
    ending: StartingPoint | None
    records_per_partition: int
    max_offsets_per_trigger: int | None
    max_bytes_per_trigger: int | None
    include_headers: bool
    include_metadata: bool
    fail_on_data_loss: bool


@dataclass(frozen=True, slots=True)
class LedgerReadOptions:
    """Options of a read of ledgers."""

    metadata_uri: str
    ledger_password: str
    ledger_ids: tuple[int, ...]
    entries_per_partition: int


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write to a log.

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


@dataclass(frozen=True, slots=True)
class ChangesOptions:
    """Options of a read of a table's change feed. Versions are offsets of the database's log; `ending_version` is inclusive, as in
    Delta."""

    metadata_uri: str
    ledger_password: str
    keys_file: str
    database: str
    table: str
    starting_version: int | str | None
    ending_version: int | None
    max_versions_per_trigger: int | None
    deliver_events: bool = False
    """Whether table changes that ordinary rows cannot express are delivered as event rows instead of errors."""


class Options:
    """The options of one source, with the error for each kind of mistake.

    Args:
        source: the format's name, for messages.
        given: the options from Spark, with keys in lower case.
        known: every option of the source, in the users' spelling.
    """

    def __init__(self, source: str, given: Mapping[str, str], known: Sequence[str]) -> None:
        self._source = source
        self._given = {key.lower(): value for key, value in given.items()}
        names = {name.lower(): name for name in known}
        has_tables = source == LOGS
        if not self._given.keys() - set(_SPARKS_OWN) or (is_created(source, given) and not has_tables):
            raise ConfigError(f"{source}: {(NO_OPTIONS if has_tables else NO_TABLES).format(source=source)}")
        for key in self._given:
            if key == "path":
                raise ConfigError(f"{source}: this source has no paths; use the options {', '.join(known)}")
            if key not in names and key not in _SPARKS_OWN:
                near = difflib.get_close_matches(key, names, 1)
                hint = f"did you mean {names[near[0]]!r}?" if near else f"known are {', '.join(known)}"
                raise ConfigError(f"{source}: unknown option {key!r}; {hint}")

    def text(self, name: str) -> str | None:
        value = self._given.get(name.lower())
        return value.strip() or None if value is not None else None

    def required(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise ConfigError(f'{self._source}: option {name!r} is missing; add .option("{name}", …)')
        return value

    def integer(self, name: str, default: int | None, *, low: int = 0) -> int | None:
        value = self.text(name)
        if value is None:
            return default
        try:
            number = int(value)
        except ValueError:
            raise ConfigError(f"{self._source}: option {name!r} must be an integer, not {value!r}") from None
        if number < low:
            raise ConfigError(f"{self._source}: option {name!r} must be at least {low}, not {number}")
        return number

    def limit(self, name: str) -> int | None:
        """An integer of at least 1, or None."""
        return self.integer(name, None, low=1)

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise ConfigError(f"{self._source}: option {name!r} must be true or false, not {value!r}")
        return value.lower() == "true"

    def point(self, name: str, logs: Sequence[str]) -> StartingPoint | None:
        """Parse ``earliest``, ``latest`` or ``{"flights": 1234}`` with an offset for each log."""
        value = self.text(name)
        if value is None:
            return None
        if value.lower() in (EARLIEST, LATEST):
            return StartingPoint(value.lower(), {})
        try:
            offsets = json.loads(value)
        except ValueError:
            offsets = None
        if not isinstance(offsets, dict) or not all(type(offset) is int and 0 <= offset < 2**63 for offset in offsets.values()):
            raise ConfigError(f'{self._source}: option {name!r} is earliest, latest or JSON as {{"log": 1234}}, not {value!r}')
        unknown = [log for log in offsets if log not in logs]
        if unknown:
            raise ConfigError(f"{self._source}: option {name!r} names {', '.join(unknown)}, which is not read; read are {', '.join(logs)}")
        missing = [log for log in logs if log not in offsets]
        if missing:
            raise ConfigError(f"{self._source}: option {name!r} gives no offset for {', '.join(missing)}")
        return StartingPoint(None, offsets)


LOG_OPTIONS = (
    "metadataServiceUri",
    "log",
    "subscribe",
    "ledgerPassword",
    "keysFile",
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "recordsPerPartition",
    "includeHeaders",
    "includeMetadata",
    "failOnDataLoss",
)
LEDGER_OPTIONS = ("metadataServiceUri", "ledgers", "ledgerPassword", "recordsPerPartition")
WRITE_OPTIONS = ("metadataServiceUri", "log", "ledgerPassword", "keysFile", "txnAppId", "txnVersion", "targetLedgerBytes")
CHANGES_OPTIONS = (
    "metadataServiceUri",
    "database",
    "table",
    "ledgerPassword",
    "keysFile",
    "startingVersion",
    "endingVersion",
    "maxVersionsPerTrigger",
    "schemaEvents",
)


def reads_ledgers(given: Mapping[str, str]) -> bool:
    """Whether the option `ledgers` requests ledgers instead of a log."""
    return any(key.lower() == "ledgers" for key in given)


def log_read_options(given: Mapping[str, str], *, streaming: bool | None = False) -> LogReadOptions:
    """Raises ConfigError. `streaming` is None while it is unknown whether the read is a stream."""
    options = Options(LOGS, given, LOG_OPTIONS)
    if options.text("log") is not None and options.text("subscribe") is not None:
        raise ConfigError("triplicate: option 'log' names one log, 'subscribe' several, comma-separated; give one of the two")
    named = options.text("log") or options.text("subscribe")
    if named is None:
        raise ConfigError("triplicate: one of the options 'log', 'subscribe' (several logs, comma-separated) or 'ledgers' is needed")
    logs = tuple(dict.fromkeys(part.strip() for part in named.split(",") if part.strip()))
    if not logs:
        raise ConfigError(f"triplicate: option 'log' or 'subscribe' names no log: {named!r}")
    ending = options.point("endingOffsets", logs)
    if ending is not None and streaming:
        raise ConfigError("triplicate: option 'endingOffsets' is for batch reads; a stream has no end")
    if ending is not None and ending.word == EARLIEST:
        raise ConfigError("triplicate: option 'endingOffsets' is latest or JSON; a read that ends at the earliest offset holds nothing")
    starting = options.point("startingOffsets", logs)
    if streaming is False:
        _check_batch(starting, ending)
    records_limit, bytes_limit = options.limit("maxOffsetsPerTrigger"), options.limit("maxBytesPerTrigger")
    if records_limit is not None and bytes_limit is not None:
        raise ConfigError("triplicate: give 'maxOffsetsPerTrigger' or 'maxBytesPerTrigger', not both: Spark knows one limit at a time")
    return LogReadOptions(
        metadata_uri=options.required("metadataServiceUri"),
        ledger_password=options.text("ledgerPassword") or "",
        keys_file=options.text("keysFile") or "",
        logs=logs,
        starting=starting,
        ending=ending,
        records_per_partition=options.limit("recordsPerPartition") or RECORDS_PER_PARTITION,
        max_offsets_per_trigger=records_limit,
        max_bytes_per_trigger=bytes_limit,
        include_headers=options.boolean("includeHeaders", False),
        include_metadata=options.boolean("includeMetadata", False),
        fail_on_data_loss=options.boolean("failOnDataLoss", True),
    )


def _check_batch(starting: StartingPoint | None, ending: StartingPoint | None) -> None:
    """Raises ConfigError: a batch read would begin at or after its end."""
    if starting is None:
        return
    if starting.word == LATEST:
        raise ConfigError(
            "triplicate: option 'startingOffsets' is earliest or JSON in a batch read; one that begins at the end holds nothing"
        )
    for log, first in starting.offsets.items():
        last = ending.offsets.get(log, first) if ending is not None else first
        if first > last:
            raise ConfigError(f"triplicate: log {log!r} would be read from {first} to {last}: 'startingOffsets' lies after 'endingOffsets'")


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
    )


def write_options(given: Mapping[str, str], *, streaming: bool = False) -> WriteOptions:
    """Raises ConfigError."""
    options = Options(LOGS, given, WRITE_OPTIONS)
    application, version = options.text("txnAppId"), options.integer("txnVersion", None)
    if streaming and version is not None:
        raise ConfigError("triplicate: a stream numbers its batches itself; drop option 'txnVersion'")
    if not streaming and (application is None) != (version is None):
        raise ConfigError("triplicate: options 'txnAppId' and 'txnVersion' (greater for each new batch) go together in a batch write")
    target_bytes = options.integer("targetLedgerBytes", TARGET_LEDGER_BYTES)
    return WriteOptions(
        options.required("metadataServiceUri"),
        options.text("ledgerPassword") or "",
        options.required("log"),
        application,
        version,
        target_bytes if target_bytes is not None else TARGET_LEDGER_BYTES,
        options.text("keysFile") or "",
    )


def changes_options(given: Mapping[str, str], *, streaming: bool = False) -> ChangesOptions:
    """Raises ConfigError."""
    options = Options("triplicate-changes", given, CHANGES_OPTIONS)
    starting: int | str | None = options.text("startingVersion")
    if isinstance(starting, str) and starting.lower() in (EARLIEST, LATEST):
        starting = starting.lower()
    elif starting is not None:
        starting = options.integer("startingVersion", None)
    ending = options.integer("endingVersion", None)
    if streaming and ending is not None:
        raise ConfigError("triplicate-changes: option 'endingVersion' is for batch reads; a stream has no end")
    events = (options.text("schemaEvents") or FAIL).lower()
    if events not in (FAIL, DELIVER):
        raise ConfigError(f"triplicate-changes: option 'schemaEvents' is {FAIL} or {DELIVER}, not {events!r}")
    if isinstance(starting, int) and ending is not None and starting > ending:
        raise ConfigError(f"triplicate-changes: 'startingVersion' {starting} lies after 'endingVersion' {ending}")
    return ChangesOptions(
        metadata_uri=options.required("metadataServiceUri"),
        ledger_password=options.text("ledgerPassword") or "",
        keys_file=options.text("keysFile") or "",
        database=options.required("database"),
        table=options.required("table"),
        starting_version=starting,
        ending_version=ending,
        max_versions_per_trigger=options.limit("maxVersionsPerTrigger"),
        deliver_events=events == DELIVER,
    )
