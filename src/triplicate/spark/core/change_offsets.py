"""Offsets of a change feed's stream in Spark's checkpoints. Pure.

``{"logs":{"LOG":1234},"named":17,"schema":17,"table":"orders","v":2}``: the version after the last delivered change, the schema version of
its columns, and the table, identified by its name at schema version `named`. ``"types":"declared"`` is there if the rows up to the offset
have the declared types of the table's columns. Earlier releases read an offset without this field. Version 1, of earlier releases, has
only `logs`. Spark compares offsets as text, so they are always encoded here, with sorted keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triplicate.errors import FormatError

VERSION = 2
BEFORE_SNAPSHOT = -1
"""The version of a stream that has not delivered the table's content yet: its first batch is the content before the version of its end.

It is never in a checkpoint, which has the ends of batches only. So the position of the content is kept before its rows are read, and a
batch that is planned again has the same rows.
"""


@dataclass(frozen=True, slots=True)
class ChangesOffset:
    """The position of a stream.

    Args:
        version: the first transaction not delivered yet.
        table, named: the table whose rows the consumer holds, by its name at schema version `named`; None means the schema version before
            `version`. Without a table, the consumer holds no rows or unknown ones.
        schema: the schema version of the consumer's columns; None means the schema version before `version`.
        types: `DECLARED` if the consumer's columns have the declared types; None if they may be strings.
    """

    version: int
    table: str | None = None
    named: int | None = None
    schema: int | None = None
    types: str | None = None

    def encode(self, log: str) -> dict[str, Any]:
        """Encode for Spark's checkpoint."""
        types = {"types": self.types} if self.types is not None else {}
        return {"logs": {log: self.version}, "named": self.named, "schema": self.schema, "table": self.table, **types, "v": VERSION}


def decode_offset(offset: Mapping[str, Any], log: str, table: str) -> ChangesOffset:
    """Decode an offset of this or an earlier release.

    Args:
        log: the log of the database. table: the table of the feed, for offsets without one.

    Raises:
        FormatError: the offset belongs to another database or a later release, or is not Triplicate's.
    """
    logs, name, types = offset.get("logs"), offset.get("table", table), offset.get("types")
    versions = offset.get("named"), offset.get("schema")
    known = offset.get("v") in (1, VERSION) and all(isinstance(one, str | None) for one in (name, types))
    known = known and all(isinstance(one, int | None) for one in versions)
    if not known or not isinstance(logs, dict) or not all(type(position) is int for position in logs.values()):
        raise FormatError(
            f"the checkpoint holds an offset that this release cannot read: {dict(offset)!r}; versions up to {VERSION} are known"
        )
    if log not in logs:
        raise FormatError(f"the checkpoint is of another database: it holds {dict(offset)!r}, and the log is {log!r}; use a new checkpoint")
    return ChangesOffset(logs[log], name, *versions, types)
