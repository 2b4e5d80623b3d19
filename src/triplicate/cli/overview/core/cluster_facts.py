"""The facts about a cluster that an operator sees. `cluster_sources` collects them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from triplicate.ledger import DEFAULT_LOCATION, LedgerMetadata

Item = TypeVar("Item")

SERVED_ROLES = ("leader", "follower", "candidate", "")
"""Roles of sound copies. Nodes of earlier releases report none."""
UNSTATED_LOCATION = str(DEFAULT_LOCATION)
"""The network location of bookies for which none is stated."""


class BookieState(enum.StrEnum):
    """Where a bookie is registered."""

    WRITABLE = "writable"
    READ_ONLY = "read-only"
    UNREADABLE = "unreadable"
    """Registered, and the registration cannot be decoded: the bookie runs, and its address is unknown."""
    LOST = "lost"
    """Not registered, although the cluster has its cookie or ledgers that name it."""


@dataclass(frozen=True, slots=True)
class Listed(Generic[Item]):
    """The items that a source returned within its time."""

    items: tuple[Item, ...] = ()
    cut: str = ""
    """Why the list is not complete; empty if it is."""


@dataclass(frozen=True, slots=True)
class BookieFacts:
    """One bookie."""

    bookie_id: str
    state: BookieState
    has_cookie: bool = True
    address: str = ""
    """host:port; empty if it is not registered."""
    location: str = UNSTATED_LOCATION
    incarnation: int = 1
    requested: bool = False
    """Whether an operator has requested that it be read-only."""
    leaving: bool = False
    """Whether it is being decommissioned, or was while it runs on."""
    visited: bool = True
    """Whether every ledger was checked since its disks were replaced. If not, its older ledgers may lack copies."""
    unsure_below: int = 0
    """Ledgers with smaller ids may lack copies on it, because its disks were replaced."""
    total_bytes: int | None = None
    free_bytes: int | None = None
    silence: str = ""
    """Why a registered bookie did not report its disk space, or cannot be asked; empty if it did."""

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]


@dataclass(frozen=True, slots=True)
class LedgerCounts:
    """The ledgers of a cluster by the bookies that their metadata names."""

    total: int = 0
    open: int = 0
    """Ledgers that are not closed."""
    by_bookie: Mapping[str, int] = field(default_factory=dict)
    unreadable: tuple[int, ...] = ()
    """Ledgers whose metadata cannot be decoded."""
    cut: str = ""
    """Why not all ledgers are counted; empty if they are."""


class LedgerCensus:
    """Counts ledgers one by one, in the memory of the counts."""

    def __init__(self) -> None:
        self._total = 0
        self._open = 0
        self._by_bookie: dict[str, int] = {}
        self._unreadable: list[int] = []

    def add(self, ledger_id: int, metadata: LedgerMetadata | None) -> None:
        """Count one ledger; `metadata` is None if it cannot be decoded."""
        self._total += 1
        if metadata is None:
            self._unreadable.append(ledger_id)
            return
        self._open += not metadata.is_closed
        for bookie_id in dict.fromkeys(name for segment in metadata.segments for name in segment.ensemble):
            self._by_bookie[bookie_id] = self._by_bookie.get(bookie_id, 0) + 1

    def counts(self, cut: str = "") -> LedgerCounts:
        return LedgerCounts(self._total, self._open, dict(sorted(self._by_bookie.items())), tuple(self._unreadable), cut)


@dataclass(frozen=True, slots=True)
class CopyFacts:
    """The copy of a database or store on one node."""

    node_id: str
    role: str
    lag: int
    """Log records behind the most advanced copy."""
    reason: str = ""
    """Why the copy is not served; empty if it is."""


@dataclass(frozen=True, slots=True)
class KnownNode:
    """One database node that runs, or has run and was not removed."""

    name: str
    is_running: bool = True
    is_expected: bool = True
    """Whether it should run: it neither drains, nor was it a guest."""


@dataclass(frozen=True, slots=True)
class ReplicaFacts:
    """One database or key-value store."""

    name: str
    leader: str | None
    copies: tuple[CopyFacts, ...] = ()
    expected: int = 0
    """Expected number of copies that may lead; 0 if it is not known."""
    readers: tuple[str, ...] = ()
    """Nodes whose copies never lead."""
    missing_on: tuple[str, ...] = ()
    """Nodes that are to have a copy that may lead, and report none."""

    @property
    def missing(self) -> int:
        """How many of the expected copies cannot be used. While a copy moves, there may be one where none is expected any more."""
        served = sum(copy.role in SERVED_ROLES and copy.node_id not in self.readers for copy in self.copies)
        return max(0, self.expected - served)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """One log."""

    name: str
    writer: str | None
    """The owner that appends now; None if there is none."""
    segments: int
    open_ledger: int | None
    reduced: int = 0
    """Segments with fewer copies than the log's settings."""
    lost: int = 0
    """Segments whose ledger is lost for good."""
    missing: tuple[int, ...] = ()
    """Ledgers that the log lists and that are not in the metadata."""
    problem: str = ""
    """Why its list of segments cannot be read; empty if it can."""


@dataclass(frozen=True, slots=True)
class ProgressFacts:
    """The progress of a repair, as its worker has recorded it."""

    entries: int
    size_bytes: int
    expected_entries: int | None
    """How many entries will have been copied; None if that is not known."""
    entries_per_s: float
    bytes_per_s: float
    left_s: float | None
    """Time until the end at this rate, in seconds; None if it is not known."""
    age_s: float
    """Seconds since it was recorded."""


