"""The rules of placement for the ensembles of one client: its policy, and the sites of the cluster's bookies.

Under the uniform policy the machines in the registrations are enough, and nothing else is read, unless all of them are one machine: then
bookies that are away may have been on another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from triplicate.client.bookie_space import FreeDisk
from triplicate.client.client_metrics import ClientMetrics
from triplicate.client.connection.pool import ChannelPool
from triplicate.client.location_script import LocationScript
from triplicate.config import ClientSettings
from triplicate.errors import FormatError, MetadataError, NotEnoughBookies
from triplicate.ledger import (
    AckDomains,
    Adherence,
    BookieSite,
    FaultDomain,
    LedgerMetadata,
    PlacementPolicy,
    PlacementRules,
    PlacementVerdict,
    RegisteredBookie,
    SiteTable,
    ensemble_verdict,
    ledger_verdict,
    resolve_sites,
)
from triplicate.metadata import BookieServiceInfo, ClusterMetadata, LocationTable, bookie_service, machine_of, registered_bookie
from triplicate.runtime import Host, TaskScope, timeout_at

TABLE_AGE_S = 10.0
"""How long the table of network locations, and the machines of bookies that are away, are used before they are read again, in seconds."""
TABLE_LIMIT_S = 2.0
"""How long one read of the table may take, in seconds. After it the last table is used."""
CLIENT = "this client"
"""The name of the client's own machine among the sites; no bookie has it."""
NOTHING_KNOWN: Mapping[str, int] = {}
ACK_DOMAINS = {"uniform": FaultDomain.MACHINE, "rack-aware": FaultDomain.RACK, "region-aware": FaultDomain.REGION}
"""The domains that acknowledgements must span, by policy."""
WEIGHT_MULTIPLE = 3.0
"""Free disk counts up to this multiple of the median. Source: BookKeeper `bookieMaxWeightMultipleForWeightBasedPlacement`."""


def policy_of(settings: ClientSettings) -> PlacementPolicy:
    """The policy that the settings name."""
    weight = WEIGHT_MULTIPLE if settings.placement_disk_weight else 0.0
    kind, number = ACK_DOMAINS[settings.placement_policy], settings.placement_min_ack_domains
    racks = settings.placement_min_racks if kind is not FaultDomain.MACHINE else 1
    regions = settings.placement_min_regions if kind is FaultDomain.REGION else 1
    # Copies that are made again should span the domains of the acknowledgements, too.
    racks = max(racks, number) if kind is FaultDomain.RACK else racks
    regions = max(regions, number) if kind is FaultDomain.REGION else regions
    return PlacementPolicy(racks, regions, settings.placement_enforced, weight, kind, number)


