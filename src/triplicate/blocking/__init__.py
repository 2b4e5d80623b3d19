"""Triplicate without `await`, for scripts, notebooks and Spark tasks. Example: ``with triplicate.blocking.connect(uri) as client:``

A background thread runs an event loop. Every call passes its coroutine to the loop and waits for the result. Several threads may use one
object, one call at a time. A thread that runs an event loop must use `triplicate.connect` instead.

Modules whose names end in ``_facade`` are generated from the async classes by ``scripts/blocking.py``.
The classes for logs, databases and key-value stores are loaded at their first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from triplicate.blocking.background_loop import BackgroundLoop, OpenOnLoop
from triplicate.blocking.blocking_client import BlockingClient, connect
from triplicate.blocking.iterators import BlockingKeyWatch, BlockingTail
from triplicate.blocking.ledger_facade import BlockingAdvWriter, BlockingHandle, BlockingReader, BlockingWriter

if TYPE_CHECKING:
    from triplicate.blocking.blocking_database import BlockingDatabase, OpenDatabase, database
    from triplicate.blocking.blocking_store import BlockingStore, key_value
    from triplicate.blocking.database_facade import BlockingDatabases
    from triplicate.blocking.embedded_facade import BlockingTransaction
    from triplicate.blocking.log_facade import BlockingLog, BlockingLogReader, BlockingLogs, BlockingRangeReader
    from triplicate.blocking.log_writing_facade import BlockingLogWriter, BlockingStagingWriter
    from triplicate.blocking.record_facade import BlockingBackwardReader, BlockingLogConsumer, BlockingLogProducer, BlockingLogRecords
    from triplicate.blocking.store_facade import BlockingStores, StoreMethods

__all__ = [
    "BackgroundLoop",
    "BlockingAdvWriter",
    "BlockingBackwardReader",
    "BlockingClient",
    "BlockingDatabase",
    "BlockingDatabases",
    "BlockingHandle",
    "BlockingKeyWatch",
    "BlockingLog",
    "BlockingLogConsumer",
    "BlockingLogProducer",
    "BlockingLogReader",
    "BlockingLogRecords",
    "BlockingLogWriter",
    "BlockingLogs",
    "BlockingRangeReader",
    "BlockingReader",
    "BlockingStagingWriter",
    "BlockingStore",
    "BlockingStores",
    "BlockingTail",
    "BlockingTransaction",
    "BlockingWriter",
    "OpenDatabase",
    "OpenOnLoop",
    "StoreMethods",
    "connect",
    "database",
    "key_value",
]

_LAZY_EXPORTS = {
    "blocking_database": ("BlockingDatabase", "OpenDatabase", "database"),
    "blocking_store": ("BlockingStore", "key_value"),
    "embedded_facade": ("BlockingTransaction",),
    "database_facade": ("BlockingDatabases",),
    "log_facade": ("BlockingLog", "BlockingLogReader", "BlockingLogs", "BlockingRangeReader"),
    "log_writing_facade": ("BlockingLogWriter", "BlockingStagingWriter"),
    "store_facade": ("BlockingStores", "StoreMethods"),
    "record_facade": ("BlockingBackwardReader", "BlockingLogConsumer", "BlockingLogProducer", "BlockingLogRecords"),
}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY_EXPORTS.items():
        if name in names:
            return getattr(importlib.import_module(f"triplicate.blocking.{module}"), name)
    raise AttributeError(f"module 'triplicate.blocking' has no attribute {name!r}")
