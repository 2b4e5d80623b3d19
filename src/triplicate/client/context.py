"""The state that the handles of one client share: host, metadata, settings, connections, and the bookies to avoid."""

from __future__ import annotations

from dataclasses import dataclass, field

from triplicate.client.client_metrics import ClientMetrics
from triplicate.client.cluster_placement import ClusterPlacement
from triplicate.client.connection.bookie_access import IN_CLEAR, BookieAccess
from triplicate.client.connection.pool import ChannelPool
from triplicate.client.hedged_reads import HedgedReads
from triplicate.client.near_bookies import NearBookies
from triplicate.client.short_copies import ShortCopies
from triplicate.config import ClientSettings
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, TaskScope

UNLISTED_S = 600.0
"""How long a bookie that did not answer a request for a list of entries is not asked for one again, in seconds."""


@dataclass(slots=True)
class ExpiringBookies:
    """A set of bookie ids, each forgotten `lifetime_s` seconds after it was last added."""

    lifetime_s: float
    _until: dict[str, float] = field(default_factory=dict)

    def add(self, bookie_id: str, now: float) -> None:
        """Add a bookie, or extend its time; `now` is seconds of the monotonic clock."""
        self._until[bookie_id] = now + self.lifetime_s

    def names(self, now: float) -> list[str]:
        """The bookies added within the lifetime."""
        self._until = {bookie_id: until for bookie_id, until in self._until.items() if until > now}
        return list(self._until)


@dataclass(frozen=True, slots=True)
class ClientContext:
    """The state that the writers, readers and recoveries of one client share. Made by `Client`. Source: BookKeeper `ClientContext`.

    Attributes:
        failed_bookies: bookies that failed a writer recently; they are chosen for ensembles only where there are too few others.
        reads: the delays, the budget and the health of bookies that all reads share.
        near: states to `reads` how far the bookies are.
        short_copies: marks the ledgers of which writers have left bookies without confirmed entries.
        unlisted_bookies: bookies that answer reads and give no lists of entries.
    """

    host: Host
    metadata: ClusterMetadata
    settings: ClientSettings
    scope: TaskScope
    pool: ChannelPool
    failed_bookies: ExpiringBookies
    metrics: ClientMetrics
    placement: ClusterPlacement
    reads: HedgedReads
    near: NearBookies
    short_copies: ShortCopies
    access: BookieAccess = IN_CLEAR
    unlisted_bookies: ExpiringBookies = field(default_factory=lambda: ExpiringBookies(UNLISTED_S))

    def avoided_bookies(self) -> list[str]:
        """The bookies that are chosen for ensembles only where there are too few others: they failed a writer, or are in quarantine."""
        now = self.host.clock.monotonic()
        return list(dict.fromkeys([*self.failed_bookies.names(now), *self.reads.health.avoided(now)]))

    def new_pool(self) -> ChannelPool:
        """A pool of separate connections, for requests that fence (see `connection.bookie_channel`). The caller closes it."""
        return ChannelPool(self.host, self.metadata, self.settings, self.scope, self.access)
