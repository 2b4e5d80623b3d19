"""One bookie: everything of this room put together, started and stopped in order."""

from __future__ import annotations

import asyncio
import errno

from triplicate.bookie.background import keep_running
from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.digest_checks import DigestChecks
from triplicate.bookie.directories import Directories
from triplicate.bookie.disk_guard import DiskGuard
from triplicate.bookie.journal.journal_item import JournalItem
from triplicate.bookie.limbo import Limbo
from triplicate.bookie.offline.inspection import cannot_listen, cannot_start, check_data, check_files, port_problem
from triplicate.bookie.offline.replacement import bookie_id_of
from triplicate.bookie.registration import Registration, Reopen
from triplicate.bookie.server.budgets import AnswerShares, FrameBudget
from triplicate.bookie.server.long_polls import LongPolls
from triplicate.bookie.server.read_processor import ReadProcessor
from triplicate.bookie.server.request_processor import RequestProcessor
from triplicate.bookie.server.server_connection import ServerConnection
from triplicate.bookie.storage.compaction import Compactor
from triplicate.bookie.storage.garbage import GarbageCollector
from triplicate.bookie.storage.storage import Storage
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError
from triplicate.metadata import BookieServiceInfo, ClusterMetadata, bookie_service
from triplicate.runtime import Host, Listener, Metrics, TaskScope

LOOPS = ("reads", "registration", "disk guard", "digests", "garbage collection", "compaction")
"""What runs as long as a bookie serves."""


