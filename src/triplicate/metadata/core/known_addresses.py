"""The last known address of each bookie, for use while the metadata store does not answer or a bookie is not registered. Memory only."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.metadata.core.service_info import BookieServiceInfo

KNOWN_MAX = 10_000
"""Maximum number of bookies remembered. Beyond it, the registration read longest ago is dropped."""


@dataclass(frozen=True, slots=True)
class Location:
    """The address of a bookie, and how current it is."""

    info: BookieServiceInfo
    registered: bool | None
    """True: from its present registration. False: the bookie has no registration; from its last one. None: the metadata store does not
    answer."""


class KnownAddresses:
    """The last registration read of each bookie. An address belongs only to the bookie last seen there."""

    def __init__(self, most: int = KNOWN_MAX) -> None:
        self._most = most
        self._infos: dict[str, BookieServiceInfo] = {}
        """Registrations by bookie id, the one read longest ago first."""
        self._holders: dict[tuple[str, int], str] = {}
        self._seen: dict[str, BookieServiceInfo] = {}
        """The last registration of each bookie, also where its address is forgotten: its machine still exists. The oldest first."""

    def __len__(self) -> int:
        return len(self._infos)

    def get(self, bookie_id: str) -> BookieServiceInfo | None:
        return self._infos.get(bookie_id)

    def all(self) -> dict[str, BookieServiceInfo]:
        """The last registrations by bookie id, also of bookies whose address is forgotten."""
        return dict(self._seen)

    def remember(self, bookie_id: str, info: BookieServiceInfo) -> None:
        """Record a registration that was read."""
        self.forget(bookie_id)
        address = info.rpc_address
        if address is None:
            return
        holder = self._holders.get(address)
        if holder is not None:
            self.forget(holder)
        self._seen.pop(bookie_id, None)
        self._seen[bookie_id] = info
        if len(self._seen) > self._most:
            del self._seen[next(iter(self._seen))]
        self._infos[bookie_id] = info
        self._holders[address] = bookie_id
        if len(self._infos) > self._most:
            self.forget(next(iter(self._infos)))

    def forget(self, bookie_id: str) -> None:
        info = self._infos.pop(bookie_id, None)
        if info is not None and info.rpc_address is not None:
            del self._holders[info.rpc_address]
