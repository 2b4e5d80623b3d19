"""Offsets of a change feed's stream, as Spark keeps them in a checkpoint. Pure.

``{"logs":{"LOG":1234},"schema":17,"table":"orders","v":2}``: the version after the last change delivered, and the columns with which it
was delivered, those of `table` at schema version 17. Both are null where nothing was delivered yet. Version 1, of earlier releases, has
`logs` alone. Spark compares offsets as text, so they are always made here, with keys in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triplicate.errors import FormatError

VERSION = 2


@dataclass(frozen=True, slots=True)
class ChangesOffset:
    """Where a stream stands.

    Args:
        version: the first transaction that was not delivered.
        table: name of the table whose rows the consumer holds, at schema version `schema`; None where it holds a copy of its own.
        schema: the schema version of the columns in which it holds them; None for that before `version`.
    """

    version: int
    table: str | None = None
    schema: int | None = None

    def encode(self, log: str) -> dict[str, Any]:
        """The form that Spark stores."""
        return {"logs": {log: self.version}, "schema": self.schema, "table": self.table, "v": VERSION}


def decode_offset(offset: Mapping[str, Any], log: str, table: str) -> ChangesOffset:
    """An offset that a stream of this release or of one before has stored.

    Args:
        log: of the database. table: whose feed it is, where the offset does not say.

    Raises:
        FormatError: of another database, of a later release, or not ours.
    """
    logs, name, schema = offset.get("logs"), offset.get("table", table), offset.get("schema")
    known = offset.get("v") in (1, VERSION) and isinstance(logs, dict) and isinstance(name, str | None) and isinstance(schema, int | None)
    if not known or not isinstance(logs, dict) or not all(type(position) is int for position in logs.values()):
        raise FormatError(
            f"the checkpoint holds an offset that this release cannot read: {dict(offset)!r}; versions up to {VERSION} are known"
        )
    if log not in logs:
        raise FormatError(f"the checkpoint is of another database: it holds {dict(offset)!r}, and the log is {log!r}; use a new checkpoint")
    return ChangesOffset(logs[log], name, schema)
