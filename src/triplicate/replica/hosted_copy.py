"""One copy on a node. It is opened and follows or leads; when that ends by an error, the copy is opened again.

Faults of one copy do not affect the others. A copy that failed is opened again after a growing pause. A copy that is damaged, or whose
content is wrong, is set aside, and another is built from the log. A copy whose place in the log was not found is kept and verified.
"""

from __future__ import annotations

import asyncio
import os.path
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from triplicate.errors import FormatError, SessionExpired, TriplicateError
from triplicate.log import Logs, can_be_taken_over
from triplicate.replica.copy_folders import set_aside_folder
from triplicate.replica.core.snapshot_policy import SnapshotSettings
from triplicate.replica.election import Candidate, Election
from triplicate.replica.node_parts import NodeParts
from triplicate.replica.replica import Replica, ReplicaSettings
from triplicate.replica.replica_directory import Info, ReplicaDirectory
from triplicate.replica.snapshot_keeper import SnapshotKeeper, SnapshotMachine
from triplicate.replica.state_machine import Role, StateMachine, is_position_mismatch
from triplicate.runtime import Backoff, Metrics, TaskScope, deadline_after, shielded, sleep, timeout_at

FAILED = "failed"
"""The reported role of a copy that waits to be opened again after an error."""
LAG_INTERVAL_S = 5.0
READ_FIRST_S = 0.1
READ_LONGEST_S = 2.0
"""Bounds, in seconds, of the pause before the replica's entry is read again after an error."""
LEAVING_DELAY_S = 1.0
"""Delay of a copy that this node is to give up, in elections, in favour of the others."""
WITHDRAW_LIMIT_S = 3.0


class HostedMachine(StateMachine, Protocol):
    """A state machine whose copy is replaced by another where it fails."""

    @property
    def snapshots(self) -> SnapshotMachine:
        """Makes and loads the machine's snapshots."""

    def catch_up(self) -> None:
        """The copy is built again from the log, and not served before `caught_up`. Called before `open`."""

    def caught_up(self) -> None:
        """The copy has applied enough of the log to be served."""

    def failed(self, error: Exception) -> None:
        """The copy has failed, and another machine opens it in a moment."""

    async def drain(self) -> bool:
        """See `Replica`."""

    async def run_beside(self) -> None:
        """The work of the machine beside its replica. Ends by cancellation, or when there is none."""


Machine = TypeVar("Machine", bound=HostedMachine)


class StoppedCopy(NamedTuple):
    """The report of a copy that does not run."""

    role: str
    reason: str


