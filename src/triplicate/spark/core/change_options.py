"""The options of the source for change feeds. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triplicate.errors import ConfigError
from triplicate.spark.core.options import EARLIEST, LATEST, Options

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
    "maxVersionsPerTrigger",
    "schemaEvents",
    "columnTypes",
)


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
    column_types: str | None = None
    """`DECLARED`, `TEXT`, or None for the default, which is `DECLARED`."""


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
        deliver_events=options.word("schemaEvents", FAIL, DELIVER) == DELIVER,
        column_types=options.word("columnTypes", DECLARED, TEXT),
    )