class Bookie:
    """A storage server.

    Args:
        metadata: the cluster; stays the caller's and is not closed.
        metrics: where the figures go; None: nowhere.
        reopen: opens the metadata again when its session is over; what it returns is closed by the bookie.
    """

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        metadata: ClusterMetadata,
        metrics: Metrics | None = None,
        *,
        reopen: Reopen | None = None,
    ) -> None:
        self.settings = settings
        self._host = host
        self._metadata = metadata
        self._metrics = BookieMetrics(metrics)
        self._reopen = reopen
        self._reopened: ClusterMetadata | None = None
        self._directories = Directories(host.disk, settings)
        self._connections: dict[int, ServerConnection] = {}
        self._frames = FrameBudget(host.clock, settings.unfinished_frames_bytes, self._connections)
        self._shares = AnswerShares(settings)
        self._listener: Listener | None = None
        self._storage: Storage | None = None
        self._registration: Registration | None = None
        self._checks: DigestChecks | None = None
        self._garbage: GarbageCollector | None = None
        self._compactor: Compactor | None = None
        self._doubts: Limbo | None = None
        self._guard: DiskGuard | None = None
        self._long_polls: LongPolls | None = None
        self._scope: TaskScope | None = None
        self._withdrawal = TaskScope("bookie withdrawal", on_failure=self._withdrawal_failed)
        self._failed: asyncio.Future[OSError] | None = None
        self._bookie_id = ""
        self._stopping = False

    @property
    def bookie_id(self) -> str:
        return self._bookie_id

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens; only while it runs."""
        assert self._listener is not None, "the bookie runs"
        return self._listener.address

    @property
    def read_only(self) -> bool:
        """True while it takes no normal writes."""
        return self._guard is not None and self._guard.read_only

    @property
    def registered(self) -> bool:
        """Whether the bookie stands in the cluster's lists, as far as it knows."""
        return self._registration is not None and self._registration.announced

    @property
    def ended_loops(self) -> list[str]:
        """Names of the loops that run as long as a bookie serves, and have ended here; empty when all is well."""
        running = self._scope.tasks if self._scope is not None else {}
        return [name for name in LOOPS if name not in running]

    @property
    def storage(self) -> Storage:
        """For operators' tools and tests."""
        assert self._storage is not None, "the bookie runs"
        return self._storage

    @property
    def long_polls(self) -> LongPolls:
        """For operators' tools and tests."""
        assert self._long_polls is not None, "the bookie runs"
        return self._long_polls

    async def start(self) -> None:
        """Lock the directories, check the cookies, replay, listen, register.

        Raises:
            ConfigError, EnvironmentFault, WrongCluster, CorruptionError, FormatError, NodeExists: why it does not start, and the cure.
        """
        self._failed = asyncio.get_running_loop().create_future()
        self._bookie_id = bookie_id_of(self.settings)
        self._doubts = Limbo(self._host, self._metadata, self._bookie_id, self.settings.registration_check_interval_s)
        await self._doubts.open()
        await self._directories.open(self._metadata, self._bookie_id, self._doubts.incarnation, self._look_at_port)
        try:
            await self._open_storage(self._doubts)
            await self._serve()
        except BaseException:
            await self._close(flush=False)
            raise

    async def _look_at_port(self) -> None:
        """Before anything is replayed: a start that cannot listen changes nothing."""
        problem = await port_problem(self._host, self.settings)
        if problem is not None:
            raise problem

    async def _open_storage(self, doubts: Limbo) -> None:
        identity = FileIdentity(self._bookie_id, self._metadata.instance_id, 0, doubts.incarnation.number)
        storage = Storage(
            self._host,
            self.settings,
            identity,
            on_group=self._count_group,
            on_failure=self._fail,
            on_full_disk=self._set_full,
            on_journal_full=self._journal_full,
            in_limbo=doubts.about,
        )
        self._storage = storage
        self._show_memory(storage)
        try:
            self._guard = DiskGuard(self._host, self.settings, self._directories, self._metrics, storage.give_back_spares)
            check_files(self._host.disk, self.settings, identity)
            await storage.on_writer(check_data, self._host, self.settings, identity)
            self._guard.before_start()
            await storage.open()
            await doubts.settle(storage.ledgers)
        except OSError as error:
            raise cannot_start(error) from error
        replayed = sum(journal.replayed.groups for journal in storage.journals)
        self._host.trace("bookie.replayed", bookie_id=self._bookie_id, groups=replayed)
        for journal in storage.journals:
            torn = journal.replayed.torn
            if torn is not None:
                self._host.trace("bookie.torn_tail", path=torn.path, offset=torn.offset)

    async def _serve(self) -> None:
        settings, host = self.settings, self._host
        storage = self.storage
        self._scope = TaskScope(f"bookie {self._bookie_id}", on_failure=self._fail)
        guard = self._guard
        assert guard is not None
        self._registration = Registration(
            host, settings, guard, self._metadata, self._metrics, reopen=self._reopen, on_metadata=self._take_metadata
        )
        self._checks = DigestChecks(host, self._metadata, storage.ledgers, settings.verify_on_write)
        self._garbage = GarbageCollector(
            host, self._metadata, storage, self._metrics, settings.gc_interval_s, settings.trash_period_s, guard.lack_space_to_collect
        )
        self._compactor = Compactor(host, storage, settings, self._metrics, guard.lack_space_to_collect)
        reads = ReadProcessor(host, storage, settings, self._metrics)
        self._long_polls = LongPolls(host.clock, reads, settings, self._metrics)
        requests = RequestProcessor(host, settings, storage, reads, self._long_polls, self._checks, guard, self._metrics)
        scope = self._scope
        guard.look_at_disks()
        await guard.make_reserves()
        try:
            self._listener = await host.network.listen(
                lambda: ServerConnection(
                    host, settings, requests, scope, self._frames, self._shares.share_bytes, self._connected, self._disconnected
                ),
                settings.host,
                settings.port,
            )
        except OSError as error:
            raise cannot_listen(settings, error) from error
        scope.spawn(reads.run(), name="reads")
        await self._registration.register(self._bookie_id, self._service_info())
        scope.spawn(self._registration.run(), name="registration")
        scope.spawn(guard.run(), name="disk guard")
        scope.spawn(self._checks.run(), name="digests")
        for name, run in (("garbage collection", self._garbage.run), ("compaction", self._compactor.run)):
            scope.spawn(keep_running(host, self._metrics, name, run), name=name)
        assert self._doubts is not None
        if self._doubts.active:
            scope.spawn(self._doubts.run(storage.ledgers), name="doubts")

    def _service_info(self) -> BookieServiceInfo:
        host, port = self.address
        return bookie_service(self.settings.advertised_address or host, port)

    async def collect_garbage(self) -> int:
        """One round of garbage collection now; returns how many ledgers were deleted. Raises as `GarbageCollector.collect`."""
        assert self._garbage is not None, "the bookie runs"
        return await self._garbage.collect()

    async def compact(self, threshold: float) -> int:
        """Rewrite entry logs of which less than this share is alive; returns how many. Raises as `Compactor.compact`."""
        assert self._compactor is not None, "the bookie runs"
        return await self._compactor.compact(threshold)

    async def wait_failed(self) -> OSError:
        """Return when the bookie can no longer write and has stopped serving; the caller should `stop` it and end the process."""
        assert self._failed is not None, "the bookie was started"
        return await asyncio.shield(self._failed)

    async def stop(self) -> None:
        """Leave the cluster, answer what is journaled, flush, release the directories. Idempotent."""
        if self._stopping:
            return
        self._stopping = True
        if self._registration is not None:
            await self._registration.unregister()
        await self._close(flush=True)

    async def _close(self, *, flush: bool) -> None:
        if self._listener is not None:
            await self._listener.close()
        await self._withdrawal.aclose()
        if self._scope is not None:
            self._scope.cancel()
        if self._storage is not None:
            await self._storage.close(flush=flush)
        if self._guard is not None:
            await self._guard.aclose()
        for connection in list(self._connections.values()):
            connection.close()
        self._frames.close()
        if self._scope is not None:
            await self._scope.aclose()
        if self._reopened is not None:
            await self._reopened.aclose()
        self._directories.close()

    # Called by the parts.

    def _connected(self, connection: ServerConnection) -> None:
        if len(self._connections) >= self.settings.connections:
            connection.drop("too many connections")
            return
        self._connections[id(connection)] = connection
        self._frames.join(connection)
        self._share_answers()

    def _disconnected(self, connection: ServerConnection) -> None:
        if self._connections.pop(id(connection), None) is not None:
            self._share_answers()

    def _share_answers(self) -> None:
        if self._shares.count(len(self._connections)):
            for connection in self._connections.values():
                connection.share_answers(self._shares.share_bytes)

    def _take_metadata(self, metadata: ClusterMetadata) -> None:
        self._reopened = metadata
        assert self._checks is not None
        assert self._garbage is not None
        assert self._doubts is not None
        self._doubts.metadata = metadata
        self._checks.metadata = metadata
        self._garbage.metadata = metadata

    def _set_full(self, full: bool) -> None:
        if self._guard is not None:
            self._guard.set_flush_without_space(full)
            self.storage.tell_room(adds_end=full)

    def _journal_full(self, error: OSError) -> None:
        """A group was refused; those who wait for room behind it have it now, and hear that the bookie is read-only."""
        assert self._guard is not None
        self._guard.set_journal_without_space()
        self.storage.tell_room(adds_end=True)

    def _fail(self, error: BaseException) -> None:
        """Nothing can be made durable any more: answer nobody, take nothing. What was acknowledged is safe."""
        if self._failed is None or self._failed.done():
            return
        self._host.trace("bookie.failed", error=repr(error))
        reason = error if isinstance(error, OSError | CorruptionError) else OSError(errno.EIO, f"the bookie failed: {error!r}")
        self._failed.set_result(reason if isinstance(reason, OSError) else OSError(errno.EIO, str(reason)))
        for connection in list(self._connections.values()):
            connection.close()
        if not self._stopping and not self._withdrawal.closing:
            self._withdrawal.spawn(self._withdraw(), name="withdraw")

    def _withdrawal_failed(self, error: BaseException) -> None:
        self._host.trace("bookie.withdrawal_failed", error=repr(error))

    async def _withdraw(self) -> None:
        """Leave the lists of bookies, so that no writer chooses this one; the process is ended by whoever awaits `wait_failed`."""
        if self._scope is not None:
            self._scope.cancel()
        if self._listener is not None:
            await self._listener.close()
        if self._registration is not None:
            await self._registration.unregister()

    def _count_group(self, items: list[JournalItem]) -> None:
        metrics = self._metrics
        entries = size = 0
        for item in items:
            entries += item.count
            size += item.size_bytes
        metrics.syncs.inc()
        metrics.adds_ok.inc(entries)
        metrics.add_bytes.inc(size)
        metrics.group_entries.observe(entries)
        metrics.group_bytes.observe(size)
        metrics.add_latency.observe(self._host.clock.monotonic() - items[0].submitted_at)
        self.storage.tell_room()

    def _show_memory(self, storage: Storage) -> None:
        metrics = self._metrics
        metrics.journal_waiting.set_function(lambda: sum([journal.waiting_bytes for journal in storage.journals]))
        metrics.cache_bytes.set_function(lambda: storage.cache.size_bytes)
        metrics.handles.set_function(lambda: len(storage.ledgers))
        connections = self._connections
        metrics.unfinished_frames.set_function(lambda: self._frames.held_bytes)
        metrics.frames_most.set_function(lambda: max([each.frame_held for each in connections.values()], default=0))
        metrics.answers_waiting.set_function(lambda: sum([each.answers_waiting_bytes for each in connections.values()]))
        metrics.answers_most.set_function(lambda: max([each.answers_waiting_bytes for each in connections.values()], default=0))