class HostedCopy(ABC, Generic[Machine, Info]):
    """One copy on this node, with the tasks that run it. `run` it once.

    Args:
        logs: those of the node, acting for the replica.
        on_gone: called when the replica has no entry in the directory any more.
        replaces_another: whether this node has shown a copy of it before, so that the new one must catch up before it serves.
    """

    def __init__(
        self,
        parts: NodeParts,
        logs: Logs,
        directory: ReplicaDirectory[Info],
        info: Info,
        on_gone: Callable[[], None],
        *,
        replaces_another: bool = False,
    ) -> None:
        self.info = info
        self.leader: Candidate | None = None
        self.is_leaving = False
        """Whether this node is to give its copy up."""
        self._node = parts
        self._logs = logs
        self._directory = directory
        self._on_gone = on_gone
        self._entry_path = directory.entry_path(info.name)
        self.folder = os.path.dirname(directory.copy_file(info.name))
        self._election = Election(
            parts.host,
            parts.client.metadata.tree,
            self._entry_path,
            parts.settings.node_id,
            parts.address,
            delay_s=parts.settings.election_delay_s,
            holds_name=parts.holds_name,
            gone=parts.gone,
            lead_delay_s=self._lead_delay_s,
            resp_address=parts.resp_address,
            could_lead=lambda: can_be_taken_over(logs, info.log),
        )
        self._gauges = _CopyGauges(parts.metrics, directory.kind, info.name) if parts.metrics is not None else None
        self._diverged_at: int | None = None
        """Position of the copy when its content was last found to be wrong."""
        self._rebuilds = replaces_another
        """Whether the copy replaces one that was set aside or given up and has not caught up with the log since."""
        self.machine, self.replica = self._new_copy()

    @abstractmethod
    def _new_machine(self) -> Machine:
        """The machine that opens the copy. Called by the constructor, and again after each failure."""

    @abstractmethod
    def _entry_changed(self, entry: Info) -> None:
        """The entry was read again."""

    def _lead_delay_s(self) -> float | None:
        """The delay of this copy in elections; None for a copy that never leads."""
        placement, node = self.info.placement, self._node.settings.node_id
        if node in placement.readers:
            return None
        return LEAVING_DELAY_S if self.is_leaving or not placement.is_chosen(node) else 0.0

    @property
    def role(self) -> Role:
        return self.replica.role

    @property
    def leader_for_clients(self) -> Candidate | None:
        """`leader`, if it may lead. A node that has given way may not have heard yet of the leader that follows it."""
        leader = self.leader
        has_led = leader is not None and leader.node_id == self._node.settings.node_id and self.role is Role.FOLLOWER
        return None if has_led else leader

    @property
    def start_position(self) -> int:
        """Position of the local copy when the node began to host it, or to rebuild it."""
        return self.replica.start_position

    @property
    def opened(self) -> Awaitable[None]:
        """Done when the local copy is open, or cannot be."""
        return self.replica.opened

    def _new_copy(self) -> tuple[Machine, Replica]:
        parts, settings, log = self._node, self._node.settings, self.info.log
        machine = self._new_machine()
        snapshots = SnapshotKeeper(
            parts.host,
            self._logs,
            log,
            machine.snapshots,
            self._entry_path,
            settings.node_id,
            SnapshotSettings(
                settings.snapshot_log_bytes,
                settings.snapshot_interval_s,
                settings.snapshot_rate_bytes_per_s,
                settings.snapshot_keep_log_s,
                settings.snapshot_turn_s,
            ),
            parts.snapshot_turn,
            parts.metrics,
        )
        replica = Replica(
            parts.host,
            self._logs,
            log,
            machine,
            self._election,
            settings.node_id,
            ReplicaSettings(
                apply_entries=settings.apply_entries,
                apply_size_bytes=settings.apply_size_bytes,
                report_interval_s=settings.report_interval_s,
                retry_first_s=settings.retry_first_s,
                retry_longest_s=settings.retry_longest_s,
            ),
            on_role=self._role_changed,
            snapshots=snapshots,
            drain=machine.drain,
        )
        return machine, replica

    def _role_changed(self, role: Role) -> None:
        if self._gauges is not None:
            self._gauges.role(role)

    async def run(self) -> None:
        """Host the copy until cancelled.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        try:
            async with TaskScope(f"{self._directory.kind} {self.info.name}") as scope:
                scope.spawn(self._retry_forever("leader", self._watch_leader), name="leader")
                if self._gauges is not None:
                    scope.spawn(self._retry_forever("lag", partial(self._measure_lag, self._gauges)), name="lag")
                scope.spawn(self._watch_entry(), name="entry")
                await self._retry_forever("copy", self._run_copies)
        finally:
            await shielded(self.machine.close())

    def _trace(self, kind: str, **facts: object) -> None:
        self._node.host.trace(kind, node=self._node.settings.node_id, **{self._directory.kind: self.info.name}, **facts)

    def _backoff(self) -> Backoff:
        first_s, longest_s = self._node.settings.restart_first_s, self._node.settings.restart_longest_s
        chance = self._node.host.entropy.stream(f"node.restart.{self._directory.kind}.{self.info.name}")
        return Backoff(min(first_s, longest_s), longest_s, chance)

    async def _retry_forever(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run work that ends only by an error, and repeat it after each error, with a growing pause.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        backoff = self._backoff()
        while True:
            try:
                await work()
            except SessionExpired:
                raise
            except Exception as error:  # noqa: BLE001  a defect met by one copy must not end the others; it is traced
                self._trace("node.retry", during=what, error=repr(error))
            await sleep(self._node.host.clock, backoff.next_s())

    # The copy, opened again and again.

    async def _run_copies(self) -> None:
        clock, backoff = self._node.host.clock, self._backoff()
        while True:
            if self.replica.opened.done():
                self.machine, self.replica = self._new_copy()
            if self._rebuilds:
                self.machine.catch_up()
            began_s = clock.monotonic()
            error = await self._run_replica()
            if clock.monotonic() - began_s > self._node.settings.restart_longest_s:
                backoff.reset()
            report = await self._handle_end(error)
            await self._report_for(backoff.next_s(), report)

    async def _run_replica(self) -> Exception | None:
        """Run the replica until it ends; the error that ended it, None where it has diverged."""
        async with TaskScope(f"copy of {self.info.name}") as scope:
            scope.spawn(self.machine.run_beside(), name="machine")
            if self._rebuilds:
                scope.spawn(self._catch_up(), name="catch up")
            try:
                await self.replica.run()
            except SessionExpired:
                raise
            except Exception as error:  # noqa: BLE001  a defect met by one copy must not end the others; clients and operators see it
                return error
            finally:
                scope.cancel()
        return None

    async def _handle_end(self, error: Exception | None) -> StoppedCopy:
        """Handle the end of a copy; the report until it is opened again."""
        if error is not None:
            self.machine.failed(error)
            self._trace("node.copy_failed", error=repr(error))
            return StoppedCopy(FAILED, str(error) or repr(error))
        reason, position = self.replica.reason or "", self.replica.position
        if is_position_mismatch(reason):
            return StoppedCopy(Role.DIVERGED.value, reason)
        if self._diverged_at is not None and position <= self._diverged_at:
            # A copy built from the log alone fails at the same position: the log or this release is at fault. A restart tries again.
            self._trace("node.copy_given_up", position=position, reason=reason)
            await self._report_for(None, StoppedCopy(Role.DIVERGED.value, reason))
        self._diverged_at = position
        self._rebuilds = True
        await self._set_aside(reason)
        return StoppedCopy(Role.DIVERGED.value, reason)

    async def _set_aside(self, reason: str) -> None:
        worker = self._node.host.new_worker(f"{self._directory.kind}-{self.info.name}-aside")
        try:
            place = await worker.run(set_aside_folder, self._node.host.disk, self.folder, self._node.settings.copies_kept)
        except OSError as error:
            # The copy stays. It is found wrong again when it is opened, and this is tried again.
            self._trace("node.copy_not_set_aside", error=repr(error))
        else:
            self._trace("node.copy_set_aside", place=place, reason=reason)
        finally:
            await worker.close()

    async def _report_for(self, seconds: float | None, report: StoppedCopy) -> None:
        """Report for a time in seconds, or until cancelled with None."""
        clock = self._node.host.clock
        try:
            async with TaskScope(f"report of {self.info.name}") as scope:
                scope.spawn(self._retry_forever("report", lambda: self._report(report)), name="report")
                while seconds is None:
                    await sleep(clock, self._node.settings.restart_longest_s)
                await sleep(clock, seconds)
                scope.cancel()
        except asyncio.CancelledError:
            await shielded(self._withdraw())
            raise

    async def _report(self, report: StoppedCopy) -> None:
        while True:
            await self._election.report(self.replica.position, report.role, report.reason)
            await sleep(self._node.host.clock, self._node.settings.report_interval_s)

    async def _withdraw(self) -> None:
        """Withdraw the report of a copy that does not run."""
        try:
            async with timeout_at(deadline_after(self._node.host.clock, WITHDRAW_LIMIT_S)):
                await self._election.withdraw()
        except (TriplicateError, TimeoutError) as error:
            self._trace("node.withdraw", error=repr(error))

    async def _catch_up(self) -> None:
        """Serve a copy that is built again once it has reached the end that the log had when the rebuild began."""
        clock, interval_s = self._node.host.clock, self._node.settings.report_interval_s
        await self.replica.opened
        end: int | None = None
        while end is None or self.machine.position < end:
            if end is None:
                try:
                    end = await self._logs.end_offset(self.info.log)
                except TriplicateError as error:
                    self._trace("node.retry", during="end of the log", error=repr(error))
            await sleep(clock, interval_s)
        self.machine.caught_up()
        self._rebuilds = False
        self._trace("node.copy_built", position=self.machine.position)

    # Other nodes.

    async def _watch_leader(self) -> None:
        """Keep `leader` up to date, for hints to clients."""
        watch = self._node.client.metadata.tree.watch(f"{self._entry_path}/leader")
        try:
            while True:
                try:
                    self.leader = await self._election.leader()
                except FormatError as error:
                    self.leader = None
                    self._trace("node.leader_unreadable", error=str(error))
                await watch.changed()
        finally:
            watch.close()

    async def _read_entry(self) -> None:
        entry = await self._directory.read(self.info.name)
        if entry is None or entry.identity != self.info.identity:
            self._on_gone()
        else:
            self._entry_changed(entry)

    async def _watch_entry(self) -> None:
        """Follow the replica's entry. While the metadata do not answer, the copy goes on with what was read last.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        host = self._node.host
        watch = self._node.client.metadata.tree.watch(self._entry_path)
        backoff = Backoff(READ_FIRST_S, READ_LONGEST_S, host.entropy.stream(f"node.entry.{self.info.name}"))
        try:
            while True:
                try:
                    await self._read_entry()
                except SessionExpired:
                    raise
                except TriplicateError as error:
                    self._trace("node.retry", during="entry", error=repr(error))
                    await sleep(host.clock, backoff.next_s())
                    continue
                backoff.reset()
                await watch.changed()
        finally:
            watch.close()

    async def _measure_lag(self, gauges: _CopyGauges) -> None:
        """Update the metric of the records that the copy lacks."""
        while True:
            leads = self.role is Role.LEADER
            end = None if leads else await self._election.leader_position()
            gauges.lag.set(0 if leads or end is None else max(0, end - self.machine.position))
            await sleep(self._node.host.clock, LAG_INTERVAL_S)


class _CopyGauges:
    def __init__(self, metrics: Metrics, kind: str, name: str) -> None:
        role = metrics.gauge(f"triplicate_{kind}_role", "1 for the role that this node's copy is in, 0 for others.", (kind, "role"))
        self._roles = {one: role.labels(name, one.value) for one in Role}
        self._diverged = metrics.gauge(
            f"triplicate_{kind}_diverged", "1 while this node's copy is wrong, damaged or suspected, and not served.", (kind,)
        ).labels(name)
        lag = "Log records that the leader has reported and this copy lacks."
        self.lag = metrics.gauge(f"triplicate_{kind}_lag", lag, (kind,)).labels(name)
        self._diverged.set(0)

    def role(self, role: Role) -> None:
        for one, gauge in self._roles.items():
            gauge.set(1 if one is role else 0)
        if role is not Role.STARTING:
            self._diverged.set(1 if role is Role.DIVERGED else 0)
