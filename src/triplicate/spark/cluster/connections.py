"""One client per process, cluster and settings, opened at its first use and closed when the process ends.

Tasks are short and numerous, so they share the client of their process. PySpark forks its workers. The threads of a client opened before
the fork exist only in the parent, so a child never uses it and opens its own.
"""

from __future__ import annotations

import atexit
import os
import threading

from triplicate.blocking import BlockingClient, connect
from triplicate.config import ClientSettings, MetadataSettings, SecuritySettings, settings_of_environment, variable_of
from triplicate.spark.core.given_options import ClientOptions


class _Connections:
    """The clients of one process."""

    def __init__(self) -> None:
        self.process_id = os.getpid()
        self.lock = threading.Lock()
        self.clients: dict[tuple[str, ClientOptions], BlockingClient] = {}


_process_connections = _Connections()
_inherited: list[_Connections] = []
"""Clients of the parent processes, kept so that this process never finalises them."""


def _connections() -> _Connections:
    global _process_connections
    if _process_connections.process_id != os.getpid():
        _inherited.append(_process_connections)
        _process_connections = _Connections()
    return _process_connections


def client(metadata_uri: str, options: ClientOptions = ()) -> BlockingClient:
    """The process's client for a cluster. Do not close it.

    Its settings are those of this process's environment: TRIPLICATE_CLIENT_…, TRIPLICATE_METADATA_… and TRIPLICATE_SECURITY_…, or a file
    that TRIPLICATE_CONFIG names. Executors get the variables by ``spark.executorEnv``, and the files that they name must be on their
    machines. So no secret is in a query's options, which plans and logs show.

    Args:
        options: settings of the client for this query, which come before the others.

    Raises:
        ConfigError, EnvironmentFault, UsageError: as `triplicate.connect`.
    """
    connections = _connections()
    with connections.lock:
        existing = connections.clients.get((metadata_uri, options))
        if existing is None:
            own = {variable_of("client", name): value for name, value in options}
            settings = settings_of_environment(ClientSettings, {**os.environ, **own})
            security = settings_of_environment(SecuritySettings, os.environ)
            metadata = settings_of_environment(MetadataSettings, os.environ)
            existing = connect(metadata_uri, settings=settings, security=security, metadata=metadata)
            connections.clients[metadata_uri, options] = existing
        return existing


def forget(metadata_uri: str, options: ClientOptions = ()) -> None:
    """Close the process's client for a cluster, for example after its metadata session ended. The next use opens another."""
    connections = _connections()
    with connections.lock:
        existing = connections.clients.pop((metadata_uri, options), None)
    if existing is not None:
        existing.close()


@atexit.register
def close_all() -> None:
    """Close every client of this process."""
    for metadata_uri, options in list(_connections().clients):
        forget(metadata_uri, options)
