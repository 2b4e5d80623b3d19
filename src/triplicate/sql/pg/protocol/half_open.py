"""Connections whose clients have not logged in yet. Their number is limited, in total and for each address. Pure."""

from __future__ import annotations

from triplicate.sql.pg.protocol.failed_logins import address_key


class HalfOpenConnections:
    """The connections by address, each with the oldest first.

    A new connection is always admitted, and the oldest one of the most numerous address makes room: an honest client is half open for
    moments, and a flood replaces its own connections.

    Args:
        total: limit of all together. for_address: limit for one address.
    """

    def __init__(self, total: int, for_address: int) -> None:
        self._total = total
        self._for_address = for_address
        self._addresses: dict[str, dict[int, None]] = {}
        self._keys: dict[int, str] = {}
        """Maps each connection to its address."""

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, connection: int, address: str) -> int | None:
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

    def remove(self, connection: int) -> None:
        """The connection has logged in, or is closed. Idempotent."""
        key = self._keys.pop(connection, None)
        if key is None:
            return
        own = self._addresses[key]
        del own[connection]
        if not own:
            del self._addresses[key]