@dataclass(frozen=True, slots=True)
class MarkFacts:
    """One under-replicated ledger."""

    ledger_id: int
    missing: tuple[str, ...]
    """Bookies that lack copies."""
    since_ms: int | None
    """Milliseconds since the epoch; None if the mark has no time."""
    worker: str | None
    """The replication worker that has locked it; None if none has."""
    reason: str = ""
    """Why the last repair did not end well; empty if none has failed."""
    progress: ProgressFacts | None = None
    """None while no repair runs, in its first seconds, and of workers that record none: those of Apache's, and of earlier releases."""


@dataclass(frozen=True, slots=True)
class RecoveryFacts:
    """The cluster's auto-recovery."""

    enabled: bool = True
    auditor: str | None = None
    """The elected auditor; None if there is no candidate."""
    cut: str = ""
    """Why the two are not known; empty if they are."""


@dataclass(frozen=True, slots=True)
class FreezeFacts:
    """The freeze of ensemble changes."""

    text: str = ""
    """Until when, by whom and why ensembles are frozen; empty if they are not."""
    cut: str = ""
    """Why that is not known; empty if it is."""


@dataclass(frozen=True, slots=True)
class NodeAclFacts:
    """A sample of the nodes in ZooKeeper; no nodes if the store has no ACLs or this command's user closes none."""

    nodes: int = 0
    open: int = 0
    """Those that everyone may use."""
    example: str = ""
    cut: str = ""


@dataclass(frozen=True, slots=True)
class DoorCertificate:
    """The certificate that a server showed in a handshake, or one in a file of this command."""

    place: str
    """The server, or the setting and the file."""
    expires_s: float | None
    """Seconds since the epoch; None if it is not known."""
    failure: str = ""
    """Why it could not be verified; empty if it could."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """One look at a cluster. Each source was read by itself, so they may differ by the changes in between."""

    instance_id: str
    time_ms: int
    """Milliseconds since the epoch."""
    bookies: Listed[BookieFacts] = Listed()
    ledgers: LedgerCounts = LedgerCounts()
    nodes: Listed[KnownNode] = Listed()
    databases: Listed[ReplicaFacts] = Listed()
    logs: Listed[LogFacts] = Listed()
    marks: Listed[MarkFacts] = Listed()
    recovery: RecoveryFacts = RecoveryFacts()
    location_problems: tuple[str, ...] = ()
    """Network locations that could not be used, with the reason."""
    freeze: FreezeFacts = FreezeFacts()
    shared_machines: tuple[tuple[str, ...], ...] = ()
    """Hosts in registrations that are one machine by their addresses, in groups."""
    missing_domains: str = ""
    """Why the writable bookies are in too few fault domains for the client's settings; empty if they are not."""
    acls: NodeAclFacts = NodeAclFacts()
    certificates: Listed[DoorCertificate] = Listed()
    """Of every registered server with TLS; none without an authority to verify them."""
    stores: Listed[ReplicaFacts] = Listed()
    folder: str = "FOLDER"
    """Of `triplicate up` with this cluster, if it is known."""

    @property
    def runs(self) -> bool:
        """Whether a bookie or a node is registered, or nobody could find out."""
        return self.has_bookie or bool(self.nodes.cut) or any(one.is_running for one in self.nodes.items)

    @property
    def has_bookie(self) -> bool:
        """Whether a bookie is registered, or nobody could find out."""
        return bool(self.bookies.cut) or any(one.state is not BookieState.LOST for one in self.bookies.items)

    @property
    def absent_nodes(self) -> tuple[str, ...]:
        """Nodes that should run, and do not."""
        return tuple(one.name for one in self.nodes.items if one.is_expected and not one.is_running)


@dataclass(frozen=True, slots=True)
class Registrations:
    """The metadata about the bookies of a cluster."""

    writable: Mapping[str, BookieFacts]
    read_only: Mapping[str, BookieFacts]
    cookies: tuple[str, ...]
    requested: tuple[str, ...] = ()
    """Bookies that operators have requested to be read-only."""
    location_problems: tuple[str, ...] = ()
    """Network locations that could not be used, with the reason."""
    leaving: tuple[str, ...] = ()
    """Those of `requested` that are being decommissioned."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Registered bookies whose registration cannot be decoded, with the reason."""


def all_bookies(registrations: Registrations, ledgers: LedgerCounts) -> tuple[BookieFacts, ...]:
    """Every bookie that is registered, has a cookie, or is named by a ledger; by location, host and id.

    A bookie in both lists is becoming read-only and counts as such.
    """
    unreadable = {name: BookieFacts(name, BookieState.UNREADABLE, silence=reason) for name, reason in registrations.unreadable.items()}
    registered = {**unreadable, **registrations.writable, **registrations.read_only}
    cookies = frozenset(registrations.cookies)
    found: list[BookieFacts] = []
    for bookie_id in {*registered, *cookies, *ledgers.by_bookie}:
        known = registered.get(bookie_id) or BookieFacts(bookie_id, BookieState.LOST, bookie_id in cookies)
        requested, leaving = bookie_id in registrations.requested, bookie_id in registrations.leaving
        found.append(replace(known, has_cookie=bookie_id in cookies, requested=requested, leaving=leaving))
    return tuple(sorted(found, key=lambda one: (one.location, one.host, one.bookie_id)))
