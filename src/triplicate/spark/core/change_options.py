"""The options of the source for change feeds. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from triplicate.errors import ConfigError
from triplicate.spark.core.given_options import EARLIEST, LATEST, Options

SNAPSHOT = "snapshot"
"""The starting version of a feed that begins with the table's content."""
FAIL, DELIVER = "fail", "deliver"
"""The handling of table changes that ordinary rows of the feed cannot express."""
DECLARED, TEXT = "declared", "text"
"""The types of dates, times and numerics: Spark's, or strings as in earlier releases."""

CHANGES_OPTIONS = (
    "metadataServiceUri",
    "database",
    "table",
    "ledgerPassword",
    "keysFile",
    "startingVersion",
    "endingVersion",
    "startingTimestamp",
    "endingTimestamp",
    "maxVersionsPerTrigger",
    "maxBytesPerTrigger",
    "schemaEvents",
    "columnTypes",
)


@dataclass(frozen=True, slots=True)
class ChangesOptions:
    """Options of a read of a table's change feed. Versions are offsets of the database's log. Ends are inclusive, as in Delta."""

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
    column_types: str | None = None
    """`DECLARED`, `TEXT`, or None for the default, which is `DECLARED`."""
    starting_time: dt.datetime | None = None
    ending_time: dt.datetime | None = None
    max_bytes_per_trigger: int | None = None

    @property
    def from_the_beginning(self) -> bool:
        """Whether the consumer holds no rows at the beginning."""
        return self.starting_time is None and self.starting_version in (None, EARLIEST, SNAPSHOT)


def changes_options(given: Mapping[str, str], *, streaming: bool = False) -> ChangesOptions:
    """Raises ConfigError."""
    options = Options("triplicate-changes", given, CHANGES_OPTIONS)
    starting: int | str | None = options.text("startingVersion")
    if isinstance(starting, str) and starting.lower() in (EARLIEST, LATEST, SNAPSHOT):
        starting = starting.lower()
    elif starting is not None:
        starting = options.integer("startingVersion", None)
    ending = options.integer("endingVersion", None)
    since, until = options.time_text("startingTimestamp"), options.time_text("endingTimestamp")
    for name, value in (("endingVersion", ending), ("endingTimestamp", until)):
        if streaming and value is not None:
            raise ConfigError(f"triplicate-changes: option {name!r} is for batch reads; a stream has no end")
    for end, one, other in (("starting", starting, since), ("ending", ending, until)):
        if one is not None and other is not None:
            raise ConfigError(f"triplicate-changes: give '{end}Version' or '{end}Timestamp', not both")
    if since is not None and until is not None and since > until:
        raise ConfigError(f"triplicate-changes: 'startingTimestamp' {since} lies after 'endingTimestamp' {until}")
    versions_limit, bytes_limit = options.limit("maxVersionsPerTrigger"), options.limit("maxBytesPerTrigger")
    if versions_limit is not None and bytes_limit is not None:
        raise ConfigError(
            "triplicate-changes: give 'maxVersionsPerTrigger' or 'maxBytesPerTrigger', not both: Spark knows one limit at a time"
        )
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
        max_versions_per_trigger=versions_limit,
        deliver_events=options.word("schemaEvents", FAIL, DELIVER) == DELIVER,
        column_types=options.word("columnTypes", DECLARED, TEXT),
        starting_time=since,
        ending_time=until,
        max_bytes_per_trigger=bytes_limit,
    )
