"""One client per process and cluster, opened at its first use and closed when the process ends.

Tasks are short and numerous, so they share the client of their process. PySpark forks its workers. The threads of a client opened before
the fork exist only in the parent, so a child never uses it and opens its own.
"""

from __future__ import annotations

import atexit
import os
import threading

from triplicate.blocking import BlockingClient, connect
from triplicate.config import MetadataSettings, SecuritySettings, load


class _Connections:
    """The clients of one process."""

    def __init__(self) -> None:
        self.process_id = os.getpid()
        self.lock = threading.Lock()
        self.clients: dict[str, BlockingClient] = {}


_process_connections = _Connections()
_inherited: list[_Connections] = []
"""Clients of the parent processes, kept so that this process never finalises them."""


def _connections() -> _Connections:
    global _process_connections
    if _process_connections.process_id != os.getpid():
        _inherited.append(_process_connections)
        _process_connections = _Connections()
    return _process_connections


def client(metadata_uri: str) -> BlockingClient:
    """The process's client for a cluster. Do not close it.

    Its access to ZooKeeper comes from the variables TRIPLICATE_METADATA_… and TRIPLICATE_SECURITY_… of this process, whose files are on
    this machine: executors get them by ``spark.executorEnv``. Options of a source would show in plans and logs.

    Raises:
        ConfigError, EnvironmentFault, UsageError: as `triplicate.connect`.
    """
    connections = _connections()
    with connections.lock:
        existing = connections.clients.get(metadata_uri)
        if existing is None:
            found = load((MetadataSettings, SecuritySettings), environment=os.environ)
            existing = connections.clients[metadata_uri] = connect(
                metadata_uri, security=found.get(SecuritySettings), metadata=found.get(MetadataSettings)
            )
        return existing


def forget(metadata_uri: str) -> None:
    """Close the process's client for a cluster, for example after its metadata session ended. The next use opens another."""
    connections = _connections()
    with connections.lock:
        existing = connections.clients.pop(metadata_uri, None)
    if existing is not None:
        existing.close()


@atexit.register
def close_all() -> None:
    """Close every client of this process."""
    for metadata_uri in list(_connections().clients):
        forget(metadata_uri)
