"""The connections of one client, one per bookie, and what all its handles share."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from triplicate.client.channel import BookieChannel
from triplicate.client.metrics import ClientMetrics
from triplicate.config import ClientSettings
from triplicate.errors import HandleClosed
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, TaskScope


class ChannelPool:
    """Makes a channel per bookie when it is first needed; all are closed together."""

    def __init__(self, host: Host, metadata: ClusterMetadata, settings: ClientSettings, scope: TaskScope) -> None:
        self._host = host
        self._metadata = metadata
        self._settings = settings
        self._scope = scope
        self._channels: dict[str, BookieChannel] = {}
        self._closed = False
        self.transactions = count(1)
        """Ids of version-3 requests, each taken once: the same frame of an add goes to several bookies, so the pool numbers, not a channel."""

    def channel(self, bookie_id: str) -> BookieChannel:
        """The channel to a bookie, connected or not.

        Raises:
            HandleClosed: the client was closed.
        """
        if self._closed:
            raise HandleClosed("the client was closed; open a new one")
        channel = self._channels.get(bookie_id)
        if channel is None:
            channel = BookieChannel(self._host, bookie_id, self._metadata.bookies, self._settings, self._scope)
            self._channels[bookie_id] = channel
        return channel

    def close(self) -> None:
        """Drop all connections; what waits for answers is failed. Idempotent."""
        self._closed = True
        for channel in list(self._channels.values()):
            channel.close()
        self._channels.clear()


@dataclass(slots=True)
class Suspects:
    """Bookies that failed lately. They are chosen for ensembles only where there are too few others."""

    lifetime_s: float
    _until: dict[str, float] = field(default_factory=dict)

    def note(self, bookie_id: str, now: float) -> None:
        """The bookie failed."""
        self._until[bookie_id] = now + self.lifetime_s

    def names(self, now: float) -> list[str]:
        """Those that failed within the lifetime."""
        self._until = {bookie_id: until for bookie_id, until in self._until.items() if until > now}
        return list(self._until)


@dataclass(frozen=True, slots=True)
class Services:
    """What writers, readers and recoveries of one client need; made by `Client`."""

    host: Host
    metadata: ClusterMetadata
    settings: ClientSettings
    scope: TaskScope
    pool: ChannelPool
    suspects: Suspects
    metrics: ClientMetrics

    def new_pool(self) -> ChannelPool:
        """Connections of their own, for requests that fence (see `client.channel`). The maker closes it."""
        return ChannelPool(self.host, self.metadata, self.settings, self.scope)
