"""The connections of one client."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from triplicate.client.connection.bookie_access import IN_CLEAR, BookieAccess
from triplicate.client.connection.bookie_channel import BookieChannel
from triplicate.client.connection.connector import ChannelResources
from triplicate.client.connection.flush_scheduler import FlushScheduler
from triplicate.config import ClientSettings
from triplicate.errors import HandleClosed
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, TaskScope


class ChannelPool:
    """Makes a connection when it is first needed; all are closed together.

    A bookie has up to three: one of the configured version, for adds and reads; one of version 3 for operations that version 2 lacks;
    and one of version 2 for batch reads.
    """

    def __init__(
        self,
        host: Host,
        metadata: ClusterMetadata,
        settings: ClientSettings,
        scope: TaskScope,
        access: BookieAccess = IN_CLEAR,
    ) -> None:
        self._settings = settings
        self._resources = ChannelResources(host, metadata.bookies, settings, scope, access)
        self._channels: dict[tuple[str, str], BookieChannel] = {}
        self._closed = False
        self.scheduler = FlushScheduler(host.clock)
        """Sends the adds of all ledgers on these connections together."""
        self.transactions = count(1)
        """Ids of requests, each used once. The pool numbers them, not a channel: a version-3 add goes to several bookies unchanged."""

    @property
    def wire(self) -> str:
        """Version of the data channels, ``v2`` or ``v3``."""
        return self._settings.wire

    @property
    def is_closed(self) -> bool:
        """Whether the client closed all connections."""
        return self._closed

    def channel(self, bookie_id: str) -> BookieChannel:
        """The channel to a bookie for adds and reads, connected or not.

        Raises:
            HandleClosed: the client was closed.
        """
        return self._channel(bookie_id, "data", self._settings.wire)

    def connect(self, bookie_ids: Sequence[str]) -> None:
        """Begin to connect the channels for adds and reads before there is a request. Raises as `channel`."""
        for bookie_id in bookie_ids:
            self.channel(bookie_id).connect()

    def v3_channel(self, bookie_id: str) -> BookieChannel:
        """The channel for operations of version 3 only; the same as `channel` where that speaks version 3. Raises as `channel`."""
        return self._channel(bookie_id, "data" if self._settings.wire == "v3" else "control", "v3")

    def batch_channel(self, bookie_id: str) -> BookieChannel:
        """The channel for batch reads, always of version 2. Raises as `channel`.

        Bookies before BookKeeper 4.17 close a connection on which they get a batch read, which must not fail other requests.
        """
        return self._channel(bookie_id, "batch", "v2")

    def _channel(self, bookie_id: str, purpose: str, wire: str) -> BookieChannel:
        if self._closed:
            raise HandleClosed("the client was closed; open a new one")
        channel = self._channels.get((bookie_id, purpose))
        if channel is None:
            channel = BookieChannel(self._resources, bookie_id, wire, self.transactions, self.scheduler)
            self._channels[bookie_id, purpose] = channel
        return channel

    def close(self) -> None:
        """Close all connections and fail the pending requests. Idempotent."""
        self._closed = True
        for channel in list(self._channels.values()):
            channel.close()
        self._channels.clear()