class ClusterPlacement:
    """See the module's text.

    Args:
        pool, scope: the client's, for questions about free disk.
    """

    def __init__(
        self, host: Host, metadata: ClusterMetadata, settings: ClientSettings, pool: ChannelPool, scope: TaskScope, metrics: ClientMetrics
    ) -> None:
        self.policy = policy_of(settings)
        self._host = host
        self._metadata = metadata
        self._chosen = {adherence: metrics.ensembles_chosen.labels(adherence=adherence.name.lower()) for adherence in Adherence}
        self._script = LocationScript(host, settings.placement_script, settings.placement_script_timeout_s)
        self._free_disk = FreeDisk(host, pool, scope, settings.placement_disk_interval_s)
        self._table = LocationTable()
        self._table_due = 0.0
        self._table_failure = ""
        """Why the table was never read; empty if it was. A table that was read before stays in use."""
        self._has_table = False
        self._elsewhere: dict[str, BookieServiceInfo] = {}
        """A bookie that is away, on another machine than those that are known; empty if there is none."""
        self._elsewhere_due = 0.0
        self._problems: tuple[str, ...] = ()
        """As last reported."""

    @property
    def problems(self) -> tuple[str, ...]:
        """The locations that could not be used when bookies were last located, with the reasons; none if the policy uses no locations."""
        return self._problems if self.policy.uses_locations else ()

    async def rules(
        self, write_quorum: int, writable: Mapping[str, BookieServiceInfo], ensemble: Sequence[str] = (), *, for_writer: bool = False
    ) -> PlacementRules:
        """The rules for an ensemble of a ledger.

        Args:
            writable: the bookies that accept writes.
            ensemble: bookies that the ledger has already. The machines of those that never registered while this client ran are read. If
                all known bookies are on one machine, it is read whether others were on another one.
            for_writer: whether new entries will be acknowledged there, so that `placement_min_ack_domains` holds.
        """
        known = {**self._metadata.bookies.known(), **writable}
        known |= await self._recorded(dict.fromkeys(bookie_id for bookie_id in ensemble if bookie_id not in known))
        machines = {machine_of(bookie_id, info) for bookie_id, info in known.items()}
        if write_quorum > 1 and len(machines) == 1:
            known |= await self._away_elsewhere(known, *machines)
        free_bytes = self._known_free_disk(writable)
        # Machines that are away still exist: copies do not share the one that is left.
        sites = {
            bookie_id: BookieSite(machine_of(bookie_id, info), free_bytes=free_bytes.get(bookie_id)) for bookie_id, info in known.items()
        }
        if self.policy.uses_locations:
            infos = {bookie_id: known[bookie_id] for bookie_id in (*ensemble, *writable) if bookie_id in known}
            sites.update((await self.locate(infos, free_bytes)).sites)
        return PlacementRules(write_quorum, sites, self.policy if for_writer else self.policy.for_copies)

    async def locate(
        self, infos: Mapping[str, BookieServiceInfo], free_bytes: Mapping[str, int] = NOTHING_KNOWN, *, client_machine: str = ""
    ) -> SiteTable:
        """The sites of these bookies by all sources. Problems with their locations are traced when they change.

        Args:
            client_machine: the machine of this client, whose site is then added as `CLIENT`.
        """
        bookies = [registered_bookie(bookie_id, info) for bookie_id, info in infos.items()]
        if client_machine:
            bookies.append(RegisteredBookie(CLIENT, client_machine))
        await self._read_table()
        await self._script.resolve(bookie.host for bookie in bookies)
        found = resolve_sites(bookies, self._table.locations, self._script.locations, free_bytes)
        failures = tuple(filter(None, (self._table_failure, self._script.failure)))
        if failures:
            found = replace(found, problems=(*found.problems, *failures))
        if found.problems != self._problems:
            self._problems = found.problems
            for problem in found.problems:
                self._host.trace("client.location_not_used", problem=problem)
        return found

    async def writer_rules(self, metadata: LedgerMetadata) -> PlacementRules | None:
        """The rules for further entries of a ledger's last ensemble; None where they may be acknowledged in any domains."""
        if min(self.policy.min_ack_domains, metadata.write_quorum) <= 1:
            return None
        ensemble = metadata.last_segment.ensemble
        return await self.rules(metadata.write_quorum, await self._metadata.bookies.writable(), ensemble, for_writer=True)

    async def ack_domains(self, ledger_id: int, metadata: LedgerMetadata) -> AckDomains | None:
        """The domains in which the entries of a ledger's last ensemble must be acknowledged; None: in any.

        Raises:
            NotEnoughBookies: they are too few.
        """
        rules = await self.writer_rules(metadata)
        try:
            return None if rules is None else rules.spanned_domains(metadata.last_segment.ensemble)
        except NotEnoughBookies as error:
            refused = NotEnoughBookies(f"ledger {ledger_id} cannot be written: {error}; create a new ledger")
            refused.ledger_id = ledger_id
            raise refused from error

    async def verdict(self, metadata: LedgerMetadata) -> PlacementVerdict:
        """How well the ensembles of a ledger keep the rules, by the present sites of all registered bookies."""
        bookies = self._metadata.bookies
        infos = {**await bookies.readonly(), **await bookies.writable()}
        ensembles = [bookie_id for segment in metadata.segments for bookie_id in segment.ensemble]
        return ledger_verdict(metadata, await self.rules(metadata.write_quorum, infos, ensembles))

    def report(self, ledger_id: int, ensemble: Sequence[str], rules: PlacementRules) -> None:
        """Count an ensemble that was chosen, and trace it if it keeps the rules only in part."""
        verdict = ensemble_verdict(ensemble, rules)
        adherence = verdict.adherence
        self._chosen[adherence].inc()
        if adherence is Adherence.FAILED or (adherence is Adherence.SOFT and self.policy.uses_locations):
            names, why = ",".join(ensemble), "; ".join(verdict.reasons)
            self._host.trace("client.placement_incomplete", ledger=ledger_id, adherence=adherence.name.lower(), ensemble=names, why=why)

    def _known_free_disk(self, writable: Mapping[str, BookieServiceInfo]) -> Mapping[str, int]:
        if self.policy.weight_multiple <= 0:
            return NOTHING_KNOWN
        self._free_disk.refresh(writable)
        return self._free_disk.free_bytes

    async def _away_elsewhere(self, known: Mapping[str, BookieServiceInfo], machine: str) -> Mapping[str, BookieServiceInfo]:
        """A bookie of the cluster that is away and was on another machine, if there is one: then copies do not share this machine."""
        now = self._host.clock.monotonic()
        if now < self._elsewhere_due:
            return self._elsewhere
        self._elsewhere_due = now + TABLE_AGE_S
        found: dict[str, BookieServiceInfo] = {}
        try:
            async with timeout_at(now + TABLE_LIMIT_S):
                for bookie_id in await self._metadata.cookies.bookie_ids():
                    info = await self._record_of(bookie_id) if bookie_id not in known else None
                    if info is not None and machine_of(bookie_id, info) != machine:
                        found[bookie_id] = info
                        break
        except (MetadataError, TimeoutError) as error:
            self._unknown_machine("", error)
            return self._elsewhere
        self._elsewhere = found
        return found

    async def _recorded(self, bookie_ids: Iterable[str]) -> dict[str, BookieServiceInfo]:
        """The machines of bookies that are away, as far as they are recorded. Without a record, an id of the form host:port names one."""
        found: dict[str, BookieServiceInfo] = {}
        for bookie_id in bookie_ids:
            info = await self._record_of(bookie_id)
            machine, separator, port = bookie_id.rpartition(":")
            if info is not None:
                found[bookie_id] = info
            elif separator and port.isdecimal():
                found[bookie_id] = bookie_service(machine, 0)
        return found

    async def _record_of(self, bookie_id: str) -> BookieServiceInfo | None:
        """The recorded machine of a bookie; None if there is none, or it cannot be read."""
        try:
            async with timeout_at(self._host.clock.monotonic() + TABLE_LIMIT_S):
                return await self._metadata.machines.get(bookie_id)
        except (MetadataError, FormatError, TimeoutError) as error:
            self._unknown_machine(bookie_id, error)
            return None

    def _unknown_machine(self, bookie_id: str, error: Exception) -> None:
        reason = str(error) or f"no answer within {TABLE_LIMIT_S:g} s"
        self._host.trace("client.machine_unknown", bookie=bookie_id, error=reason)

    async def _read_table(self) -> None:
        now = self._host.clock.monotonic()
        if now < self._table_due:
            return
        self._table_due = now + TABLE_AGE_S
        try:
            async with timeout_at(now + TABLE_LIMIT_S):
                self._table = await self._metadata.network_locations.read()
        except (MetadataError, TimeoutError) as error:
            reason = str(error) or f"no answer within {TABLE_LIMIT_S:g} s"
            self._host.trace("client.locations_unknown", error=reason)
            if not self._has_table:
                self._table_failure = f"the table of racks could not be read: {reason}"
        else:
            self._has_table, self._table_failure = True, ""
