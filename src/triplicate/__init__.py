"""Triplicate: a replicated commit log that speaks Apache BookKeeper.

    async with triplicate.connect("sqlite:///path/of/cluster/metadata.db") as client:
        async with await client.create() as writer:
            entry_id = await writer.append(b"hello")
        async for record in triplicate.logs(client)["flights"]:
            print(record.offset, record.value)

`triplicate.blocking` has the same without `await`. Names are loaded when they are first used, so that a process pays only for the
rooms it enters.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triplicate.client import AdvLedgerWriter, Client, ClientSettings, LedgerReader, LedgerWriter, Tail, connect
    from triplicate.config.log_settings import LogClientSettings
    from triplicate.embedded import EmbeddedDatabase, EmbeddedStore, database, key_value
    from triplicate.errors import TriplicateError
    from triplicate.ledger import DigestType, Entry, LedgerMetadata, LedgerState
    from triplicate.log import LogRecord, Logs, LogSettings, TransactionId

__all__ = [
    "AdvLedgerWriter",
    "Client",
    "ClientSettings",
    "DigestType",
    "EmbeddedDatabase",
    "EmbeddedStore",
    "Entry",
    "LedgerMetadata",
    "LedgerReader",
    "LedgerState",
    "LedgerWriter",
    "LogRecord",
    "LogSettings",
    "Logs",
    "Tail",
    "TransactionId",
    "TriplicateError",
    "connect",
    "database",
    "key_value",
    "logs",
]

_HOMES = {
    "client": ("AdvLedgerWriter", "Client", "ClientSettings", "LedgerReader", "LedgerWriter", "Tail", "connect"),
    "ledger": ("DigestType", "Entry", "LedgerMetadata", "LedgerState"),
    "embedded": ("EmbeddedDatabase", "EmbeddedStore", "database", "key_value"),
    "errors": ("TriplicateError",),
    "log": ("LogRecord", "LogSettings", "Logs", "TransactionId"),
}
_MODULES = ("blocking", "dbapi", "embedded", "errors", "kv", "testing")


def logs(client: Client, settings: LogClientSettings | None = None) -> Logs:
    """The logs of a client's cluster: ``triplicate.logs(client)["flights"]`` is one of them.

    Args:
        settings: how this process writes and reads logs; None: the defaults.
    """
    from triplicate.log import Logs

    return Logs(client, settings)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"triplicate.{name}")
    for room, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"triplicate.{room}"), name)
    raise AttributeError(f"module 'triplicate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, *_MODULES])
