"""Tables of Spark SQL: recovers the options of a table, which Spark stores but does not pass to the source. Pure.

Spark passes the options of ``CREATE TABLE … USING … OPTIONS (…)`` to a source in Python once, when it requests the table's columns. When
the table is read or written, Spark passes only the options after ``WITH``, and the columns. So the columns carry the options in their
metadata.
Columns keep their metadata in a query too, even when it writes into another table. So the options are used only if all columns of a table
are present and unchanged: a projection, or a write into a table with a list of columns, never has them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from triplicate.errors import ConfigError, FormatError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

MARK = "triplicate"
"""The key of the options in a column's metadata."""
CLIENT = "client."
"""Begins the names of options that are settings of the client."""
VERSION = 1
_OPTION = "option."
_PROVIDER = "provider"
_QUERYS_OWN = ("txnappid", "txnversion", "ledgerpassword")

NO_TABLES = (
    "there are no tables of this source, since Spark passes their options only when they are created. Write CREATE TEMPORARY VIEW t "
    "USING {source} OPTIONS (…), or name the options in .option(…) of a DataFrame's reader"
)
NO_OPTIONS = (
    "there are no options. Spark passes the options of a table to a source in Python only if the table was created without a list of "
    "columns, and never to CREATE TABLE … AS SELECT. Write CREATE TABLE t USING {source} OPTIONS (…) and then INSERT INTO t (key, value) "
    "SELECT …; "
    "or name the options in the query: … t WITH (metadataServiceUri '…', log '…'); or in .option(…) of a DataFrame's reader or writer; or "
    "use CREATE TEMPORARY VIEW t USING {source} OPTIONS (…)"
)


def is_created(source: str, given: Mapping[str, str]) -> bool:
    """Whether these options come from CREATE TABLE, which passes the table's properties, and each option twice."""
    return any(key.lower() == _PROVIDER and value.lower() == source for key, value in given.items())


def options_of_created(source: str, given: Mapping[str, str]) -> dict[str, str]:
    """The options of a table in CREATE TABLE, without its properties.

    Raises:
        ConfigError: an option applies to queries, not to tables.
    """
    lower = {key.lower(): value for key, value in given.items()}
    own = {key.removeprefix(_OPTION): value for key, value in lower.items() if key.startswith(_OPTION)}
    for key in own:
        if key in _QUERYS_OWN:
            reason = "would be kept in the catalogue" if key == "ledgerpassword" else "is for one INSERT"
            raise ConfigError(f"{source}: option {key!r} {reason}: give it in the query, as in INSERT INTO t WITH ({key} '…') …")
    if "path" in lower:
        raise ConfigError(f"{source}: a table has no LOCATION here; its OPTIONS name the log of its records")
    return own


def marked(schema: StructType, table: Mapping[str, str]) -> StructType:
    """The columns of a table with its options in each. They are nullable, so that an INSERT can omit those that the log fills."""
    mark = json.dumps({"options": dict(sorted(table.items())), "v": VERSION}, sort_keys=True)
    described = schema.jsonValue()
    for column in described["fields"]:
        column["nullable"] = True
        column["metadata"] = {**column["metadata"], MARK: mark}
    return schema.fromJson(described)


def options_in(columns: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, str] | None:
    """The options in the metadata of all columns; None if they differ or are missing.

    Args:
        columns: (name, metadata).

    Raises:
        FormatError: they were written by a later release.
    """
    marks = {metadata.get(MARK) for _, metadata in columns}
    mark = marks.pop() if len(marks) == 1 else None
    if mark is None:
        return None
    kept = json.loads(mark)
    if kept.get("v") != VERSION:
        raise FormatError(f"the table was created by another release: its options have version {kept.get('v')}, known is {VERSION}")
    return {str(key): str(value) for key, value in kept["options"].items()}


def effective(given: Mapping[str, str], table: Mapping[str, str] | None, known: Sequence[str]) -> dict[str, str]:
    """The options of a query on a table: its own, completed by the table's. A query that names the cluster uses only its own options.

    Args:
        table: the table's options, None if unknown.
        known: the options of this kind of query. Other options of the table are for other kinds.
    """
    own = {key.lower(): value for key, value in given.items()}
    if table is None or "metadataserviceuri" in own:
        return own
    names = {name.lower() for name in known}
    return {**{key: value for key, value in table.items() if key in names or key.startswith(CLIENT)}, **own}
