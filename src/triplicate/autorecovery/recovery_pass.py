"""One pass of auto-recovery by hand: finds the ledgers that name lost bookies, marks them, and repairs every marked ledger.

A ledger that is not repaired stays marked, so that a later pass or another worker repairs it. A pass that is interrupted can be started
again. It does not regard whether auto-recovery is disabled in the cluster, since it is started by hand.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from triplicate.autorecovery.core.disk_room import DiskRoom
from triplicate.autorecovery.core.fragments import awaits_recovery, lacking_fragments
from triplicate.autorecovery.free_disk import room_on
from triplicate.autorecovery.repair_tools import HasLivingWriter, RepairOutcome, no_known_writers
from triplicate.autorecovery.worker import LedgerRepair, ReplicationWorker, unrepaired
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.errors import ArgumentError, FormatError, NoSuchLedger
from triplicate.ledger import LedgerMetadata
from triplicate.metadata import BookieServiceInfo, RegisteredBookies
from triplicate.runtime import map_bounded, sleep_until

DEFAULT_SETTINGS = AutorecoverySettings()
WAITING = (RepairOutcome.GRACE_PERIOD, RepairOutcome.MARKED_AGAIN)
"""Outcomes after which the ledger is repaired once more in the same pass."""
ROUNDS_MAX = 8
"""How many times one pass repairs a ledger that is marked again or waits for its grace period."""


@dataclass(frozen=True, slots=True)
class LedgerNeed:
    """A ledger that names lost bookies.

    Args:
        missing: the lost bookies, in the order of their segments.
        fragments: number of fragments to copy; without that in the last segment of an open ledger.
        entries: entries to copy.
        size_bytes: estimate of their payload bytes, from the ledger's length; 0 for an open ledger.
        awaits_recovery: whether a lost bookie is in the last segment of an open ledger.
    """

    ledger_id: int
    missing: tuple[str, ...]
    fragments: int
    entries: int
    size_bytes: int
    awaits_recovery: bool


@dataclass(frozen=True, slots=True)
class PassReport:
    """The result of a pass.

    Args:
        lost: the bookies whose copies were to be made on others, sorted.
        needs: the ledgers that name lost bookies, ascending.
        unreadable: ledgers whose metadata cannot be decoded, with the reason.
        repairs: the last repair of each marked ledger, ascending; empty for a dry run.
        room: the copies of `needs` against the free disk of the writable bookies.
    """

    lost: tuple[str, ...]
    needs: tuple[LedgerNeed, ...]
    unreadable: dict[int, str]
    repairs: tuple[LedgerRepair, ...] = ()
    room: DiskRoom | None = None

    @property
    def unrepaired(self) -> tuple[LedgerRepair, ...]:
        """The ledgers that still lack copies."""
        return unrepaired(self.repairs)


@dataclass(slots=True)
class PassProgress:
    """How far a pass is. Changed during the pass.

    Attributes:
        ledgers_total: ledgers to repair; 0 until they are known.
        ledgers_done: ledgers whose repair has ended, in any way.
        bytes_expected: estimate of the payload bytes to copy.
        bytes_copied: bytes of the entries copied, with their headers.
        waits_for: what a refill waits for; empty if it copies.
        room: the copies to make against the free disk; None until it is known.
    """

    ledgers_total: int = 0
    ledgers_done: int = 0
    bytes_expected: int = 0
    bytes_copied: int = 0
    waits_for: str = ""
    room: DiskRoom | None = None
    on_change: Callable[[], None] = field(default=lambda: None)

    def copied(self, size_bytes: int) -> None:
        """Count an entry that was copied."""
        self.bytes_copied += size_bytes
        self.on_change()

    def waiting(self, waits_for: str) -> None:
        """Set what the pass waits for; empty if for nothing."""
        self.waits_for = waits_for
        self.on_change()

    def repaired(self) -> None:
        """Count a ledger whose repair has ended."""
        self.ledgers_done += 1
        self.on_change()


async def recover_bookies(
    client: Client,
    bookie_ids: Sequence[str] = (),
    *,
    settings: AutorecoverySettings = DEFAULT_SETTINGS,
    dry_run: bool = False,
    has_living_writer: HasLivingWriter = no_known_writers,
    progress: PassProgress | None = None,
) -> PassReport:
    """Make the copies of lost bookies on other bookies, and repair every ledger that is marked as under-replicated.

    Args:
        bookie_ids: the lost bookies; none for every bookie that has a cookie or is named by a ledger, and is not registered. A named
            bookie may be registered as read-only; it is then read from, and its copies are made on others.
        dry_run: only find the ledgers; nothing is changed.
        has_living_writer: an open ledger for which this is true is not fenced;
            `triplicate.log.has_living_writer` decides for the ledgers of logs.

    Raises:
        ArgumentError: a named bookie is registered as writable, or is unknown; or no bookie is registered at all.
        MetadataError: the metadata store failed. The pass can be started again.
    """
    progress = progress if progress is not None else PassProgress()
    survey = _Survey(client)
    await survey.examine(bookie_ids)
    needed_bytes = sum(need.size_bytes for need in survey.needs)
    room = await room_on(client, survey.writable, needed_bytes) if survey.needs else None
    if room is not None and room.is_doubtful:
        client.host.trace("autorecovery.little_disk", needed=room.needed_bytes, free=room.certain_bytes, silent=",".join(room.silent))
    progress.room = room
    progress.on_change()
    report = PassReport(tuple(sorted(survey.lost)), tuple(survey.needs), survey.unreadable, room=room)
    if dry_run:
        return report
    marks = client.metadata.under_replication
    for need in report.needs:
        await marks.mark(need.ledger_id, need.missing)
    await _mark_damaged(client, report.unreadable)
    waiting = [mark.ledger_id async for mark in marks.marks()]
    progress.ledgers_total = len(waiting)
    progress.bytes_expected = needed_bytes
    async with client.bookie_copies() as copies:
        worker = ReplicationWorker(
            client,
            copies,
            settings,
            name=client.host.name,
            leaving=frozenset(bookie_ids),
            has_living_writer=has_living_writer,
            copied=progress.copied,
        )
        repairs = await repair_marked(client, worker, waiting, settings.ledgers_at_once, progress)
    return replace(report, repairs=repairs)


async def _mark_damaged(client: Client, unreadable: dict[int, str]) -> None:
    """Mark the ledgers with records of damaged copies. Another worker may have deleted the mark without replacing the copies.

    Args:
        unreadable: gets the records that cannot be decoded.
    """
    records = client.metadata.damaged_copies
    for ledger_id in await records.ledger_ids():
        try:
            record = await records.get(ledger_id)
        except FormatError as error:
            unreadable[ledger_id] = str(error)
            continue
        if record is not None:
            await client.metadata.under_replication.mark(ledger_id, record.copies)


async def repair_marked(
    client: Client, worker: ReplicationWorker, waiting: list[int], at_once: int, progress: PassProgress
) -> tuple[LedgerRepair, ...]:
    """Repair marked ledgers; returns the last repair of each. Those that wait for their grace period are repaired again after it.

    Args:
        at_once: maximum number of ledgers that are repaired at a time.
    """
    last: dict[int, LedgerRepair] = {}

    async def repair(ledger_id: int) -> LedgerRepair:
        await sleep_until(client.host.clock, worker.grace_ends_at(ledger_id))
        repaired = await worker.repair(ledger_id)
        if repaired.outcome not in WAITING:
            progress.repaired()
        return joined_repairs(last.get(ledger_id), repaired)

    for _ in range(ROUNDS_MAX):
        for repaired in await map_bounded(repair, waiting, most=at_once, name="repairs of ledgers"):
            last[repaired.ledger_id] = repaired
        waiting = [ledger_id for ledger_id in waiting if last[ledger_id].outcome in WAITING]
        if not waiting:
            break
    return tuple(last.values())


def joined_repairs(before: LedgerRepair | None, repaired: LedgerRepair) -> LedgerRepair:
    """The last outcome, with the entries of all repairs."""
    if before is None:
        return repaired
    return LedgerRepair(
        repaired.ledger_id,
        repaired.outcome,
        before.entries + repaired.entries,
        before.size_bytes + repaired.size_bytes,
        before.fragments + repaired.fragments,
        repaired.reason,
        (*before.made, *repaired.made),
    )


class _Survey:
    """Reads the metadata of every ledger once, and finds those that name lost bookies."""

    def __init__(self, client: Client) -> None:
        self.lost: dict[str, None] = {}
        self.needs: list[LedgerNeed] = []
        self.unreadable: dict[int, str] = {}
        self.writable: Mapping[str, BookieServiceInfo] = {}
        """The bookies that can get copies."""
        self._metadata = client.metadata

    async def examine(self, bookie_ids: Sequence[str]) -> None:
        """See `recover_bookies`."""
        registered = await self._metadata.bookies.registered()
        known = await self._metadata.cookies.bookie_ids()
        if not registered.infos:
            raise ArgumentError("no bookie is registered, so none can get copies; start bookies first, or check the address of the cluster")
        unreadable = [bookie_id for bookie_id in bookie_ids if bookie_id in registered.unreadable]
        if unreadable:
            raise ArgumentError(unreadable_text(unreadable, registered))
        refused = [bookie_id for bookie_id in bookie_ids if bookie_id in registered.writable]
        if refused:
            raise ArgumentError(
                f"{', '.join(refused)} is registered and writable, so its copies are not lost; stop it or make it read-only first"
            )
        self.writable = registered.writable
        self.lost = dict.fromkeys(bookie_ids or [bookie_id for bookie_id in known if bookie_id not in registered])
        named: dict[str, None] = {}
        async for ledger_id, metadata in self._ledgers():
            bookies = dict.fromkeys(bookie_id for segment in metadata.segments for bookie_id in segment.ensemble)
            named |= bookies
            if not bookie_ids:
                self.lost |= {bookie_id: None for bookie_id in bookies if bookie_id not in registered}
            missing = tuple(bookie_id for bookie_id in bookies if bookie_id in self.lost)
            if missing:
                self.needs.append(need_of(ledger_id, metadata, missing))
        unknown = [bookie_id for bookie_id in bookie_ids if bookie_id not in registered and bookie_id not in {*known, *named}]
        if unknown:
            raise ArgumentError(f"{', '.join(unknown)} has no cookie, and no ledger names it; check the bookie's id")

    async def _ledgers(self) -> AsyncIterator[tuple[int, LedgerMetadata]]:
        ledgers = self._metadata.ledgers
        async for ledger_id in ledgers.ids():
            try:
                found = await ledgers.get(ledger_id)
            except NoSuchLedger:
                continue
            except FormatError as error:
                self.unreadable[ledger_id] = str(error)
                continue
            yield ledger_id, found.value


def unreadable_text(bookie_ids: Sequence[str], registered: RegisteredBookies) -> str:
    """The refusal to copy away the entries of bookies that run and whose registrations cannot be decoded."""
    return (
        f"{', '.join(bookie_ids)} is registered, so its copies are not lost, but its registration cannot be decoded "
        f"({registered.unreadable[bookie_ids[0]]}): stop the bookie, or use a release of Triplicate that knows its registration"
    )


def need_of(ledger_id: int, metadata: LedgerMetadata, missing: tuple[str, ...]) -> LedgerNeed:
    """The copies to make for a ledger that names lost bookies."""
    fragments = lacking_fragments(metadata, missing)
    entries = sum(fragment.count for fragment in fragments)
    size_bytes = metadata.length * entries // (metadata.last_entry_id + 1) if metadata.last_entry_id >= 0 else 0
    return LedgerNeed(ledger_id, missing, len(fragments), entries, size_bytes, awaits_recovery(metadata, missing))
