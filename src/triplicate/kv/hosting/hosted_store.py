"""One key-value store on a node. Its copy is opened and follows or leads; when that ends by an error, the copy is opened again.

Faults of one store do not affect the others. A copy that failed is opened again after a growing pause. A copy that is damaged, or whose
content is wrong, is set aside, and another is built from the log. A copy whose place in the log was not found is kept and verified.
"""

from __future__ import annotations

import asyncio
import os.path
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from triplicate.config import StoreSettings
from triplicate.errors import FormatError, NoSuchStore, SessionExpired, TriplicateError
from triplicate.kv.engine.replicated_store import ReplicatedStore
from triplicate.kv.hosting.store_directory import StoreInfo, log_purpose, read_store
from triplicate.kv.storage.copy_folder import store_folder
from triplicate.metadata import own_paths
from triplicate.replica import (
    STANDS_AT,
    Candidate,
    Election,
    NodeParts,
    Replica,
    ReplicaSettings,
    Role,
    SnapshotKeeper,
    SnapshotSettings,
    set_aside_copy,
)
from triplicate.runtime import Backoff, TaskScope, deadline_after, shielded, sleep, timeout_at

FAILED = "failed"
"""The reported role of a copy that waits to be opened again after an error."""
WITHDRAW_LIMIT_S = 3.0


class StoppedStore(NamedTuple):
    """The report of a copy that does not run."""

    role: str
    reason: str


