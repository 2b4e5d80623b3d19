"""A replica: it follows the log, stands for election, takes the log over, leads until it is fenced, and follows again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import (
    ArgumentError,
    Diverged,
    LogFenced,
    MetadataError,
    OffsetGap,
    OffsetTruncated,
    ReplicaError,
    SessionExpired,
    TriplicateError,
)
from triplicate.log import LogEntry, LogReader, Logs, LogWriter
from triplicate.replica.core.apply_pacing import ApplyPacing
from triplicate.replica.election import Election
from triplicate.replica.snapshot_keeper import SnapshotKeeper
from triplicate.replica.state_machine import STANDS_AT, Role, StateMachine
from triplicate.runtime import Backoff, Host, TaskScope, deadline_after, fault_point, resolve, shielded, sleep, timeout_at

_TAKE_OVER_READ_S = 30.0
VERIFY_READ_S = 30.0
"""Time limit for reading the entry before the position of a copy under suspicion."""
LEAVE_LIMIT_S = 3.0
"""Time limit for deleting the nodes of a replica that ends. Otherwise they expire with its session."""
HANDOVER_PAUSE_S = 1.0
"""Pause after a handover that did not take place, before another is tried."""
GIVE_UP_LIMIT_S = 10.0
"""Time limit for closing the log of a leader that resigns. Otherwise the next take-over recovers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """Intervals and limits of one replica."""

    apply_entries: int = 64
    apply_size_bytes: int = 4 * 1024 * 1024
    report_interval_s: float = 1.0
    noop_wait_s: float = 0.05
    """Under load, the no-op that shows followers the last entry waits this long for the next entry."""
    confirm_lead_s: float = 2.0
    """A leader without its node in the metadata gives way if its log does not answer within this time."""
    retry_first_s: float = 0.05
    retry_longest_s: float = 2.0
    handicap_first_s: float = 1.0
    """Delay of a node in the next election after its own copy failed while it led. It doubles with each such failure."""
    handicap_longest_s: float = 30.0


class _LocalFault(NamedTuple):
    """The copy could not be written while this node led. It ends when the node applies records, or leads again."""

    reason: str
    handicap_s: float
    """Additional delay of this node in the next election."""


_NO_FAULT = _LocalFault("", 0.0)


class _FetchedEntries(NamedTuple):
    """The entries of one application."""

    entries: Sequence[LogEntry]
    size_bytes: int
    """Of the records before compression; 0 if there are only control entries."""
    is_full: bool
    """Whether a limit ended them, so that further entries may be ready."""


class _HandedOver(ReplicaError):
    """This leader gives way to another node. Everything that ran has ended."""


class _LogSilent(ReplicaError):
    """The log does not answer this leader, which gives way."""


