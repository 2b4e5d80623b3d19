"""One repair of a locked ledger: its fragments are found, copied, verified, and only then named by the metadata.

The metadata is changed by compare-and-set. If others changed it meanwhile, it is read and examined again, so that no change of a writer
or of another worker is undone.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from triplicate.autorecovery.copy_pace import CopyPace
from triplicate.autorecovery.core.fragments import LedgerFragment, awaits_recovery, lacking_fragments, missing_runs, with_copies_at
from triplicate.autorecovery.core.ledger_copies import damaged_fragments
from triplicate.autorecovery.core.misplaced_copies import misplaced_copies
from triplicate.autorecovery.core.writer_presence import OpenLedgerView, WriterPresence, writer_presence
from triplicate.autorecovery.entry_finder import EntryFinder
from triplicate.autorecovery.ledger_copier import CopyJob, LedgerCopier
from triplicate.autorecovery.recovery_metrics import RecoveryMetrics
from triplicate.client import WRITER_AWAITED, BookieCopies, Client
from triplicate.config import AutorecoverySettings
from triplicate.errors import BadVersion, BookieError, CorruptionError, LedgerError, NoGoodCopy, NotEnoughBookies, Unauthorized
from triplicate.ledger import Availability, EntryCodec, LedgerMetadata, is_covered, replace_bookies
from triplicate.metadata import BookieServiceInfo, Versioned, may_have_lost_entries
from triplicate.runtime import fault_point, map_bounded

MOVES_PER_POSITION = 2
"""How often the copies of one position are moved in one repair for the sake of placement, on average over a segment."""
CHANGES_MAX = 32
"""How many times others may change a ledger's metadata during one repair."""
REFILLED_AT_ONCE = 10_000
"""Entries of a bookie in limbo that are read, copied and read back in one round, which bounds the memory for their ids."""
VIEWS_AT_ONCE = 8
"""Bookies that are asked for their last entry at a time."""


HasLivingWriter = Callable[[LedgerMetadata], Awaitable[bool]]
"""Whether the writer of an open ledger is known to live, by something other than the ledger itself."""


async def no_known_writers(metadata: LedgerMetadata) -> bool:
    """A `HasLivingWriter` for clusters in which nothing but the ledgers shows their writers."""
    return False


class RepairOutcome(enum.Enum):
    """The end of one repair of a ledger."""

    REPAIRED = "repaired"
    """Every fragment has its copies, and the mark is deleted."""
    MARKED_AGAIN = "marked again"
    """Every fragment has its copies, and the ledger was marked again during the repair."""
    NOT_MARKED = "not marked"
    """The ledger has no mark."""
    LOCKED = "locked"
    """Another worker has locked the ledger."""
    GRACE_PERIOD = "grace period"
    """A lost bookie is in the last segment of an open ledger whose grace period is not over."""
    HAS_WRITER = "has a writer"
    """A lost bookie is in the last segment of an open ledger whose writer lives, and replaces it if another one can be chosen."""
    FAILED = "failed"
    """Something could not be repaired; the reason names it. The ledger stays marked."""


@dataclass(frozen=True, slots=True)
class RepairResult:
    """An outcome and, unless all is well, the reason."""

    outcome: RepairOutcome
    reason: str = ""


@dataclass(frozen=True, slots=True)
class BookieStates:
    """The bookies of a cluster as one repair sees them.

    Args:
        writable: registered bookies that accept entries, with their registrations, sorted.
        readonly: other registered bookies, which only serve reads.
        leaving: bookies that are to be replaced although they may be registered.
        in_limbo: registered bookies whose disks were replaced, and which may have lost entries and a fence of this ledger.
    """

    writable: Mapping[str, BookieServiceInfo]
    readonly: tuple[str, ...]
    leaving: frozenset[str]
    in_limbo: tuple[str, ...] = ()

    def is_lost(self, bookie_id: str) -> bool:
        """Whether the copies of a bookie are to be made on others."""
        return bookie_id in self.leaving or (bookie_id not in self.writable and bookie_id not in self.readonly)


