"""Connections whose clients are not admitted yet. Their number is limited, in total and for each address. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from triplicate.security.core.address_key import address_key

Connection = TypeVar("Connection")
"""Hashable, such as a number or an object with its identity."""


class HalfOpenConnections(Generic[Connection]):
    """The connections by the key of their address (see `address_key`), each address with the oldest first.

    A new connection is always admitted to the table. Beyond the limit of its address, the oldest one of that address makes room; beyond the
    limit of all together, the oldest one of the most numerous address. An honest client is half open for moments, and a flood replaces
    its own connections.

    Args:
        total: limit of all together. for_address: limit for one address.
    """

    def __init__(self, total: int, for_address: int) -> None:
        self._total = total
        self._for_address = for_address
        self._addresses: dict[str, dict[Connection, None]] = {}
        self._keys: dict[Connection, str] = {}
        """Maps each connection to its address, the oldest first."""

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[Connection]:
        """The connections, the oldest first. They may be removed meanwhile."""
        return iter(list(self._keys))

    def add(self, connection: Connection, address: str) -> Connection | None:
        """Admit a connection. Returns the connection to be closed for it, which is no longer among them; None if there is room."""
        key = address_key(address)
        own = self._addresses.setdefault(key, {})
        own[connection] = None
        self._keys[connection] = key
        if len(own) > self._for_address:
            crowded = own
        elif len(self._keys) > self._total:
            crowded = max(self._addresses.values(), key=len)
        else:
            return None
        oldest = next(iter(crowded))
        self.remove(oldest)
        return oldest

    def remove(self, connection: Connection) -> None:
        """The client is admitted, or the connection is closed. Idempotent."""
        key = self._keys.pop(connection, None)
        if key is None:
            return
        own = self._addresses[key]
        del own[connection]
        if not own:
            del self._addresses[key]
