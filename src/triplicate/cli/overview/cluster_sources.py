"""Collects the facts about a cluster. Each source is read by itself and within its own time."""

from __future__ import annotations

from array import array
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from triplicate.autorecovery import walk_ledgers
from triplicate.cli.overview.core.cluster_facts import (
    BookieFacts,
    BookieState,
    ClusterFacts,
    CopyFacts,
    DoorCertificate,
    FreezeFacts,
    KnownNode,
    LedgerCensus,
    LedgerCounts,
    Listed,
    LogFacts,
    MarkFacts,
    NodeAclFacts,
    ProgressFacts,
    RecoveryFacts,
    Registrations,
    ReplicaFacts,
    all_bookies,
)
from triplicate.cli.overview.core.domain_shortage import missing_domains
from triplicate.cli.overview.core.machine_names import shared_machines
from triplicate.cli.overview.door_certificates import certificate_of_bookie, certificate_of_node
from triplicate.client import Client
from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import CorruptionError, FormatError, NoSuchLedger, NoSuchLog, NoSuchStore, SqlError, TriplicateError
from triplicate.ledger import BookieSite
from triplicate.log import Logs, SegmentState
from triplicate.metadata import AclReport, BookieServiceInfo, NodeAcls
from triplicate.replica import Candidate, ListedNode, Placement, expected_copies, listed_nodes
from triplicate.runtime import TaskScope, map_bounded, timeout_at
from triplicate.security import TlsIdentity, expiring_files

Item = TypeVar("Item")
Value = TypeVar("Value")

BOOKIES_AT_A_TIME = 32
"""Bookies whose disk space is requested at the same time."""
LEDGER_IDS_END = 2**63
MISSING_EXAMINED = 100
"""Maximum number of ledgers of a log that are searched for because the walk has not found them."""

