"""The state that the handles of one client share: host, metadata, settings, connections, and the bookies to avoid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from triplicate.client.client_metrics import ClientMetrics
from triplicate.client.connection.authentication import Authenticator
from triplicate.client.connection.pool import ChannelPool
from triplicate.config import ClientSettings
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, TaskScope

SLOW_S = 10.0
"""How long a bookie that was slow to answer a read is read from last, in seconds."""


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
        slow_bookies: bookies that left a read, or a fence, unanswered for longer than another one; they are read from last.
    """

    host: Host
    metadata: ClusterMetadata
    settings: ClientSettings
    scope: TaskScope
    pool: ChannelPool
    failed_bookies: ExpiringBookies
    metrics: ClientMetrics
    authenticator: Authenticator | None = None
    slow_bookies: ExpiringBookies = field(default_factory=lambda: ExpiringBookies(SLOW_S))

    @property
    def hedge_s(self) -> float:
        """Seconds without an answer from a replica before the next one is read as well; infinite without hedging."""
        return self.settings.hedge_read_s or float("inf")

    def slow_last(self, bookie_ids: Sequence[str]) -> list[str]:
        """The bookies in the order given, with the slow ones last."""
        slow = self.slow_bookies.names(self.host.clock.monotonic())
        return sorted(bookie_ids, key=slow.__contains__) if slow else list(bookie_ids)

    def new_pool(self) -> ChannelPool:
        """A pool of separate connections, for requests that fence (see `connection.bookie_channel`). The caller closes it."""
        return ChannelPool(self.host, self.metadata, self.settings, self.scope, self.authenticator)
