"""Options of the data sources: read once, checked, and named in every complaint. Pure.

Spark hands options over as text with keys in lower case; the names here are written as users write them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triplicate.errors import ConfigError

EARLIEST = "earliest"
LATEST = "latest"
RECORDS_PER_PARTITION = 250_000


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """Where reading begins or ends: `word` is earliest or latest, or `offsets` says it for each log."""

    word: str | None
    offsets: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class LogReadOptions:
    """How to read logs. Offsets count records; an end is exclusive."""

    metadata_uri: str
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
    """How to read bare ledgers."""

    metadata_uri: str
    ledger_ids: tuple[int, ...]
    password: bytes
    entries_per_partition: int


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How to publish into a log.

    `application` and `version` name a batch job's write, so that running it again adds nothing; a streaming write takes the
    query's id and the batch number where they are not given.
    """

    metadata_uri: str
    log: str
    application: str | None
    version: int | None


@dataclass(frozen=True, slots=True)
class ChangesOptions:
    """How to read a table's change feed. Versions are offsets of the database's log; `ending_version` is inclusive, as in Delta."""

    metadata_uri: str
    database: str
    table: str
    starting_version: int | str | None
    ending_version: int | None
    max_versions_per_trigger: int | None


class Options:
    """The options of one source, with the complaint for each kind of mistake.

    Args:
        source: the format's name, for messages.
        given: what Spark handed over, keys in lower case.
        known: every option of the source, as users write it.
    """

    def __init__(self, source: str, given: Mapping[str, str], known: Sequence[str]) -> None:
        self._source = source
        self._given = {key.lower(): value for key, value in given.items()}
        names = {name.lower(): name for name in known}
        for key in self._given:
            if key not in names and key not in ("path", "header"):
                raise ConfigError(f"{source}: unknown option {key!r}; known are {', '.join(sorted(known))}")

    def text(self, name: str) -> str | None:
        value = self._given.get(name.lower())
        return value or None

    def required(self, name: str) -> str:
        value = self.text(name)
        if value is None:
            raise ConfigError(f"{self._source}: option {name!r} is missing; add .option({name!r}, …)")
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

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise ConfigError(f"{self._source}: option {name!r} must be true or false, not {value!r}")
        return value.lower() == "true"

    def point(self, name: str, logs: Sequence[str]) -> StartingPoint | None:
        """``earliest``, ``latest`` or ``{"flights": 1234}`` with an offset for each log."""
        value = self.text(name)
        if value is None:
            return None
        if value.lower() in (EARLIEST, LATEST):
            return StartingPoint(value.lower(), {})
        try:
            offsets = json.loads(value)
        except ValueError:
            offsets = None
        if not isinstance(offsets, dict) or not all(type(offset) is int and offset >= 0 for offset in offsets.values()):
            raise ConfigError(f'{self._source}: option {name!r} is earliest, latest or JSON as {{"log": 1234}}, not {value!r}')
        missing = [log for log in logs if log not in offsets]
        if missing:
            raise ConfigError(f"{self._source}: option {name!r} gives no offset for {', '.join(missing)}")
        return StartingPoint(None, offsets)


LOG_OPTIONS = (
    "metadataServiceUri",
    "log",
    "subscribe",
    "ledgers",
    "ledgerPassword",
    "startingOffsets",
    "endingOffsets",
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "recordsPerPartition",
    "includeHeaders",
    "includeMetadata",
    "failOnDataLoss",
    "txnAppId",
    "txnVersion",
)
CHANGES_OPTIONS = (
    "metadataServiceUri",
    "database",
    "table",
    "startingVersion",
    "endingVersion",
    "maxVersionsPerTrigger",
)


def reads_ledgers(given: Mapping[str, str]) -> bool:
    """True where the option `ledgers` asks for bare ledgers instead of a log."""
    return any(key.lower() == "ledgers" for key in given)


def log_read_options(given: Mapping[str, str]) -> LogReadOptions:
    """Raises ConfigError."""
    options = Options("triplicate", given, LOG_OPTIONS)
    named = options.text("log") or options.text("subscribe")
    if named is None:
        raise ConfigError("triplicate: one of the options 'log', 'subscribe' (several logs, comma-separated) or 'ledgers' is needed")
    logs = tuple(dict.fromkeys(part.strip() for part in named.split(",") if part.strip()))
    return LogReadOptions(
        metadata_uri=options.required("metadataServiceUri"),
        logs=logs,
        starting=options.point("startingOffsets", logs),
        ending=options.point("endingOffsets", logs),
        records_per_partition=options.integer("recordsPerPartition", RECORDS_PER_PARTITION, low=1) or RECORDS_PER_PARTITION,
        max_offsets_per_trigger=options.integer("maxOffsetsPerTrigger", None, low=1),
        max_bytes_per_trigger=options.integer("maxBytesPerTrigger", None, low=1),
        include_headers=options.boolean("includeHeaders", False),
        include_metadata=options.boolean("includeMetadata", False),
        fail_on_data_loss=options.boolean("failOnDataLoss", True),
    )


def ledger_read_options(given: Mapping[str, str]) -> LedgerReadOptions:
    """Raises ConfigError. `ledgers` is a comma-separated list of ids and of ranges as ``3-7``."""
    options = Options("triplicate", given, LOG_OPTIONS)
    ids: list[int] = []
    for part in options.required("ledgers").split(","):
        first, dash, last = part.strip().partition("-")
        try:
            ids += range(int(first), int(last) + 1) if dash else [int(first)]
        except ValueError:
            raise ConfigError(f"triplicate: option 'ledgers' is a list of ids and ranges as 3-7, not {part!r}") from None
    return LedgerReadOptions(
        metadata_uri=options.required("metadataServiceUri"),
        ledger_ids=tuple(dict.fromkeys(ids)),
        password=(options.text("ledgerPassword") or "").encode(),
        entries_per_partition=options.integer("recordsPerPartition", RECORDS_PER_PARTITION, low=1) or RECORDS_PER_PARTITION,
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    """Raises ConfigError."""
    options = Options("triplicate", given, LOG_OPTIONS)
    application, version = options.text("txnAppId"), options.integer("txnVersion", None)
    if version is not None and application is None:
        raise ConfigError("triplicate: option 'txnVersion' needs 'txnAppId', which names whose version it is")
    return WriteOptions(options.required("metadataServiceUri"), options.required("log"), application, version)


def changes_options(given: Mapping[str, str]) -> ChangesOptions:
    """Raises ConfigError."""
    options = Options("triplicate-changes", given, CHANGES_OPTIONS)
    starting: int | str | None = options.text("startingVersion")
    if isinstance(starting, str) and starting.lower() in (EARLIEST, LATEST):
        starting = starting.lower()
    elif starting is not None:
        starting = options.integer("startingVersion", None)
    return ChangesOptions(
        metadata_uri=options.required("metadataServiceUri"),
        database=options.required("database"),
        table=options.required("table"),
        starting_version=starting,
        ending_version=options.integer("endingVersion", None),
        max_versions_per_trigger=options.integer("maxVersionsPerTrigger", None, low=1),
    )
