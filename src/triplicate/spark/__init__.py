"""Spark integration: data sources for logs, ledgers, tables and change feeds, and a session configured for them.

Importing this room needs no Spark; using it does. Start with `session`, or `register` the sources with a session of your own.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from triplicate.spark.core.stream_lag import LogLag, lag_of
from triplicate.spark.sessions import register, session

if TYPE_CHECKING:
    from triplicate.spark.change_feed.change_source import ChangesDataSource
    from triplicate.spark.lag_listener import LagListener
    from triplicate.spark.logs.log_source import TriplicateDataSource
    from triplicate.spark.tables.table_source import TableDataSource

__all__ = ["ChangesDataSource", "LagListener", "LogLag", "TableDataSource", "TriplicateDataSource", "lag_of", "register", "session"]
_MODULES = {
    "ChangesDataSource": "triplicate.spark.change_feed.change_source",
    "LagListener": "triplicate.spark.lag_listener",
    "TableDataSource": "triplicate.spark.tables.table_source",
    "TriplicateDataSource": "triplicate.spark.logs.log_source",
}
"""Modules that need Spark, loaded at their first use."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