class Replica:
    """Runs one state machine over one log. `run` ends when it is cancelled or the copy has diverged. It is called once, because it closes
    the machine.

    Args:
        log: the log's name.
        owner: this node's name, recorded as the log's owner.
        on_role: called on the loop with each new role.
        snapshots: makes and loads the machine's snapshots; None for a machine without snapshots.
        drain: makes the leading machine accept nothing more and waits for what runs; returns whether that has ended. If it has not, the
            machine accepts again. None: the leader ignores requests that another node lead.
    """

    def __init__(
        self,
        host: Host,
        logs: Logs,
        log: str,
        machine: StateMachine,
        election: Election,
        owner: str,
        settings: ReplicaSettings | None = None,
        on_role: Callable[[Role], None] = lambda role: None,
        snapshots: SnapshotKeeper | None = None,
        drain: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self._host = host
        self._logs = logs
        self._log = log
        self._machine = machine
        self._election = election
        self._owner = owner
        self._settings = settings or ReplicaSettings()
        self._on_role = on_role
        self._snapshots = snapshots
        self._drain = drain
        chance = host.entropy.stream(f"replica.retry.{log}")
        self._backoff = Backoff(self._settings.retry_first_s, self._settings.retry_longest_s, chance)
        self._handicap = Backoff(self._settings.handicap_first_s, self._settings.handicap_longest_s, chance)
        self._fault = _NO_FAULT
        self.role = Role.STARTING
        self._role_changed = asyncio.Event()
        """Wakes the reports, so that a new role is reported at once."""
        self._awaited = asyncio.Event()
        """Set by `hurry`, and cleared by the pause that it ends."""
        self._in_doubt = asyncio.Event()
        """Set when the metadata or the log owe a leader an answer: it then finds out whether it still leads."""
        self.start_position = 0
        """Position of the local copy when this node started."""
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Resolved when the local state is open or opening has failed."""
        self.reason: str | None = None
        """Why the copy has diverged, or None."""

    @property
    def position(self) -> int:
        """Offset after the last record applied."""
        return self._machine.position

    def hurry(self) -> None:
        """A session waits for a later position: apply the next records after a short pause, see `ApplyPacing`. Called on the loop."""
        self._awaited.set()

    async def run(self) -> None:
        """Run until cancelled. Returns when the copy has diverged.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        try:
            self.start_position = await self._machine.open()
            self._opened()
            if self._machine.suspicion is not None:
                await self._verify(self._machine.suspicion)
            while True:
                await self._follow()
                await self._lead()
        except Diverged as error:
            await self._diverge(str(error))
        finally:
            self._opened()
            if self.role is not Role.DIVERGED:
                self._become(Role.STOPPED)
            await shielded(self._leave())

    def _opened(self) -> None:
        resolve(self.opened, None)

    async def _leave(self) -> None:
        try:
            async with timeout_at(deadline_after(self._host.clock, LEAVE_LIMIT_S)):
                await self._election.withdraw()
        except (TriplicateError, TimeoutError) as error:
            self._host.trace("replica.withdraw", log=self._log, error=repr(error))
        await self._machine.close()

    def _become(self, role: Role) -> None:
        if role is not self.role:
            self.role = role
            self._host.trace("replica.role", log=self._log, role=role.value, position=self.position)
            self._role_changed.set()
            self._on_role(role)

    async def _diverge(self, reason: str) -> None:
        self.reason = reason
        self._become(Role.DIVERGED)
        self._host.trace("replica.diverged", log=self._log, reason=reason, position=self.position)
        await self._machine.diverge(reason)

    # A copy under suspicion.

    async def _verify(self, suspicion: str) -> None:
        """Read the entry before the position from the log and let the machine compare it. Returns when the copy may be used.

        Raises:
            Diverged: the log does not reach the position, or holds another entry before it.
        """
        while True:
            try:
                await self._machine.verify(await self._entry_before(self.position))
            except (Diverged, SessionExpired):
                raise
            except (OffsetTruncated, OffsetGap, ArgumentError) as error:
                if not isinstance(error, OffsetTruncated) or not await self._load_snapshot():
                    raise self._misplaced(error) from error
                return
            except TriplicateError as error:
                await self._pause("verify", error)
            else:
                self._host.trace("replica.verified", log=self._log, position=self.position, suspicion=suspicion)
                return

    async def _entry_before(self, position: int) -> LogEntry | None:
        """The entry that ends at a position where reading can begin; None if the position is 0."""
        async with await self._logs.reader(self._log, position):
            if position == 0:
                return None
        async with await self._logs.reader(self._log, position - 1) as reader:
            entry = await reader.next_entry(VERIFY_READ_S)
        if entry is None:
            raise Diverged(f"{STANDS_AT} {position}, and the log shows nothing before that offset within {VERIFY_READ_S:.0f} s")
        return entry

    def _misplaced(self, error: TriplicateError) -> Diverged:
        return Diverged(f"{STANDS_AT} {self.position}, where the log cannot be read: {error}")

    # Following.

    async def _follow(self) -> None:
        """Follow the log until this node is elected."""
        ready = False
        while True:
            try:
                if not ready:
                    await self._load_snapshot()
                    await self._machine.follow()
                    ready = True
                    self._become(Role.FOLLOWER)
                async with TaskScope(f"follow {self._log}") as scope:
                    scope.spawn(self._tail(), name="tail")
                    scope.spawn(self._report(), name="report")
                    if self._snapshots is not None:
                        scope.spawn(self._snapshots.run(), name="snapshots")
                    await self._elected()
                    scope.cancel()
                return
            except (Diverged, SessionExpired):
                raise
            except (OffsetTruncated, OffsetGap, ArgumentError) as error:
                # The reader has read the head again after a sync, so a metadata server that is behind is not the cause.
                if not isinstance(error, OffsetTruncated) or not await self._load_snapshot():
                    raise self._misplaced(error) from error
                ready = False
            except TriplicateError as error:
                await self._pause("follow", error)

    async def _load_snapshot(self) -> bool:
        """Load a snapshot if the log begins after this copy, or takes longer to read. Returns whether the copy was replaced."""
        while self._snapshots is not None:
            try:
                return await self._snapshots.load()
            except SessionExpired:
                raise
            except TriplicateError as error:
                await self._pause("load a snapshot", error)
        return False

    async def _elected(self) -> None:
        """Wait until this node is elected. Errors of the election are retried, so that the node continues to follow."""
        chance = self._host.entropy.stream(f"replica.retry.{self._log}")
        backoff = Backoff(self._settings.retry_first_s, self._settings.retry_longest_s, chance)
        while True:
            try:
                return await self._election.elected(lambda: self.position, self._fault.handicap_s)
            except SessionExpired:
                raise
            except TriplicateError as error:
                self._host.trace("replica.retry", log=self._log, during="election", error=repr(error))
                await sleep(self._host.clock, backoff.next_s())

    async def _report(self, writer: LogWriter | None = None) -> None:
        """Report the position and the role at intervals, and a new role at once.

        Args:
            writer: of a leader. It is in doubt when the metadata or its log do not answer.
        """
        clock, interval_s = self._host.clock, self._settings.report_interval_s
        limit_s = None if writer is None else self._settings.confirm_lead_s
        while True:
            self._role_changed.clear()
            try:
                async with timeout_at(deadline_after(clock, limit_s)):
                    await self._election.report(self.position, self.role.value, self._fault.reason)
            except SessionExpired:
                raise
            except (TriplicateError, TimeoutError) as error:
                self._host.trace("replica.retry", log=self._log, during="report", error=repr(error))
                self._in_doubt.set()
            if writer is not None and writer.waited_s(clock.monotonic()) >= interval_s:
                self._in_doubt.set()
            with contextlib.suppress(TimeoutError):
                async with timeout_at(deadline_after(clock, interval_s)):
                    await self._role_changed.wait()

    async def _tail(self) -> None:
        clock, pacing = self._host.clock, ApplyPacing()
        async with await self._logs.reader(self._log, self.position, include_control=True) as reader:
            while True:
                await self._pause_between(pacing)
                fetched = await self._fetch_next(reader, None)
                began = clock.monotonic()
                await self._apply(fetched)
                if fetched.size_bytes:
                    pacing.applied(began, clock.monotonic(), is_behind=fetched.is_full)
                self._backoff.reset()

    async def _pause_between(self, pacing: ApplyPacing) -> None:
        """Pause before the next application. The reader is idle meanwhile: its next poll finds several entries, read in one request."""
        clock = self._host.clock
        wait_s = pacing.wait_s(clock.monotonic())
        if wait_s <= 0:
            return
        with contextlib.suppress(TimeoutError):
            async with timeout_at(deadline_after(clock, wait_s)):
                await self._awaited.wait()
        if self._awaited.is_set():
            self._awaited.clear()
            pacing.hurry()
            await sleep(clock, pacing.wait_s(clock.monotonic()))

    async def _fetch_next(self, reader: LogReader, timeout_s: float | None) -> _FetchedEntries:
        """The next entry and those already fetched, within the limits of one application. Empty if none arrived in time."""
        entries: list[LogEntry] = []
        size = 0
        entry = await reader.next_entry(timeout_s)
        while entry is not None:
            entries.append(entry)
            size += _size(entry)
            if len(entries) >= self._settings.apply_entries or size >= self._settings.apply_size_bytes:
                return _FetchedEntries(entries, size, is_full=True)
            entry = await reader.next_entry(0.0)
        return _FetchedEntries(entries, size, is_full=False)

    async def _apply(self, fetched: _FetchedEntries) -> None:
        # A cancellation waits for a running apply, because the local copy must not change after it is opened again.
        await shielded(self._machine.apply(fetched.entries))
        if fetched.size_bytes:
            self._handicap.reset()
            self._fault = _NO_FAULT

    async def _pause(self, during: str, error: BaseException) -> None:
        self._host.trace("replica.retry", log=self._log, during=during, error=repr(error))
        await sleep(self._host.clock, self._backoff.next_s())

    # Leading.

    @fault_point("replica.take_over")
    async def _lead(self) -> None:
        """Take the log over, replay it, and serve until the leadership is lost."""
        self._become(Role.CANDIDATE)
        try:
            writer = await self._logs.writer(self._log, owner=self._owner)
            writer.idle_noop.wait_for_entries(self._settings.noop_wait_s)
        except SessionExpired:
            raise
        except TriplicateError as error:
            await self._resign()
            await self._pause("take-over", error)
            return
        failure: TriplicateError | None = None
        try:
            await self._replay(writer)
            async with TaskScope(f"lead {self._log}") as scope:
                scope.spawn(self._report(writer), name="report")
                scope.spawn(self._keep_leader_node(writer), name="watch sign")
                if self._snapshots is not None:
                    scope.spawn(self._snapshots.run(), name="snapshots")
                    scope.spawn(self._snapshots.truncate_log(), name="truncation")
                if self._drain is not None:
                    scope.spawn(self._hand_over(self._drain), name="handover")
                await self._machine.lead(writer, self._serves)
        except (Diverged, SessionExpired):
            raise
        except _HandedOver as handed_over:
            self._host.trace("replica.handed_over", log=self._log, position=self.position, to=str(handed_over))
        except LogFenced as error:
            self._host.trace("replica.fenced", log=self._log, epoch=writer.epoch, error=str(error))
        except TriplicateError as error:
            failure = error
        finally:
            self._become(Role.FOLLOWER)
            await shielded(self._give_up(writer, answers=not isinstance(failure, _LogSilent)))
        if failure is not None:
            if writer.failure is None:
                # The log has not failed, so this node's copy has, for example by a full disk. Another node may have room.
                self._fault = _LocalFault(str(failure), self._handicap.next_s())
            await self._pause("lead", failure)

    def _serves(self) -> None:
        self._fault = _NO_FAULT
        self._become(Role.LEADER)
        self._backoff.reset()

    async def _hand_over(self, drain: Callable[[], Awaitable[bool]]) -> None:
        """Wait for a request that another node lead, and end this leadership when nothing runs in it any more.

        Raises:
            _HandedOver: the other node should lead. Its text is the node's id.
        """
        while True:
            try:
                requested = await self._election.asked_to_hand_over(lambda: self.position)
                if self.role is Role.LEADER and await drain():
                    raise _HandedOver(requested)
            except MetadataError as error:
                self._host.trace("replica.retry", log=self._log, during="handover", error=repr(error))
            else:
                self._host.trace("replica.not_handed_over", log=self._log, to=requested)
            await sleep(self._host.clock, HANDOVER_PAUSE_S)

    async def _keep_leader_node(self, writer: LogWriter) -> None:
        """Recreate the leader's node whenever it has expired with a session, unless another node has taken the log over.

        Without requests, a leader would not notice its replacement otherwise, and clients would still use it. A leader that the metadata
        do not answer may have been replaced as well.

        Raises:
            LogFenced: another node leads. ReplicaError: it is not known whether another node leads.
        """
        settings, gone = self._settings, "this node's sign as the leader is gone"
        while True:
            try:
                await self._election.lost(self._in_doubt, settings.report_interval_s)
                await self._confirm_lead(writer, settings.confirm_lead_s, gone)
                if await self._election.recreate_leader_node(self.position):
                    await self._confirm_lead(writer, settings.confirm_lead_s, gone)
            except (LogFenced, SessionExpired):
                raise
            except MetadataError as error:
                self._host.trace("replica.retry", log=self._log, during="watch sign", error=repr(error))
                await self._confirm_unseen(writer)
            await sleep(self._host.clock, settings.report_interval_s)

    async def _confirm_unseen(self, writer: LogWriter) -> None:
        """Append to the log while the metadata do not show who leads.

        The log has the time of a bookie that is slow (`client.add_timeout_s`), counted from the oldest entry that waits. Raises as
        `_confirm_lead`.
        """
        remaining_s = self._logs.client.add_timeout_s - writer.waited_s(self._host.clock.monotonic())
        await self._confirm_lead(writer, max(remaining_s, self._settings.confirm_lead_s), "the metadata do not answer")

    async def _confirm_lead(self, writer: LogWriter, limit_s: float, doubt: str) -> None:
        """Append to the log, which proves that no other node has taken it over.

        A leader that is cut off from the bookies has no answer, not even that it is fenced. Clients that still reach it would wait there
        instead of at its successor.

        Args:
            doubt: why it may have been, for the error.

        Raises:
            LogFenced: another node leads. ReplicaError: the log does not answer in time.
        """
        try:
            async with timeout_at(deadline_after(self._host.clock, limit_s)):
                await writer.noop()
        except TimeoutError:
            raise _LogSilent(
                f"{doubt}, and log {self._log!r} has not answered for {writer.waited_s(self._host.clock.monotonic()):.1f} s: "
                "another node may lead, and this one gives way"
            ) from None

    async def _give_up(self, writer: LogWriter, *, answers: bool) -> None:
        """Give up the log: close it if all records are acknowledged, abandon it if an outcome is unknown, or if the log does not answer."""
        try:
            # The outer limit bounds the clean-up of `close` after the inner one has interrupted it.
            clock = self._host.clock
            async with (
                timeout_at(deadline_after(clock, GIVE_UP_LIMIT_S + LEAVE_LIMIT_S)),
                timeout_at(deadline_after(clock, GIVE_UP_LIMIT_S)),
            ):
                if answers and writer.failure is None and writer.acknowledged_offset == writer.next_offset:
                    await writer.close()
                else:
                    await writer.abandon()
        except (TriplicateError, TimeoutError) as error:
            self._host.trace("replica.give_up", log=self._log, error=repr(error))
        await self._resign()

    async def _resign(self) -> None:
        """Delete the leader's node. On failure it expires with the session, and delays the next election until then."""
        try:
            async with timeout_at(deadline_after(self._host.clock, LEAVE_LIMIT_S)):
                await self._election.resign()
        except (TriplicateError, TimeoutError) as error:
            self._host.trace("replica.resign", log=self._log, error=repr(error))

    @fault_point("replica.replay")
    async def _replay(self, writer: LogWriter) -> None:
        """Apply all records before the writer's first one. They were acknowledged, or recovered by the take-over."""
        async with await self._logs.reader(self._log, self.position, include_control=True) as reader:
            while self.position < writer.start_offset:
                fetched = await self._fetch_next(reader, _TAKE_OVER_READ_S)
                if not fetched.entries:
                    raise ReplicaError(f"log {self._log}: offset {self.position} cannot be read within {_TAKE_OVER_READ_S:.0f} s")
                await self._apply(fetched)
        if self.position > writer.start_offset:
            raise Diverged(f"{STANDS_AT} {self.position}, beyond the end of its log at {writer.start_offset}")


def _size(entry: LogEntry) -> int:
    return 0 if entry.is_control else entry.view.header.raw_length
