"""Where bookies were last seen to listen: for the time in which the metadata do not answer, or a bookie is not registered. Memory only."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.metadata.core.service_info import BookieServiceInfo

KNOWN_MAX = 10_000
"""So many bookies are remembered; of more the one that was read longest ago is forgotten."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where a bookie listens, and how well that is known."""

    info: BookieServiceInfo
    registered: bool | None
    """True: its registration says so now. False: it has none, and this is what its last one said. None: the metadata do not answer."""


class KnownAddresses:
    """The last registration of each bookie that was read. An address belongs to the bookie that was last seen there, and to no other."""

    def __init__(self, most: int = KNOWN_MAX) -> None:
        self._most = most
        self._infos: dict[str, BookieServiceInfo] = {}
        """By bookie, the one read longest ago first."""
        self._holders: dict[tuple[str, int], str] = {}

    def __len__(self) -> int:
        return len(self._infos)

    def get(self, bookie_id: str) -> BookieServiceInfo | None:
        return self._infos.get(bookie_id)

    def remember(self, bookie_id: str, info: BookieServiceInfo) -> None:
        """A registration was read."""
        self.forget(bookie_id)
        address = info.rpc_address
        if address is None:
            return
        holder = self._holders.get(address)
        if holder is not None:
            self.forget(holder)
        self._infos[bookie_id] = info
        self._holders[address] = bookie_id
        if len(self._infos) > self._most:
            self.forget(next(iter(self._infos)))

    def forget(self, bookie_id: str) -> None:
        info = self._infos.pop(bookie_id, None)
        if info is not None and info.rpc_address is not None:
            del self._holders[info.rpc_address]
