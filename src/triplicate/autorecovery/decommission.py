"""Takes bookies out of a cluster: they become read-only, their ledgers get copies on others, and their cookies are removed.

The request that a bookie be read-only says that it is leaving, and stays in the metadata until the end. A decommission that is interrupted
goes on when it is started again, and the replication workers of the cluster help. The cookie is removed only after a verdict: no ledger
names the bookie, and each entry that the bookie lists is listed by all the bookies that the ledger's metadata names for it.

Source: BookKeeper `BookKeeperAdmin.decommissionBookie`, which requires that the bookie is down and ends when no ledger names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from triplicate.autorecovery.copy_lists import lacking_by_lists, listed
from triplicate.autorecovery.core.disk_room import DiskRoom
from triplicate.autorecovery.core.needed_copies import LackingBookie, names_any
from triplicate.autorecovery.core.room_check import RefusedSegment, RoomCheck
from triplicate.autorecovery.decommission_progress import DecommissionPhase, DecommissionProgress, Obstacle
from triplicate.autorecovery.free_disk import room_on
from triplicate.autorecovery.ledger_walk import WalkedLedger, walk_ledgers
from triplicate.autorecovery.recovery_pass import LedgerNeed, need_of, unreadable_text
from triplicate.autorecovery.repair_tools import HasLivingWriter, RepairOutcome, no_known_writers
from triplicate.autorecovery.trashed_ledgers import leaving_trash, obstacles_in_trash
from triplicate.autorecovery.worker import LedgerRepair, ReplicationWorker
from triplicate.client import BookieCopies, Client
from triplicate.config import AutorecoverySettings
from triplicate.errors import ArgumentError, BadVersion, NoSuchLedger, RequestTimeout
from triplicate.ledger import Availability, LedgerMetadata, PlacementRules
from triplicate.metadata import HeldLock, RegisteredBookies, RequestChange, Stat
from triplicate.runtime import fault_point, map_bounded, sleep

DEFAULT_SETTINGS = AutorecoverySettings()
READ_ONLY_WAIT_S = 30.0
"""Longest wait until a bookie has registered as read-only, in seconds."""
POLL_S = 0.5
"""Pause between two examinations while something is awaited, in seconds."""
STALL_S = 3600.0
"""Default of the longest wait without any progress, in seconds."""
FAILED_ROUNDS_MAX = 3
"""How many times in a row the same ledgers may fail before the decommission ends."""
LEDGERS_AT_ONCE = 16
"""Ledgers whose lists of entries are compared at a time."""
CHUNK = 256
"""Ledgers whose metadata the verdict keeps in memory."""


@dataclass(frozen=True, slots=True)
class DecommissionReport:
    """The result of a decommission.

    Args:
        bookies: the bookies that were to be decommissioned.
        is_removed: whether their cookies were removed.
        remaining_bookies, remaining_machines: the writable bookies that stay, and their machines.
        refused: segments for which too few bookies would remain. Nothing was changed then.
        needs: the ledgers that named the bookies at the start.
        obstacles: what prevented the end.
        ledgers, entries, size_bytes: the ledgers that this process moved, and the entries that it copied, with their headers.
        ledgers_checked, entries_checked: the ledgers of the verdict, and the entries in the lists of the leaving bookies.
        running: the bookies that are still registered at the end.
        room: the copies to make against the free disk of the bookies that stay. If it is too small, nothing was changed.
    """

    bookies: tuple[str, ...]
    is_removed: bool
    remaining_bookies: int
    remaining_machines: int
    refused: tuple[RefusedSegment, ...] = ()
    needs: tuple[LedgerNeed, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    ledgers: int = 0
    entries: int = 0
    size_bytes: int = 0
    ledgers_checked: int = 0
    entries_checked: int = 0
    running: tuple[str, ...] = ()
    room: DiskRoom | None = None

    @property
    def is_refused(self) -> bool:
        """Whether too few bookies or too little disk would remain, so that nothing was changed."""
        return bool(self.refused) or (self.room is not None and self.room.is_too_small)


async def decommission_bookie(
    client: Client,
    bookie_ids: Sequence[str],
    *,
    settings: AutorecoverySettings = DEFAULT_SETTINGS,
    dry_run: bool = False,
    stall_s: float = STALL_S,
    has_living_writer: HasLivingWriter = no_known_writers,
    progress: DecommissionProgress | None = None,
) -> DecommissionReport:
    """Move all ledgers off bookies, and remove the bookies from the cluster. They may be running or dead.

    Args:
        dry_run: only check whether enough bookies would remain, and find the ledgers; nothing is changed.
        stall_s: longest wait without progress, for example for a writer that does not leave a bookie, in seconds.
        has_living_writer: an open ledger for which this is true is not fenced; see `recover_bookies`.

    Raises:
        ArgumentError: the cluster does not know a bookie, or a bookie became writable again meanwhile.
        RequestTimeout: a bookie did not become read-only.
        MetadataError: the metadata store failed. The decommission can be started again.
    """
    leaving = tuple(dict.fromkeys(bookie_ids))
    if not leaving:
        raise ArgumentError("name the bookies to decommission")
    run = _Decommission(client, leaving, settings, stall_s, progress or DecommissionProgress())
    start = await run.examine_start()
    if dry_run or start.is_refused:
        return start
    await run.request_read_only()
    if await run.room_has_shrunk():
        start = await run.examine_start()
        if start.is_refused:
            await run.withdraw_requests()
            return start
    await run.await_read_only()
    async with client.bookie_copies() as copies:
        worker = ReplicationWorker(
            client,
            copies,
            settings,
            name=client.host.name,
            leaving=frozenset(leaving),
            has_living_writer=has_living_writer,
            copied=run.progress.copied,
        )
        obstacles = await run.move_ledgers(worker, copies)
    running = () if obstacles else await run.remove()
    return run.report(start, obstacles, running)


@dataclass(frozen=True, slots=True)
class _RoundEnd:
    """The end of one round. While it stays the same, nothing moves."""

    needs: tuple[LedgerNeed, ...]
    ledgers: tuple[int, ...]
    """Those of the obstacles."""


class _Decommission:
    """One decommission."""

    def __init__(
        self, client: Client, leaving: tuple[str, ...], settings: AutorecoverySettings, stall_s: float, progress: DecommissionProgress
    ) -> None:
        self.progress = progress
        self._client = client
        self._metadata = client.metadata
        self._leaving = leaving
        self._settings = settings
        self._stall_s = stall_s
        self._trashed: frozenset[int] = frozenset()
        """Ledgers of the last round that are in the trash, and are moved there."""
        self._ledgers: dict[int, None] = {}
        """Ledgers of which this process moved a fragment."""
        self._entries = 0
        self._size_bytes = 0
        self._ledgers_checked = 0
        self._entries_checked = 0
        self._requested: frozenset[str] = frozenset()
        """The bookies that were requested to be read-only when the room was checked."""
        self._changes: dict[str, RequestChange] = {}
        """The changes of this run to the requests of its bookies."""
        self._requests: dict[str, Stat | None] = {}
        """The requests that the bookies be read-only, as this run has found or made them."""
        self._locked_before: frozenset[HeldLock] = frozenset()
        """Locks of workers that may have chosen a leaving bookie for copies while it was writable."""

    # The check before anything is changed.

    async def examine_start(self) -> DecommissionReport:
        """Find the ledgers that name the bookies, and those for which too few bookies would remain.

        Raises:
            ArgumentError: the cluster does not know a bookie, or cannot decode its registration.
        """
        self.progress.enter(DecommissionPhase.CHECK)
        registered = await self._metadata.bookies.registered()
        unreadable = [name for name in self._leaving if name in registered.unreadable]
        if unreadable:
            raise ArgumentError(unreadable_text(unreadable, registered))
        requested = await self._metadata.read_only_requests.bookie_ids()
        self._requested = frozenset(requested)
        remaining = [name for name in registered.writable if name not in self._leaving and name not in requested]
        # Those of other decommissions need bookies in their places as well.
        leaving = (*self._leaving, *await self._metadata.read_only_requests.leaving())
        check = RoomCheck(leaving, remaining, self._client.host.entropy.stream("decommission"))
        rules: dict[int, PlacementRules] = {}
        named: dict[str, None] = {}
        refused: list[RefusedSegment] = []
        needs: list[LedgerNeed] = []

        async def judge(ledger_id: int, metadata: LedgerMetadata) -> None:
            quorum, missing = metadata.write_quorum, self._missing(metadata)
            if quorum not in rules:
                rules[quorum] = await self._rules(quorum, registered)
            refused.extend(check.add(ledger_id, metadata, rules[quorum]))
            named.update(dict.fromkeys(missing))
            if missing:
                needs.append(need_of(ledger_id, metadata, missing))

        async with aclosing(walk_ledgers(self._client)) as ledgers:
            async for ledger in ledgers:
                if ledger.metadata is not None:  # Otherwise the verdict names it.
                    await judge(ledger.ledger_id, ledger.metadata)
        for trashed in (await leaving_trash(self._client, self._leaving)).movable:
            await judge(trashed.ledger_id, trashed.metadata)
        known = {*await self._metadata.cookies.bookie_ids(), *requested, *named}
        unknown = [name for name in self._leaving if name not in known and name not in registered]
        if unknown:
            raise ArgumentError(f"{', '.join(unknown)} has no cookie and is not registered, and no ledger names it; check the bookie's id")
        sites = await self._rules(1, registered)
        machines = {sites.site(name).host for name in remaining}
        infos = {name: registered.writable[name] for name in remaining}
        room = await room_on(self._client, infos, sum(need.size_bytes for need in needs))
        return DecommissionReport(self._leaving, False, len(remaining), len(machines), tuple(refused), tuple(needs), room=room)

    async def _rules(self, write_quorum: int, registered: RegisteredBookies) -> PlacementRules:
        infos = registered.infos
        return await self._client.placement.rules(write_quorum, infos, tuple(infos))

    def _missing(self, metadata: LedgerMetadata) -> tuple[str, ...]:
        """The leaving bookies that a ledger names."""
        names = dict.fromkeys(name for segment in metadata.segments for name in segment.ensemble)
        return tuple(name for name in names if name in self._leaving)

    async def request_read_only(self) -> None:
        """Request that the bookies be read-only."""
        requests = self._metadata.read_only_requests
        for bookie_id in self._leaving:
            change = await requests.change(bookie_id, leaving=True)
            if change is not None:
                self._changes[bookie_id] = change
            self._requests[bookie_id] = await requests.read(bookie_id)

    async def room_has_shrunk(self) -> bool:
        """Whether other bookies were requested to be read-only since the room was checked, so that fewer remain.

        Of two decommissions that begin at the same time, each makes its requests before it looks, so at least one sees the other.
        """
        return bool(set(await self._metadata.read_only_requests.bookie_ids()) - self._requested - set(self._leaving))

    async def withdraw_requests(self) -> None:
        """Withdraw the requests that this run has made. Those that were there before stay as they were."""
        for bookie_id, change in self._changes.items():
            await self._metadata.read_only_requests.undo(bookie_id, change)

    async def await_read_only(self) -> None:
        """Wait until none of the bookies is writable.

        Raises:
            RequestTimeout: one is still writable. The requests stay.
        """
        self.progress.enter(DecommissionPhase.READ_ONLY)
        clock = self._client.host.clock
        deadline = clock.monotonic() + READ_ONLY_WAIT_S
        while writable := [name for name in await self._metadata.bookies.writable() if name in self._leaving]:
            if clock.monotonic() >= deadline:
                names = ", ".join(writable)
                raise RequestTimeout(
                    f"{names} is still writable {READ_ONLY_WAIT_S:g} s after the request that it be read-only, which stays; a bookie of "
                    "Apache's does not read it: stop the bookie, or use its HTTP endpoint /api/v1/bookie/state/readonly, and start again"
                )
            await sleep(clock, POLL_S)
        self._locked_before = await self._metadata.under_replication.locks()

    # Rounds.

    @fault_point("autorecovery.decommission")
    async def move_ledgers(self, worker: ReplicationWorker, copies: BookieCopies) -> tuple[Obstacle, ...]:
        """Repeat until the verdict is that no ledger needs the bookies.

        Returns:
            Nothing at the end, or the obstacles if nothing moves any more.

        Raises:
            ArgumentError: a bookie is writable again.
        """
        clock = self._client.host.clock
        end, unchanged, changed_at = None, 0, clock.monotonic()
        while True:
            needs = await self._named_by()
            obstacles = await (self._move(worker, needs) if needs else self._judge(worker, copies))
            self.progress.meet(obstacles)
            if not needs and not obstacles:
                return ()
            found = _RoundEnd(needs, tuple(obstacle.ledger_id for obstacle in obstacles))
            unchanged = unchanged + 1 if found == end else 0
            if found != end:
                end, changed_at = found, clock.monotonic()
                if not obstacles:
                    continue
            may_pass = not obstacles or any(obstacle.may_pass for obstacle in obstacles)
            if not may_pass and unchanged >= FAILED_ROUNDS_MAX - 1:
                return obstacles
            if clock.monotonic() - changed_at >= self._stall_s:
                return obstacles or tuple(_still_named(need) for need in needs)
            await sleep(clock, POLL_S)

    async def _named_by(self) -> tuple[LedgerNeed, ...]:
        """The ledgers that name the bookies now, also in the trash."""
        writable = [name for name in await self._metadata.bookies.writable() if name in self._leaving]
        if writable:
            raise _kept(writable)
        self.progress.enter(DecommissionPhase.MOVE)
        needs: list[LedgerNeed] = []
        async with aclosing(walk_ledgers(self._client)) as ledgers:
            async for ledger in ledgers:
                missing = () if ledger.metadata is None else self._missing(ledger.metadata)
                if ledger.metadata is not None and missing:
                    needs.append(need_of(ledger.ledger_id, ledger.metadata, missing))
        live = {need.ledger_id for need in needs}
        trashed = [one for one in (await leaving_trash(self._client, self._leaving)).movable if one.ledger_id not in live]
        needs += [need_of(one.ledger_id, one.metadata, self._missing(one.metadata)) for one in trashed]
        self._trashed = frozenset(one.ledger_id for one in trashed)
        self.progress.find(needs)
        return tuple(needs)

    async def _move(self, worker: ReplicationWorker, needs: Sequence[LedgerNeed]) -> tuple[Obstacle, ...]:
        """Mark the ledgers and repair each once; return what stays."""
        for need in needs:
            if need.ledger_id not in self._trashed:
                await self._metadata.under_replication.mark(need.ledger_id, need.missing)
        return await self._repair(worker, [need.ledger_id for need in needs])

    async def _repair(self, worker: ReplicationWorker, ledger_ids: Sequence[int]) -> tuple[Obstacle, ...]:
        async def repair(ledger_id: int) -> LedgerRepair:
            self.progress.begin(ledger_id)
            try:
                is_trashed = ledger_id in self._trashed
                return await (worker.repair_trashed(ledger_id, self._leaving) if is_trashed else worker.repair(ledger_id))
            finally:
                self.progress.end(ledger_id)

        repairs = await map_bounded(repair, ledger_ids, most=self._settings.ledgers_at_once, name="moved ledgers")
        for repair_of in repairs:
            self._entries += repair_of.entries
            self._size_bytes += repair_of.size_bytes
            if repair_of.fragments:
                self._ledgers[repair_of.ledger_id] = None
        return tuple(obstacle for repair_of in repairs if (obstacle := _obstacle_of(repair_of)) is not None)

    # The verdict.

    async def _judge(self, worker: ReplicationWorker, copies: BookieCopies) -> tuple[Obstacle, ...]:
        """Compare the lists of entries of all ledgers. Ledgers that lack copies are marked and repaired; they are compared again then.

        Nothing is compared while a worker holds a lock from before the bookies were leaving. It may have chosen one of them for copies, and
        names it at the end of the repair. The walk that follows sees that.
        """
        self.progress.enter(DecommissionPhase.VERDICT)
        held = self._locked_before & await self._metadata.under_replication.locks()
        if held:
            return tuple(_still_repaired(lock) for lock in sorted(held, key=lambda lock: lock.ledger_id))
        self._ledgers_checked = self._entries_checked = 0
        registered = await self._metadata.bookies.registered()
        listing = tuple(name for name in self._leaving if name in registered)
        obstacles: list[Obstacle] = []
        lacking: list[int] = []

        async def examine(ledger: WalkedLedger) -> _Findings:
            return await self._examine(copies, ledger, listing)

        chunk: list[WalkedLedger] = []
        async with aclosing(walk_ledgers(self._client)) as ledgers:
            async for ledger in ledgers:
                chunk.append(ledger)
                if len(chunk) == CHUNK:
                    await self._collect(await map_bounded(examine, chunk, most=LEDGERS_AT_ONCE, name="verdict"), obstacles, lacking)
                    chunk = []
        await self._collect(await map_bounded(examine, chunk, most=LEDGERS_AT_ONCE, name="verdict"), obstacles, lacking)
        # Read behind the walk: a ledger that the walk did not see was in the trash before or is there now.
        obstacles += obstacles_in_trash(await leaving_trash(self._client, self._leaving), await self._is_gone(registered))
        if lacking:
            failed = await self._repair(worker, lacking)
            known = {obstacle.ledger_id for obstacle in failed}
            obstacles += failed
            obstacles += [Obstacle(one, "bookies lacked copies, which were made again", True) for one in lacking if one not in known]
        return tuple(obstacles)

    async def _is_gone(self, registered: RegisteredBookies) -> Callable[[str], bool]:
        """Whether a bookie has left the cluster, or does so now."""
        cookies = frozenset(await self._metadata.cookies.bookie_ids())
        return lambda name: name in self._leaving or (name not in cookies and name not in registered)

    async def _collect(self, findings: Sequence[_Findings], obstacles: list[Obstacle], lacking: list[int]) -> None:
        for found in findings:
            self._ledgers_checked += 1
            self._entries_checked += found.entries
            obstacles += found.obstacles
            if found.lacking:
                await self._metadata.under_replication.mark(found.ledger_id, found.lacking)
                lacking.append(found.ledger_id)

    async def _examine(self, copies: BookieCopies, ledger: WalkedLedger, listing: Sequence[str]) -> _Findings:
        """Whether a ledger needs the copies of the leaving bookies that still run."""
        ledger_id, metadata = ledger.ledger_id, ledger.metadata
        if metadata is None:
            return _Findings(ledger_id, obstacles=(Obstacle(ledger_id, "its metadata cannot be decoded", False),))
        if names_any(metadata, self._leaving):
            return _Findings(ledger_id, obstacles=(Obstacle(ledger_id, "a writer named the bookie again", True),))
        entries = 0
        lacking: dict[str, None] = {}
        obstacles: list[Obstacle] = []
        for bookie_id in listing:
            answer = await listed(copies, ledger_id, bookie_id)
            if answer.silence:
                reason = f"bookie {bookie_id} is registered and does not list its entries: {answer.silence}"
                return _Findings(ledger_id, obstacles=(Obstacle(ledger_id, reason, True),))
            if not answer.stored.count:
                continue
            entries += answer.stored.count
            for one in await self._lacking(copies, ledger_id, metadata, answer.stored):
                if one.silence:
                    reason = f"bookie {one.bookie_id} should hold entries that {bookie_id} has, and does not answer: {one.silence}"
                    obstacles.append(Obstacle(ledger_id, reason, True))
                else:
                    lacking[one.bookie_id] = None
        return _Findings(ledger_id, entries, tuple(obstacles), tuple(lacking))

    async def _lacking(
        self, copies: BookieCopies, ledger_id: int, metadata: LedgerMetadata, stored: Availability
    ) -> tuple[LackingBookie, ...]:
        found = await lacking_by_lists(copies, ledger_id, metadata, stored)
        if found:
            try:
                await self._client.metadata_of(ledger_id)
            except NoSuchLedger:
                return ()  # It was deleted meanwhile, so it needs no copies.
        return found

    # The end.

    @fault_point("autorecovery.decommission_removal")
    async def remove(self) -> tuple[str, ...]:
        """Remove the bookies from the metadata; return those that still run.

        The request of a running bookie stays, or it would become writable again. A new bookie of the same id withdraws it when it starts.

        Raises:
            ArgumentError: a request was withdrawn meanwhile, so that the bookie may have got entries since the verdict.
        """
        self.progress.enter(DecommissionPhase.REMOVE)
        registered = await self._metadata.bookies.registered()
        for bookie_id in self._leaving:
            await self._delete_cookie(bookie_id, registered)
            await self._metadata.network_locations.unset(bookie_id)
            await self._metadata.machines.forget(bookie_id)
            if bookie_id not in registered:
                await self._metadata.read_only_requests.withdraw(bookie_id)
            self._client.host.trace("autorecovery.decommissioned", bookie=bookie_id, ledgers=self._ledgers_checked)
        return tuple(name for name in self._leaving if name in registered)

    async def _delete_cookie(self, bookie_id: str, registered: RegisteredBookies) -> None:
        """Delete the cookie, if there still is one, in a transaction with the check that the bookie is leaving. Raises ArgumentError."""
        requests, cookies, request = self._metadata.read_only_requests, self._metadata.cookies, self._requests[bookie_id]
        if bookie_id not in await cookies.bookie_ids():
            return  # Another decommission was quicker, or only ledgers named the bookie.
        if request is None or bookie_id in registered.writable or await requests.read(bookie_id) != request:
            raise _kept([bookie_id])
        try:
            await cookies.delete(bookie_id, checks=[requests.unchanged(bookie_id, request)])
        except BadVersion as error:
            raise _kept([bookie_id]) from error

    def report(self, start: DecommissionReport, obstacles: tuple[Obstacle, ...], running: tuple[str, ...]) -> DecommissionReport:
        """The result after the rounds."""
        return replace(
            start,
            is_removed=not obstacles,
            obstacles=obstacles,
            ledgers=len(self._ledgers),
            entries=self._entries,
            size_bytes=self._size_bytes,
            ledgers_checked=self._ledgers_checked,
            entries_checked=self._entries_checked,
            running=running,
        )


@dataclass(frozen=True, slots=True)
class _Findings:
    """The verdict on one ledger.

    Args:
        entries: the entries that the leaving bookies list.
        lacking: bookies that answered and lack copies.
    """

    ledger_id: int
    entries: int = 0
    obstacles: tuple[Obstacle, ...] = ()
    lacking: tuple[str, ...] = ()


def _obstacle_of(repair: LedgerRepair) -> Obstacle | None:
    """The reason why a repair did not move its ledger; None if it did."""
    match repair.outcome:
        case RepairOutcome.REPAIRED | RepairOutcome.NOT_MARKED | RepairOutcome.MARKED_AGAIN:
            return None
        case RepairOutcome.LOCKED:
            return Obstacle(repair.ledger_id, "another worker repairs it", True)
        case RepairOutcome.GRACE_PERIOD | RepairOutcome.HAS_WRITER | RepairOutcome.REFILLED:
            return Obstacle(repair.ledger_id, repair.reason, True)
        case RepairOutcome.FAILED:
            return Obstacle(repair.ledger_id, repair.reason, False)


def _still_repaired(lock: HeldLock) -> Obstacle:
    worker = f"worker {lock.worker}" if lock.worker else "a worker"
    return Obstacle(lock.ledger_id, f"{worker} repairs it since before the bookie was leaving, and may copy it there", True)


def _kept(bookie_ids: Sequence[str]) -> ArgumentError:
    return ArgumentError(
        f"{', '.join(bookie_ids)} is writable again, or was meanwhile: the request that it be read-only was withdrawn; the decommission "
        "ends, and its cookie stays"
    )


def _still_named(need: LedgerNeed) -> Obstacle:
    return Obstacle(need.ledger_id, f"it names {', '.join(need.missing)} again after every repair", True)
