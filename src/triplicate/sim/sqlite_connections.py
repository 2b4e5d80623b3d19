"""SQLite connections of simulated processes, which must be closed when their world ends.

The operating system frees the resources of a killed process; here the process is a heap of objects. A connection refers to its files
through C, where Python's collector does not see it, and a bookie's file leads to its disk and from there to the whole world. One connection
left open by a crash would keep a world's memory for good.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import apsw

from triplicate.sim.virtual_loop import HostCrashed


class SqliteConnections:
    """The connections that a world's processes have opened."""

    def __init__(self) -> None:
        self._connections: list[apsw.Connection] = []

    @contextmanager
    def tracked(self) -> Iterator[None]:
        """Track every connection that is opened within the block."""
        hook = self._connections.append
        apsw.connection_hooks.append(hook)
        try:
            yield
        finally:
            apsw.connection_hooks.remove(hook)

    def close(self) -> None:
        """Close the connections that are still open. Files of dead nodes refuse SQLite's last operations."""
        for connection in self._connections:
            with suppress(apsw.Error, OSError, HostCrashed):
                connection.close(True)
        self._connections.clear()
