"""Offsets of a change feed's stream, as Spark keeps them in a checkpoint. Pure.

``{"logs":{"LOG":1234},"named":17,"schema":17,"table":"orders","v":2}``: the version after the last change delivered, the schema version of
the columns in which it was delivered, and which table it is: the one that was named so at schema version `named`. Version 1, of earlier
releases, has `logs` alone. Spark compares offsets as text, so they are always made here, with keys in order.
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
        table, named: the table whose rows the consumer holds, by its name at a schema version; None for that before `version`. No table:
            it holds no rows, or nothing is known of them.
        schema: the schema version of the columns in which it holds them; None for that before `version`.
    """

    version: int
    table: str | None = None
    named: int | None = None
    schema: int | None = None

    def encode(self, log: str) -> dict[str, Any]:
        """The form that Spark stores."""
        return {"logs": {log: self.version}, "named": self.named, "schema": self.schema, "table": self.table, "v": VERSION}


def decode_offset(offset: Mapping[str, Any], log: str, table: str) -> ChangesOffset:
    """An offset that a stream of this release or of one before has stored.

    Args:
        log: of the database. table: whose feed it is, where the offset does not say.

    Raises:
        FormatError: of another database, of a later release, or not ours.
    """
    logs, name, versions = offset.get("logs"), offset.get("table", table), (offset.get("named"), offset.get("schema"))
    known = offset.get("v") in (1, VERSION) and isinstance(name, str | None) and all(isinstance(one, int | None) for one in versions)
    if not known or not isinstance(logs, dict) or not all(type(position) is int for position in logs.values()):
        raise FormatError(
            f"the checkpoint holds an offset that this release cannot read: {dict(offset)!r}; versions up to {VERSION} are known"
        )
    if log not in logs:
        raise FormatError(f"the checkpoint is of another database: it holds {dict(offset)!r}, and the log is {log!r}; use a new checkpoint")
    return ChangesOffset(logs[log], name, *versions)