@dataclass(frozen=True, slots=True)
class RepairTools:
    """The objects that the repairs of one worker share.

    Args:
        leaving: bookies that are to be replaced although they may be registered, in addition to those that are being decommissioned.
        has_living_writer: a ledger for which this is true is not fenced.
        views: the first view of each open ledger whose grace period runs, by ledger id.
        copied: called with the bytes of entries that were copied.
        moves_misplaced: whether every repair also moves copies that break the rules of placement, and not only that of a mark without
            bookies.
    """

    client: Client
    copies: BookieCopies
    settings: AutorecoverySettings
    pace: CopyPace
    metrics: RecoveryMetrics
    leaving: frozenset[str]
    has_living_writer: HasLivingWriter
    views: dict[int, OpenLedgerView]
    copied: Callable[[int], None]
    moves_misplaced: bool = False


class RepairRun:
    """One repair of one locked ledger.

    Args:
        missing: the bookies that the mark names. A mark without bookies is one for placement, as an auditor of BookKeeper makes it, too.

    Attributes:
        entries, size_bytes: the entries copied so far, and their bytes with headers.
        fragments: number of fragments that have got their copies.
        moved: how many of them for the sake of placement.
    """

    def __init__(self, tools: RepairTools, ledger_id: int, missing: tuple[str, ...]) -> None:
        self.entries = 0
        self.size_bytes = 0
        self.fragments = 0
        self.moved = 0
        self._tools = tools
        self._ledger_id = ledger_id
        self._missing = dict.fromkeys((*missing, *sorted(tools.leaving)))
        self._moves_misplaced = tools.moves_misplaced or not missing
        self._moves: dict[int, int] = {}
        """Moves for the sake of placement so far, by the first entry of their segment."""
        self._refused: tuple[str, ...] = ()
        """Why copies that break a rule of placement could not be moved."""
        self._ledgers = tools.client.metadata.ledgers
        self._rng = tools.client.host.entropy.stream("placement")
        self._unusable: dict[str, None] = {}
        """Targets that failed during this repair."""
        self._recovered: dict[str, None] = {}
        """The bookies to which a recovery copied entries. It ends when an ack quorum has them, so some may lack their copies."""
        self._failures: dict[LedgerFragment, str] = {}
        self._completed: dict[LedgerFragment, None] = {}
        """Fragments of which copies were stored again on their bookie."""
        self._bad_copies: dict[str, set[int]] = {}
        """Entries whose copies were found damaged when they were read for a copy, by bookie."""

    async def repair(self) -> RepairResult:
        """Repair all fragments that can be repaired. May be interrupted and repeated.

        Raises:
            NoSuchLedger: the ledger was deleted. RecoveryFailed: it is open, its writer is gone, and it cannot be recovered now.
            Unauthorized: the metadata does not hold the ledger's password. MetadataError: the metadata store failed.
        """
        while True:
            found = await self._ledgers.get(self._ledger_id)
            states = await self._states(found)
            lost = [bookie_id for bookie_id in self._missing if states.is_lost(bookie_id)]
            has_writer = not _awaits_writer(found.value)
            fragment = self._next(found.value, lost, has_writer=has_writer)
            if fragment is not None:
                await self._replace(found, fragment, states, has_writer=has_writer)
                continue
            if await self._complete_present(found, states, has_writer=has_writer):
                continue
            if await self._replace_damaged(found, states, has_writer=has_writer):
                continue
            if self._moves_misplaced and await self._move_misplaced(found, states):
                continue
            lost += states.in_limbo
            if not has_writer or not awaits_recovery(found.value, lost):
                return self._result()
            presence = await self._presence(found.value, lost)
            if presence is WriterPresence.GONE:
                await self._recover(found.value)
            elif self._failures:
                return self._result()
            else:
                is_alive = presence is WriterPresence.ALIVE
                return RepairResult(
                    RepairOutcome.HAS_WRITER if is_alive else RepairOutcome.GRACE_PERIOD,
                    f"{', '.join(lost)} in the last segment of an open ledger, whose writer "
                    + ("lives and replaces it if another bookie can be chosen" if is_alive else "may be alive"),
                )

    def _result(self) -> RepairResult:
        reasons = (*self._failures.values(), *self._refused)
        return RepairResult(RepairOutcome.FAILED, "; ".join(reasons)) if reasons else RepairResult(RepairOutcome.REPAIRED)

    def _next(self, metadata: LedgerMetadata, lost: list[str], *, has_writer: bool) -> LedgerFragment | None:
        fragments = lacking_fragments(metadata, lost, has_writer=has_writer)
        return next((fragment for fragment in fragments if fragment not in self._failures), None)

    # Fragments.

    async def _replace(self, found: Versioned, fragment: LedgerFragment, states: BookieStates, *, has_writer: bool) -> None:
        """Copy a fragment to another bookie, and replace its bookie in the metadata."""
        usable = [bookie_id for bookie_id in states.writable if bookie_id not in self._unusable and not states.is_lost(bookie_id)]
        placement = self._tools.client.placement
        rules = await placement.rules(found.value.write_quorum, states.writable, fragment.ensemble)
        try:
            ensemble = replace_bookies(fragment.ensemble, [fragment.position], usable, self._rng, (), rules)
        except NotEnoughBookies as error:
            refused = f"; failed during this repair: {', '.join(self._unusable)}" if self._unusable else ""
            self._fail(fragment, f"no bookie for the copies of {_described(fragment)}: {error}{refused}")
            return
        target = ensemble[fragment.position]
        last_resort = frozenset(bookie_id for bookie_id in fragment.ensemble if states.is_lost(bookie_id))
        if await self._copy(found.value, CopyJob(fragment, Availability(()), target, last_resort)):
            placement.report(self._ledger_id, ensemble, rules)
            await self._name_target(found, fragment, target, has_writer=has_writer)

    async def _move_misplaced(self, found: Versioned, states: BookieStates) -> bool:
        """Move the copies of one position, if that mends the placement. The bookie keeps its copy until the metadata name the other one.

        Returns:
            Whether copies were to be moved, so that the metadata may have changed.
        """
        metadata, placement = found.value, self._tools.client.placement
        ensembles = [bookie_id for segment in metadata.segments for bookie_id in segment.ensemble]
        rules = await placement.rules(metadata.write_quorum, states.writable, ensembles)
        if placement.problems:
            # A location that is not known may be a rack of its own, or not.
            self._refused = (f"the locations of bookies are not certain: {'; '.join(placement.problems)}",)
            return False
        usable = [bookie_id for bookie_id in states.writable if bookie_id not in self._unusable and not states.is_lost(bookie_id)]
        plan = misplaced_copies(metadata, rules, usable, {*states.writable, *states.readonly}, self._rng)
        self._refused = plan.refused
        move = next((move for move in plan.moves if move.fragment not in self._failures), None)
        if move is None:
            return False
        fragment = move.fragment
        moves = self._moves[fragment.first_entry_id] = self._moves.get(fragment.first_entry_id, 0) + 1
        if moves > MOVES_PER_POSITION * len(fragment.ensemble):
            self._fail(fragment, f"{_described(fragment)}: its placement was not mended by {moves - 1} moves, since others changed it")
            return True
        if await self._copy(metadata, CopyJob(fragment, Availability(()), move.target, frozenset())):
            before = self.fragments
            await self._name_target(found, fragment, move.target, has_writer=True, whole_ensemble=True)
            self.moved += self.fragments - before
        return True

    async def _complete_present(self, found: Versioned, states: BookieStates, *, has_writer: bool) -> bool:
        """Copy what they lack to bookies of the mark that are registered again, and to those of a recovery.

        One that is read-only, or gives no usable answer, is replaced instead.

        Returns:
            Whether a bookie was to be replaced, so that the metadata may have changed.
        """
        metadata = found.value
        listing = [bookie_id for bookie_id in self._missing | self._recovered if bookie_id not in states.in_limbo]
        present = [bookie_id for bookie_id in listing if not states.is_lost(bookie_id)]
        for fragment in lacking_fragments(metadata, present, has_writer=has_writer):
            if fragment in self._failures or not fragment.count:
                continue
            try:
                stored = (await self._finder(metadata).find(fragment.bookie_id, [fragment])).good
            except BookieError:
                await self._replace(found, fragment, states, has_writer=has_writer)
                return True
            if next(missing_runs(fragment, stored), None) is None:
                continue
            if fragment.bookie_id not in states.writable:
                await self._replace(found, fragment, states, has_writer=has_writer)
                return True
            if await self._copy(metadata, CopyJob(fragment, stored, fragment.bookie_id, frozenset())):
                self.fragments += 1
        return await self._refill(found, states, has_writer=has_writer)

    async def _refill(self, found: Versioned, states: BookieStates, *, has_writer: bool) -> bool:
        """Copy what they lack to bookies in limbo, which list nothing, and fence closed ledgers on them. Returns as `_complete_present`."""
        metadata = found.value
        for fragment in lacking_fragments(metadata, states.in_limbo, has_writer=has_writer):
            entry_ids = (entry_id for run in fragment.runs() for entry_id in run)
            while fragment not in self._failures and (chunk := list(islice(entry_ids, REFILLED_AT_ONCE))):
                if not await self._replace_in_place(metadata, fragment, chunk, states):
                    await self._replace(found, fragment, states, has_writer=has_writer)
                    return True
        if metadata.is_closed and not self._failures:
            for bookie_id in states.in_limbo:
                # Its fence may be lost with its disk, and with that of enough bookies an old writer could go on.
                ends = (entry_id for fragment in lacking_fragments(metadata, [bookie_id]) for entry_id in fragment.ends())
                present_id = next(ends, 0)
                await self._tools.copies.fence(self._codec(metadata), present_id, bookie_id)
        return False

    async def _replace_damaged(self, found: Versioned, states: BookieStates, *, has_writer: bool) -> bool:
        """Replace the copies that are recorded as damaged, or were found damaged in this repair, on their bookies.

        A bookie that accepts no copies, or whose copies stay damaged, is replaced instead. Copies that cannot be repaired stay recorded.

        Returns:
            Whether the metadata or the record may have changed.
        """
        records, metadata = self._tools.client.metadata.damaged_copies, found.value
        record = await records.get(self._ledger_id)
        damaged = {bookie_id: list(runs) for bookie_id, runs in (record.copies.items() if record is not None else ())}
        for bookie_id, bad in self._bad_copies.items():
            damaged.setdefault(bookie_id, []).extend(_single_ranges(bad))
        for bookie_id, runs in damaged.items():
            if states.is_lost(bookie_id):
                continue
            for fragment, entry_ids in damaged_fragments(metadata, bookie_id, runs):
                if fragment not in self._failures and not await self._replace_in_place(metadata, fragment, entry_ids, states):
                    if fragment not in lacking_fragments(metadata, [bookie_id], has_writer=has_writer):
                        self._fail(fragment, f"{_described(fragment)}: its damaged copies cannot be replaced while the ledger is open")
                        continue
                    await self._replace(found, fragment, states, has_writer=has_writer)
                    return True
        if self._failures:
            for bookie_id, bad in self._bad_copies.items():
                await records.report(self._ledger_id, bookie_id, _single_ranges(bad))
            return False
        self._bad_copies.clear()
        return record is not None and not await records.delete(record)

    async def _replace_in_place(
        self, metadata: LedgerMetadata, fragment: LedgerFragment, entry_ids: list[int], states: BookieStates
    ) -> bool:
        """Store copies that are damaged or missing on the fragment's bookie again; False if it does not accept or keep them.

        Another failure, such as an entry without an intact copy, is recorded.
        """
        if fragment.bookie_id not in states.writable:
            return False
        copier = self._copier(metadata)
        try:
            damaged = await copier.damaged(fragment, entry_ids)
            if not damaged:
                return True
            job = CopyJob(fragment, Availability(()), fragment.bookie_id, frozenset(), damaged)
            if not await self._copy(metadata, job):
                return True
            left = await copier.damaged(fragment, damaged)
        except BookieError as failure:
            self._fail(fragment, f"{_described(fragment)}: {failure}")
            return True
        self._tools.metrics.copies_replaced.inc(len(damaged) - len(left))
        if not left and fragment not in self._completed:
            self._completed[fragment] = None
            self.fragments += 1
        return not left

    async def _copy(self, metadata: LedgerMetadata, job: CopyJob) -> bool:
        """Make and verify the copies of a job; False if that failed, which is recorded."""
        tools = self._tools
        if not job.fragment.count:
            return True
        copier = self._copier(metadata)
        try:
            await copier.copy(job)
        except NoGoodCopy as lacking:
            self._fail(job.fragment, str(lacking))
        except (BookieError, Unauthorized, CorruptionError) as failure:
            if job.target == job.fragment.bookie_id:
                self._fail(job.fragment, f"{_described(job.fragment)}: {failure}")
            else:
                # Another target is chosen while there is one.
                self._unusable[job.target] = None
                tools.client.host.trace("autorecovery.target_failed", ledger=self._ledger_id, bookie=job.target, error=str(failure))
        else:
            return True
        return False

    def _copier(self, metadata: LedgerMetadata) -> LedgerCopier:
        tools = self._tools
        codec, finder = self._codec(metadata), self._finder(metadata)
        return LedgerCopier(tools.copies, codec, finder, tools.settings, tools.pace, tools.metrics, self._count, self._bad_copies)

    def _codec(self, metadata: LedgerMetadata) -> EntryCodec:
        """Raises Unauthorized: the metadata has no password."""
        if not metadata.credentials_stored:
            error = Unauthorized(
                f"the metadata of ledger {self._ledger_id} is of the oldest format, without password and digest type: its entries cannot "
                "be verified; copy it with a client that knows the password into a new ledger"
            )
            error.ledger_id = self._ledger_id
            raise error
        return EntryCodec(self._ledger_id, metadata.digest_type, metadata.password)

    @fault_point("autorecovery.copied")
    async def _name_target(
        self, found: Versioned, fragment: LedgerFragment, target: str, *, has_writer: bool, whole_ensemble: bool = False
    ) -> None:
        """Put the target into the fragment's place in the metadata, unless others have changed the segment: then nothing is changed."""
        for _ in range(CHANGES_MAX):
            changed = with_copies_at(found.value, fragment, target, has_writer=has_writer, whole_ensemble=whole_ensemble)
            if changed is None:
                return
            try:
                await self._ledgers.update(self._ledger_id, changed, found.version)
            except BadVersion:
                self._tools.client.host.trace("autorecovery.metadata_conflict", ledger=self._ledger_id)
                found = await self._ledgers.get(self._ledger_id)
                has_writer = not _awaits_writer(found.value)
            else:
                self.fragments += 1
                return
        error = LedgerError(f"the metadata of ledger {self._ledger_id} was changed by others {CHANGES_MAX} times during its repair")
        error.ledger_id = self._ledger_id
        raise error

    # Open ledgers.

    async def _presence(self, metadata: LedgerMetadata, lost: list[str]) -> WriterPresence:
        if await self._tools.has_living_writer(metadata):
            return WriterPresence.ALIVE
        self._tools.client.host.trace("autorecovery.view", ledger=self._ledger_id)
        present = await self._view(metadata, lost)
        first = self._tools.views.setdefault(self._ledger_id, present)
        presence = writer_presence(first, present, self._tools.settings.open_ledger_grace_s)
        if presence is WriterPresence.ALIVE:
            self._tools.views[self._ledger_id] = present
        if presence is WriterPresence.GONE:
            self._tools.client.host.trace("autorecovery.writer_gone", ledger=self._ledger_id, state=metadata.state.name.lower())
        return presence

    async def _view(self, metadata: LedgerMetadata, lost: list[str]) -> OpenLedgerView:
        codec = EntryCodec(self._ledger_id, metadata.digest_type, metadata.password)

        async def last_entry_id(bookie_id: str) -> int | None:
            """-1 if it has none, None if it did not answer."""
            try:
                found = await self._tools.copies.last_entry_id(codec, bookie_id)
            except (BookieError, CorruptionError):
                return None
            return -1 if found is None else found

        segment = metadata.last_segment
        living = [bookie_id for bookie_id in segment.ensemble if bookie_id not in lost]
        found = await map_bounded(last_entry_id, living, most=VIEWS_AT_ONCE, name=f"last entries of ledger {self._ledger_id}")
        answers = {bookie_id: entry_id for bookie_id, entry_id in zip(living, found, strict=True) if entry_id is not None}
        unknown = [position for position, bookie_id in enumerate(segment.ensemble) if bookie_id not in answers]
        return OpenLedgerView(
            metadata.state,
            segment,
            max(answers.values(), default=-1),
            self._tools.client.host.clock.monotonic(),
            is_covered(unknown, len(segment.ensemble), metadata.write_quorum, metadata.ack_quorum),
        )

    @fault_point("autorecovery.recover")
    async def _recover(self, metadata: LedgerMetadata) -> None:
        """Fence and close the ledger, so that its last segment can be repaired."""
        reader = await self._tools.client.recover(self._ledger_id, password=metadata.password, mark=False)
        segments = reader.metadata.segments[len(metadata.segments) - 1 :]
        await reader.aclose()
        self._recovered = dict.fromkeys(bookie_id for segment in segments for bookie_id in segment.ensemble)
        self._tools.views.pop(self._ledger_id, None)

    # Helpers.

    def _finder(self, metadata: LedgerMetadata) -> EntryFinder:
        """Raises Unauthorized: the metadata has no password."""
        tools = self._tools
        return EntryFinder(tools.copies, self._codec(metadata), tools.client.host.clock, pace=tools.pace)

    async def _states(self, found: Versioned) -> BookieStates:
        cluster = self._tools.client.metadata
        bookies = cluster.bookies
        # The writable list is read twice: a bookie that moves between the lists can be missed in both, and would count as lost.
        before = await bookies.writable()
        readonly = await bookies.readonly()
        writable = await bookies.writable()
        others = dict.fromkeys(bookie_id for bookie_id in (*before, *readonly) if bookie_id not in writable)
        leaving = self._tools.leaving.union(await self._tools.client.metadata.read_only_requests.leaving())
        states = BookieStates(writable, tuple(others), leaving)
        present = [bookie_id for bookie_id in self._missing if not states.is_lost(bookie_id)]
        in_limbo: list[str] = []
        for bookie_id in present:
            incarnation = await cluster.incarnations.get(bookie_id)
            if not incarnation.visited and await may_have_lost_entries(cluster, bookie_id, incarnation, self._ledger_id, found):
                in_limbo.append(bookie_id)
        return replace(states, in_limbo=tuple(in_limbo))

    def _fail(self, fragment: LedgerFragment, reason: str) -> None:
        self._failures[fragment] = reason

    def _count(self, entries: int, size_bytes: int) -> None:
        self.entries += entries
        self.size_bytes += size_bytes
        self._tools.copied(size_bytes)


def _single_ranges(entry_ids: Iterable[int]) -> list[range]:
    return [range(entry_id, entry_id + 1) for entry_id in sorted(entry_ids)]


def _described(fragment: LedgerFragment) -> str:
    return f"{fragment.bookie_id} in the segment of entries {fragment.first_entry_id} to {fragment.last_entry_id}"


def _awaits_writer(metadata: LedgerMetadata) -> bool:
    """Whether the ledger waits for its first writer, and so has no entries. See `Client.take_up`."""
    return not metadata.is_closed and all(metadata.custom.get(name) == value for name, value in WRITER_AWAITED.items())
