"""Spark integration: data sources for logs, ledgers, tables and change feeds, and a session configured for them.

Importing this room needs no Spark; using it does. Start with `session`, or `register` the sources with a session of your own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from triplicate.spark.sessions import register, session

if TYPE_CHECKING:
    from triplicate.spark.change_feed.change_source import ChangesDataSource
    from triplicate.spark.logs.log_source import TriplicateDataSource
    from triplicate.spark.tables.table_source import TableDataSource

__all__ = ["ChangesDataSource", "TableDataSource", "TriplicateDataSource", "register", "session"]


def __getattr__(name: str) -> Any:
    if name == "TriplicateDataSource":
        from triplicate.spark.logs.log_source import TriplicateDataSource

        return TriplicateDataSource
    if name == "ChangesDataSource":
        from triplicate.spark.change_feed.change_source import ChangesDataSource

        return ChangesDataSource
    if name == "TableDataSource":
        from triplicate.spark.tables.table_source import TableDataSource

        return TableDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