AddressesOf = Callable[[str], Awaitable[Sequence[str]]]
"""The addresses of a host name; none if it has none."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Value]):
    """The value of a source, or None and the reason why it returned none."""

    value: Value | None
    cut: str = ""


class ClusterSources:
    """The sources of one cluster's facts.

    Args:
        limit_s: longest time for each source, in seconds. A source that takes longer is shown as incomplete.
        resolve: gives the addresses of hosts; None: no machine is recognized under several names.
        tls: verifies the certificates of servers; None: they are not looked at.
        folder: of `triplicate up` with this cluster, if it is known.
    """

    def __init__(
        self,
        client: Client,
        log_settings: LogClientSettings,
        limit_s: float,
        resolve: AddressesOf | None = None,
        tls: TlsIdentity | None = None,
        folder: str = "FOLDER",
    ) -> None:
        self._folder = folder
        self._tls = tls
        self._client = client
        self._metadata = client.metadata
        self._logs = Logs(client, log_settings)
        self._clock = client.host.clock
        self._limit_s = limit_s
        self._resolve = resolve
        self._needed: dict[str, frozenset[int]] = {}
        """The ledgers that each log was found to need."""
        self._walked: array[int] | None = None
        """All ledgers of the last walk; None if it did not reach the last one."""

    async def collect(self) -> ClusterFacts:
        """All facts. The sources are read at the same time."""
        time_ms = self._clock.wall_us() // 1000
        async with TaskScope("cluster status") as scope:
            bookies = scope.spawn(self.registrations(), name="bookies")
            ledgers = scope.spawn(self.ledgers(), name="ledgers")
            nodes = scope.spawn(self._listed(self._nodes()), name="nodes")
            databases = scope.spawn(self._listed(self._databases()), name="databases")
            stores = scope.spawn(self._listed(self._stores()), name="stores")
            logs = scope.spawn(self.logs(), name="logs")
            marks = scope.spawn(self.marks(), name="marks")
            recovery = scope.spawn(self._recovery(), name="auto-recovery")
            freeze = scope.spawn(self._freeze(), name="freeze")
            acls = scope.spawn(self._acls(), name="acls")
        registered = next(iter(bookies.result().items), None)
        found_logs = await self._with_missing(logs.result())
        found = await self.bookies(bookies.result(), ledgers.result())
        return ClusterFacts(
            self._metadata.instance_id,
            time_ms,
            found,
            ledgers.result(),
            nodes.result(),
            databases.result(),
            found_logs,
            marks.result(),
            recovery.result(),
            registered.location_problems if registered is not None else (),
            freeze.result(),
            await self.shared_machines(found.items),
            "" if found.cut else missing_domains(found.items, self._client.placement.policy),
            acls.result(),
            await self.certificates(found.items),
            stores.result(),
            self._folder,
        )

    # Certificates.

    async def certificates(self, bookies: Sequence[BookieFacts]) -> Listed[DoorCertificate]:
        """The certificates of these bookies, of the registered nodes, and of the files of this command."""
        tls, host = self._tls, self._client.host
        if tls is None:
            return Listed()
        own = [DoorCertificate(f"{each.setting} {each.path}", each.expires_s()) for each in expiring_files(tls.settings)]
        nodes = await self._bounded(self._node_addresses)
        doors = [partial(certificate_of_bookie, host, tls, one.bookie_id, one.address) for one in bookies if one.address]
        doors += [partial(certificate_of_node, host, tls, *one) for one in nodes.value or ()]

        async def ask(door: Callable[[], Awaitable[DoorCertificate | None]]) -> DoorCertificate | None:
            return (await self._bounded(door)).value

        found = await map_bounded(ask, doors, most=BOOKIES_AT_A_TIME, name="certificates of servers")
        return Listed((*own, *(one for one in found if one is not None)), nodes.cut)

    async def _node_addresses(self) -> list[tuple[str, str]]:
        # As in `_databases`: only this source needs the database layer.
        from triplicate.sql import registered_nodes

        return [(one.node_id, one.address) for one in await registered_nodes(self._client) if one.has_tls]

    # Bookies.

    async def registrations(self) -> Listed[Registrations]:
        """Registrations, cookies and incarnations; an empty list if they cannot be read in time."""

        async def read() -> Registrations:
            bookies = self._metadata.bookies
            cookies = await self._metadata.cookies.bookie_ids()
            found = await bookies.registered()
            table = await self._client.placement.locate(found.infos)

            def registered(infos: Mapping[str, BookieServiceInfo], state: BookieState) -> dict[str, BookieFacts]:
                return {name: _registered(name, info, state, table.sites[name]) for name, info in infos.items()}

            requests = self._metadata.read_only_requests
            requested, leaving = await requests.bookie_ids(), await requests.leaving()
            return Registrations(
                registered(found.writable, BookieState.WRITABLE),
                registered(found.readonly, BookieState.READ_ONLY),
                tuple(cookies),
                tuple(requested),
                table.problems,
                tuple(leaving),
                found.unreadable,
            )

        found = await self._bounded(read)
        return Listed(() if found.value is None else (found.value,), found.cut)

    async def bookies(self, registrations: Listed[Registrations], ledgers: LedgerCounts) -> Listed[BookieFacts]:
        """Every bookie, with its incarnation and its disk space."""
        if not registrations.items:
            return Listed((), registrations.cut)
        known = all_bookies(registrations.items[0], ledgers)
        found = await map_bounded(self._with_space, known, most=BOOKIES_AT_A_TIME, name="disk space of bookies")
        return Listed(tuple(found))

    async def _with_space(self, bookie: BookieFacts) -> BookieFacts:
        incarnation = await self._bounded(lambda: self._metadata.incarnations.get(bookie.bookie_id))
        found = incarnation.value
        if found is None:
            # Nothing is known about replaced disks.
            return replace(bookie, visited=False, unsure_below=LEDGER_IDS_END, silence=incarnation.cut)
        unsure_below = 0 if found.visited else found.ledger_id_bound
        bookie = replace(bookie, incarnation=found.number, visited=found.visited, unsure_below=unsure_below)
        if bookie.state in (BookieState.LOST, BookieState.UNREADABLE):
            return bookie
        space = await self._bounded(lambda: self._client.bookie_info(bookie.bookie_id))
        if space.value is None:
            return replace(bookie, silence=space.cut)
        return replace(bookie, total_bytes=space.value.total_bytes, free_bytes=space.value.free_bytes)

    async def shared_machines(self, bookies: Sequence[BookieFacts]) -> tuple[tuple[str, ...], ...]:
        """The hosts of these bookies that are one machine, in groups. A host that is not resolved in time is left out."""
        resolve = self._resolve
        if resolve is None:
            return ()

        async def addresses(host: str) -> Sequence[str]:
            return (await self._bounded(lambda: resolve(host))).value or ()

        hosts = sorted({one.host for one in bookies if one.host})
        found = await map_bounded(addresses, hosts, most=BOOKIES_AT_A_TIME, name="addresses of machines")
        return shared_machines(dict(zip(hosts, found, strict=True)))

    # Ledgers.

    async def ledgers(self) -> LedgerCounts:
        """The counts of one walk over all ledgers, or over those that it reaches in its time."""
        census = LedgerCensus()

        async def walk() -> None:
            async with aclosing(walk_ledgers(self._client)) as ledgers:
                async for ledger in ledgers:
                    census.add(ledger.ledger_id, ledger.metadata)
                    walked.append(ledger.ledger_id)

        walked = array("q")
        answer = await self._bounded(walk)
        self._walked = None if answer.cut else walked
        return census.counts(answer.cut)

    # Databases and logs.

    async def _nodes(self) -> AsyncGenerator[KnownNode]:
        for one in await listed_nodes(self._client):
            yield KnownNode(one.name, one.is_running, one.is_expected)

    async def _databases(self) -> AsyncGenerator[ReplicaFacts]:
        # The database layer is half of the imports of this command, and only this source needs it.
        from triplicate.sql import database_info, database_names

        try:
            nodes = await listed_nodes(self._client)
        except FormatError:
            nodes = []  # The source of the nodes says so.
        for name in await database_names(self._client):
            try:
                info = await database_info(self._client, name)
            except SqlError:
                continue  # Dropped in the meantime.
            yield _replica(name, info.leader, info.nodes, info.placement, nodes)

    async def _stores(self) -> AsyncGenerator[ReplicaFacts]:
        from triplicate.kv import store_info, store_names

        for name in await store_names(self._client):
            try:
                info = await store_info(self._client, name)
            except NoSuchStore:
                continue  # Dropped in the meantime.
            if not info.is_dropping:
                # Not every node hosts stores, and its registration does not have that.
                yield ReplicaFacts(name, info.leader, _copies(info.nodes))

    async def logs(self) -> Listed[LogFacts]:
        """All logs, or those that could be read in time."""
        return await self._listed(self._log_facts())

    async def _log_facts(self) -> AsyncGenerator[LogFacts]:
        for name in await self._logs.names():
            try:
                head = await self._logs.head(name)
                owner = await self._logs.owner(name)
                segments = await self._logs.segments(name)
                self._needed[name] = frozenset(await self._logs.ledger_uses(name))
            except NoSuchLog:
                continue  # Deleted in the meantime.
            except (FormatError, CorruptionError) as error:
                yield LogFacts(name, None, 0, None, problem=_reason(error))
                continue
            reduced = sum(one.reduced is not None for one in segments)
            lost = sum(one.state is SegmentState.LOST for one in segments)
            ledger_id = head.open.ledger_id if head.open is not None else None
            yield LogFacts(name, owner.name if owner is not None else None, len(segments), ledger_id, reduced, lost)

    async def _with_missing(self, logs: Listed[LogFacts]) -> Listed[LogFacts]:
        """The same logs with those of their ledgers that are not there. Concurrent changes are no reason to report one."""
        suspects: dict[str, frozenset[int]] = {}
        if self._walked is not None:
            unknown = frozenset[int]().union(*self._needed.values()).difference(self._walked)
            suspects = {name: needed & unknown for name, needed in self._needed.items() if needed & unknown}

        async def missing(name: str) -> tuple[int, ...]:
            # Read again: the ledger may have been created, or taken from the list, since.
            await self._logs.store.sync()
            needed = suspects[name] & (await self._logs.ledger_uses(name)).keys()
            return tuple([ledger_id for ledger_id in sorted(needed)[:MISSING_EXAMINED] if not await self._exists(ledger_id)])

        found: list[LogFacts] = []
        for log in logs.items:
            if log.name in suspects:
                log = replace(log, missing=(await self._bounded(partial(missing, log.name))).value or ())
            found.append(log)
        return Listed(tuple(found), logs.cut)

    async def _exists(self, ledger_id: int) -> bool:
        try:
            await self._metadata.ledgers.get(ledger_id)
        except NoSuchLedger:
            return False
        except FormatError:
            return True
        return True

    # Auto-recovery.

    async def marks(self) -> Listed[MarkFacts]:
        """All under-replicated ledgers, or those that could be read in time."""
        return await self._listed(self._marks())

    async def _marks(self) -> AsyncGenerator[MarkFacts]:
        async for mark in self._metadata.under_replication.marks():
            try:
                worker = await self._metadata.under_replication.worker_of(mark.ledger_id)
            except FormatError:
                worker = ""
            try:
                note = await self._metadata.repair_notes.get(mark.ledger_id)
                reason = "" if note is None else note.reason
            except FormatError as error:
                reason = str(error)
            progress = await progress_of(self._client, mark.ledger_id) if worker is not None else None
            yield MarkFacts(mark.ledger_id, mark.missing, mark.ctime_ms, worker, reason, progress)

    async def _recovery(self) -> RecoveryFacts:
        async def read() -> RecoveryFacts:
            return RecoveryFacts(await self._metadata.under_replication.is_enabled(), await self._metadata.auditor.current())

        found = await self._bounded(read)
        return found.value if found.value is not None else RecoveryFacts(cut=found.cut)

    async def _acls(self) -> NodeAclFacts:
        async def read() -> AclReport | None:
            acls = await NodeAcls.of(self._metadata, self._client.host)
            return await acls.sample() if acls is not None else None

        found = await self._bounded(read)
        if found.value is None:
            return NodeAclFacts(cut=found.cut)
        return NodeAclFacts(found.value.nodes, found.value.open, found.value.example_open)

    async def _freeze(self) -> FreezeFacts:
        found = await self._bounded(self._metadata.ensemble_freezes.read)
        return FreezeFacts(found.value.text if found.value is not None else "", found.cut)

    # Bounds.

    async def _listed(self, items: AsyncGenerator[Item]) -> Listed[Item]:
        found: list[Item] = []

        async def read() -> None:
            async with aclosing(items):
                async for item in items:
                    found.extend((item,))  # One by one: a timeout leaves those that arrived.

        answer = await self._bounded(read)
        return Listed(tuple(found), answer.cut)

    async def _bounded(self, read: Callable[[], Awaitable[Value]]) -> Answer[Value]:
        try:
            async with timeout_at(self._clock.monotonic() + self._limit_s):
                return Answer(await read())
        except TimeoutError:
            return Answer(None, f"no answer within {self._limit_s:g} s")
        except (TriplicateError, OSError) as error:
            return Answer(None, _reason(error))


async def progress_of(client: Client, ledger_id: int) -> ProgressFacts | None:
    """The progress of a ledger's repair; None if its worker has recorded none that can be decoded. Raises MetadataError."""
    try:
        found = await client.metadata.repair_notes.progress.get(ledger_id)
    except FormatError:
        return None  # Of a newer release: the lock says that it runs.
    if found is None:
        return None
    age_s = max(0.0, client.host.clock.wall_us() / 1e6 - found.time_ms / 1e3)
    rates = (found.entries_per_s, found.bytes_per_s, found.left_s)
    return ProgressFacts(found.entries, found.size_bytes, found.expected_entries, *rates, age_s)


def _replica(
    name: str, leader: str | None, present: Sequence[Candidate], placement: Placement, nodes: Sequence[ListedNode]
) -> ReplicaFacts:
    leading = expected_copies(placement, nodes)
    expected = max(len(leading), placement.copies or 0) if nodes else placement.copies or 0
    missing = sorted(leading.difference(one.node_id for one in present))
    return ReplicaFacts(name, leader, _copies(present), expected, placement.readers, tuple(missing))


def _copies(present: Sequence[Candidate]) -> tuple[CopyFacts, ...]:
    most = max((one.position for one in present), default=0)
    return tuple(CopyFacts(one.node_id, one.role, most - one.position, one.reason) for one in present)


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _registered(bookie_id: str, info: BookieServiceInfo, state: BookieState, site: BookieSite) -> BookieFacts:
    address = info.rpc_address
    return BookieFacts(bookie_id, state, address="" if address is None else "{}:{}".format(*address), location=str(site.location))
