"""The databases that a node hosts, as its server sees them. Empty before the node's start."""

from __future__ import annotations

from triplicate.sql.engine.sql_database import SqlDatabase
from triplicate.sql.hosting.hosted_database import HostedDatabase


class HostedDatabases:
    """The hosted databases by name. Implements `interface.Databases` for servers."""

    def __init__(self) -> None:
        self._is_complete = False
        self.is_partial = False
        """Whether the cluster has databases of which this node has no copy."""
        self._hosted: dict[str, HostedDatabase] = {}

    @property
    def starting(self) -> bool:
        """Whether the node does not know all databases of the cluster yet. Those that it knows are served."""
        return not self._is_complete

    def complete(self) -> None:
        """The node knows all databases of the cluster from now on."""
        self._is_complete = True

    def get(self, name: str) -> SqlDatabase | None:
        hosted = self._hosted.get(name)
        return None if hosted is None else hosted.database

    def names(self) -> list[str]:
        return sorted(self._hosted)

    @property
    def hosted(self) -> dict[str, HostedDatabase]:
        """The hosted databases by name; a copy."""
        return dict(self._hosted)

    def positions(self) -> dict[str, int]:
        """The offset after the last record applied, by database."""
        return {name: hosted.database.position for name, hosted in sorted(self._hosted.items())}

    def add(self, hosted: HostedDatabase) -> None:
        """Serve a database."""
        self._hosted[hosted.info.name] = hosted

    def remove(self, hosted: HostedDatabase) -> None:
        """Stop serving a database. Its sessions go on until it is closed."""
        del self._hosted[hosted.info.name]

    async def aclose(self) -> None:
        """Close every database and serve none."""
        for hosted in self.hosted.values():
            await hosted.database.close()
        self._hosted.clear()
