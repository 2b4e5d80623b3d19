"""Where this client is, how far from it the bookies are, and which of them are away.

The distances are read when the first ledger is opened, and then in the background while there are reads. With ``network_location`` empty,
no bookie is preferred. Only the names of the registered bookies are read then, and not before the client is half a minute old.

Source: BookKeeper `TopologyAwareEnsemblePlacementPolicy.createDummyLocalBookieNode`.
"""

from __future__ import annotations

from triplicate.client.cluster_placement import CLIENT, ClusterPlacement
from triplicate.errors import MetadataError
from triplicate.ledger import DEFAULT_LOCATION, Distance, NetworkLocation, ReadOrder, distance_between, parse_location
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, TaskScope, timeout_at

DISTANCES_AGE_S = 30.0
"""How long the registrations and locations of bookies are used for the order of reads, in seconds."""
FIRST_LIMIT_S = 2.0
"""How long the first ledger waits for the distances before it is opened without them, in seconds."""
RETRY_S = 5.0
"""Pause after a failed reading, in seconds."""
READ_LIMIT_S = 20.0
"""How long one reading of the registrations may take in the background, in seconds."""


class NearBookies:
    """See the module's text.

    Args:
        scope: the client's.
        wanted: the client's location, or the name of its machine in the table of locations, for the script or in registrations; empty
            for no preference.
        order: gets the distances.

    Raises:
        ArgumentError: `wanted` begins with a slash and is no location.
    """

    def __init__(
        self, host: Host, metadata: ClusterMetadata, scope: TaskScope, placement: ClusterPlacement, wanted: str, order: ReadOrder
    ) -> None:
        self.own: NetworkLocation | None = parse_location(wanted) if wanted.startswith("/") else None
        """Where this client is, as far as it is known."""
        self._host = host
        self._metadata = metadata
        self._bookies = metadata.bookies
        self._scope = scope
        self._placement = placement
        self._machine = "" if self.own is not None else wanted
        self._order = order
        self._wanted = wanted
        self._due = 0.0 if wanted else host.clock.monotonic() + DISTANCES_AGE_S
        self._is_first = bool(wanted)

    async def prepare(self) -> None:
        """Before the first ledger is read: wait for the distances, for a short time."""
        if self._is_first and not self._scope.closing:
            self._is_first = False
            self._due = self._host.clock.monotonic() + DISTANCES_AGE_S
            await self._read(FIRST_LIMIT_S)

    def refresh(self) -> None:
        """Read the registrations in the background, if the last reading is old. Returns at once."""
        now = self._host.clock.monotonic()
        if now >= self._due and not self._scope.closing:
            self._due = now + DISTANCES_AGE_S
            read = self._read(READ_LIMIT_S) if self._wanted else self._read_names(READ_LIMIT_S)
            self._scope.spawn(read, name="distances of bookies")

    async def _read_names(self, limit_s: float) -> None:
        """Find the bookies that are away: they have a cookie or were registered before, and are not registered now."""
        try:
            async with timeout_at(self._host.clock.monotonic() + limit_s):
                known = [*self._bookies.known(), *await self._metadata.cookies.bookie_ids()]
                registered = await self._bookies.registered_ids()
        except (MetadataError, TimeoutError) as error:
            self._unknown(error, limit_s)
            return
        self._order.miss(frozenset(known) - registered if registered else frozenset())

    async def _read(self, limit_s: float) -> None:
        try:
            async with timeout_at(self._host.clock.monotonic() + limit_s):
                # The writable list is read twice: a bookie that moves between the lists can be missed in both.
                before = await self._bookies.writable()
                readonly = await self._bookies.readonly()
                writable = await self._bookies.writable()
                infos = {**before, **readonly, **writable}
                found = await self._placement.locate(infos, client_machine=self._machine)
        except (MetadataError, TimeoutError) as error:
            self._unknown(error, limit_s)
            return
        if self._machine:
            self.own = found.sites[CLIENT].location
        if self.own is None or self.own == DEFAULT_LOCATION:
            self._order.locate({})
            await self._read_names(limit_s)
            return
        distances: dict[str, Distance] = {bookie_id: distance_between(self.own, found.sites[bookie_id].location) for bookie_id in infos}
        self._order.locate(distances, tuple(sorted(name for name in readonly if name not in writable)))

    def _unknown(self, error: Exception, limit_s: float) -> None:
        """The last readings stay in use."""
        self._due = self._host.clock.monotonic() + RETRY_S
        self._host.trace("client.distances_unknown", error=str(error) or f"no answer within {limit_s:g} s")