class HostedStore:
    """One store on this node, with the tasks that run it. `run` it once.

    Args:
        on_drop: called when the store is being dropped.
    """

    def __init__(self, parts: NodeParts, settings: StoreSettings, info: StoreInfo, on_drop: Callable[[], None]) -> None:
        self.info = info
        self.leader: Candidate | None = None
        self.is_dropping = False
        self._parts = parts
        self._settings = settings
        self._on_drop = on_drop
        self._logs = parts.logs.acting_for(log_purpose(info))
        self.path = store_folder(parts.settings.directory, info.name)
        self._node_path = own_paths.store_path(parts.client.metadata.own_root, info.name)
        self._election = Election(
            parts.host,
            parts.client.metadata.tree,
            self._node_path,
            parts.settings.node_id,
            parts.address,
            delay_s=parts.settings.election_delay_s,
            holds_name=parts.holds_name,
            gone=parts.gone,
            resp_address=parts.resp_address,
        )
        self._diverged_at: int | None = None
        """Position of the copy when its content was last found to be wrong."""
        self._rebuilds = False
        """Whether the copy replaces one that was set aside and has not caught up with the log since."""
        self.store, self.replica = self._new_copy()

    @property
    def role(self) -> Role:
        return self.replica.role

    @property
    def opened(self) -> Awaitable[None]:
        """Done when the local copy is open, or cannot be."""
        return self.replica.opened

    def _new_copy(self) -> tuple[ReplicatedStore, Replica]:
        parts, settings, info = self._parts, self._parts.settings, self.info
        store = ReplicatedStore(
            parts.host,
            info.name,
            info.identity,
            self.path,
            self._settings,
            settings,
            metrics=parts.metrics,
            lease_s=info.lease_ms / 1000,
        )
        store.find_leader = lambda: self.leader
        snapshots = SnapshotKeeper(
            parts.host,
            self._logs,
            info.log,
            store.snapshots,
            self._node_path,
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
            info.log,
            store,
            self._election,
            settings.node_id,
            ReplicaSettings(
                apply_entries=settings.apply_entries,
                apply_size_bytes=settings.apply_size_bytes,
                report_interval_s=settings.report_interval_s,
                retry_first_s=settings.retry_first_s,
                retry_longest_s=settings.retry_longest_s,
            ),
            snapshots=snapshots,
        )
        return store, replica

    async def run(self) -> None:
        """Host the store until cancelled.

        Raises:
            SessionExpired: the metadata tree was closed.
        """
        try:
            async with TaskScope(f"store {self.info.name}") as scope:
                scope.spawn(self._retry_forever("leader", self._watch_leader), name="leader")
                scope.spawn(self._retry_forever("drop", self._watch_drop), name="drop")
                await self._retry_forever("copy", self._run_copies)
        finally:
            await shielded(self.store.close())

    def _trace(self, kind: str, **facts: object) -> None:
        self._parts.host.trace(kind, node=self._parts.settings.node_id, store=self.info.name, **facts)

    def _backoff(self) -> Backoff:
        first_s, longest_s = self._parts.settings.restart_first_s, self._parts.settings.restart_longest_s
        return Backoff(min(first_s, longest_s), longest_s, self._parts.host.entropy.stream(f"node.restart.store.{self.info.name}"))

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
            except Exception as error:  # noqa: BLE001  a defect met by one store must not end the others; it is traced
                self._trace("kv.retry", during=what, error=repr(error))
            await sleep(self._parts.host.clock, backoff.next_s())

    # The copy, opened again and again.

    async def _run_copies(self) -> None:
        clock, backoff = self._parts.host.clock, self._backoff()
        while True:
            if self.replica.opened.done():
                self.store, self.replica = self._new_copy()
            if self._rebuilds:
                self.store.catch_up(f"this node's copy of store {self.info.name!r} is being built again from the log")
            began_s = clock.monotonic()
            error = await self._run_replica()
            if clock.monotonic() - began_s > self._parts.settings.restart_longest_s:
                backoff.reset()
            report = await self._handle_end(error)
            await self._report_for(backoff.next_s(), report)

    async def _run_replica(self) -> Exception | None:
        """Run the replica until it ends; the error that ended it, None where it has diverged."""
        async with TaskScope(f"copy of {self.info.name}") as scope:
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

    async def _handle_end(self, error: Exception | None) -> StoppedStore:
        """Handle the end of a copy; the report until it is opened again."""
        if error is not None:
            self.store.fail(f"this node's copy of store {self.info.name!r} has failed ({error}) and is opened again soon")
            self._trace("kv.copy_failed", error=repr(error))
            return StoppedStore(FAILED, str(error) or repr(error))
        reason, position = self.replica.reason or "", self.replica.position
        if reason.startswith(STANDS_AT):
            return StoppedStore(Role.DIVERGED.value, reason)
        if self._diverged_at is not None and position <= self._diverged_at:
            # A copy built from the log alone fails at the same position: the log or this release is at fault. A restart tries again.
            self._trace("kv.copy_given_up", position=position, reason=reason)
            await self._report_for(None, StoppedStore(Role.DIVERGED.value, reason))
        self._diverged_at = position
        self._rebuilds = True
        await self._set_aside(reason)
        return StoppedStore(Role.DIVERGED.value, reason)

    async def _set_aside(self, reason: str) -> None:
        worker = self._parts.host.new_worker(f"kv-{self.info.name}-aside")
        file = os.path.join(self.path, "CURRENT")
        try:
            place = await worker.run(set_aside_copy, self._parts.host.disk, file, self._parts.settings.copies_kept)
        except OSError as error:
            # The copy stays. It is found wrong again when it is opened, and this is tried again.
            self._trace("kv.copy_not_set_aside", error=repr(error))
        else:
            self._trace("kv.copy_set_aside", place=place, reason=reason)
        finally:
            await worker.close()

    async def _report_for(self, seconds: float | None, report: StoppedStore) -> None:
        """Report for a time in seconds, or until cancelled with None."""
        clock = self._parts.host.clock
        try:
            async with TaskScope(f"report of {self.info.name}") as scope:
                scope.spawn(self._retry_forever("report", lambda: self._report(report)), name="report")
                while seconds is None:
                    await sleep(clock, self._parts.settings.restart_longest_s)
                await sleep(clock, seconds)
                scope.cancel()
        except asyncio.CancelledError:
            await shielded(self._withdraw())
            raise

    async def _report(self, report: StoppedStore) -> None:
        while True:
            await self._election.report(self.replica.position, report.role, report.reason)
            await sleep(self._parts.host.clock, self._parts.settings.report_interval_s)

    async def _withdraw(self) -> None:
        """Withdraw the report of a copy that does not run."""
        try:
            async with timeout_at(deadline_after(self._parts.host.clock, WITHDRAW_LIMIT_S)):
                await self._election.withdraw()
        except (TriplicateError, TimeoutError) as error:
            self._trace("kv.withdraw", error=repr(error))

    async def _catch_up(self) -> None:
        """Serve the copy once it has reached the end that the log had when the rebuild began."""
        clock, interval_s = self._parts.host.clock, self._parts.settings.report_interval_s
        await self.replica.opened
        end: int | None = None
        while end is None or self.store.position < end:
            if end is None:
                try:
                    end = await self._parts.logs.end_offset(self.info.log)
                except TriplicateError as error:
                    self._trace("kv.retry", during="end of the log", error=repr(error))
            await sleep(clock, interval_s)
        self.store.caught_up()
        self._rebuilds = False
        self._trace("kv.copy_built", position=self.store.position)

    # Other nodes.

    async def _watch_leader(self) -> None:
        """Keep `leader` up to date, for hints to clients."""
        watch = self._parts.client.metadata.tree.watch(f"{self._node_path}/leader")
        try:
            while True:
                try:
                    self.leader = await self._election.leader()
                except FormatError as error:
                    self.leader = None
                    self._trace("kv.leader_unreadable", error=str(error))
                await watch.changed()
        finally:
            watch.close()

    async def _watch_drop(self) -> None:
        """Notice that the store is being dropped."""
        watch = self._parts.client.metadata.tree.watch(self._node_path)
        try:
            while True:
                try:
                    found = await read_store(self._parts.client, self.info.name)
                except NoSuchStore:
                    self._on_drop()
                else:
                    if found.identity == self.info.identity and found.is_dropping:
                        self.is_dropping = True
                        self._on_drop()
                await watch.changed()
        finally:
            watch.close()
