"""One bookie: the parts of this room put together, started and stopped in order."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from triplicate.bookie.background import keep_running
from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.core.file_header import FileIdentity
from triplicate.bookie.core.scrub_state import ScrubPass
from triplicate.bookie.digest_checks import DigestChecks
from triplicate.bookie.directories import CURRENT, Directories
from triplicate.bookie.disk_guard import DiskGuard
from triplicate.bookie.files import join
from triplicate.bookie.limbo import Limbo
from triplicate.bookie.offline.inspection import cannot_listen, cannot_start, check_data, check_files, port_problem
from triplicate.bookie.offline.replacement import bookie_id_of
from triplicate.bookie.registration import Registration, Reopen
from triplicate.bookie.scrub_file import ScrubFile
from triplicate.bookie.scrubber import Scrubber, ScrubTools
from triplicate.bookie.server.connection_set import ConnectionSet
from triplicate.bookie.server.door import Door
from triplicate.bookie.server.long_polls import LongPolls
from triplicate.bookie.server.read_processor import ReadProcessor
from triplicate.bookie.server.request_processor import RequestProcessor
from triplicate.bookie.storage.compaction import Compactor
from triplicate.bookie.storage.garbage import GarbageCollector
from triplicate.bookie.storage.storage import Storage, StorageCallbacks, StorageWorkers
from triplicate.bookie.upkeep import Upkeep
from triplicate.config import BookieSettings, SecuritySettings
from triplicate.errors import CorruptionError
from triplicate.metadata import ClusterMetadata, bookie_service
from triplicate.runtime import Host, Listener, Metrics, TaskScope, resolve

LOOPS = ("reads", "registration", "disk guard", "digests", "garbage collection", "compaction", "scrubber", "upkeep requests", "door")
"""Tasks that run as long as a bookie serves."""


class Failure:
    """The first error after which nothing can be made durable any more. `react` is called with it once."""

    def __init__(self, host: Host, react: Callable[[], None]) -> None:
        self.error: asyncio.Future[OSError] = asyncio.get_running_loop().create_future()
        self._host = host
        self._react = react

    def fail(self, error: BaseException) -> None:
        """Record the error, and react. Has no effect after the first."""
        if self.error.done():
            return
        self._host.trace("bookie.failed", error=repr(error))
        reason = error if isinstance(error, OSError | CorruptionError) else OSError(errno.EIO, f"the bookie failed: {error!r}")
        resolve(self.error, reason if isinstance(reason, OSError) else OSError(errno.EIO, str(reason)))
        self._react()

    def call(self, react: Callable[[], None]) -> None:
        """Call this in place of the reaction so far; at once if the error was there before."""
        self._react = react
        if self.error.done():
            react()


@dataclass(frozen=True, slots=True)
class BookieParts:
    """The parts of a running bookie."""

    metadata: ClusterMetadata
    metrics: BookieMetrics
    storage: Storage
    guard: DiskGuard
    registration: Registration
    connections: ConnectionSet
    door: Door
    long_polls: LongPolls
    limbo: Limbo
    checks: DigestChecks
    garbage: GarbageCollector
    compactor: Compactor
    scrubber: Scrubber
    listener: Listener
    scope: TaskScope
    failure: Failure


class Bookie:
    """A storage server that runs; `start` makes one.

    Args:
        cleanup: releases everything that the bookie holds, the last acquired first.
    """

    def __init__(self, host: Host, settings: BookieSettings, bookie_id: str, parts: BookieParts, cleanup: AsyncExitStack) -> None:
        self.settings = settings
        self.bookie_id = bookie_id
        self.parts = parts
        """For operators' tools and tests."""
        self.stopping = False
        self._host = host
        self._cleanup = cleanup
        self._withdrawal = TaskScope("bookie withdrawal", on_failure=self._withdrawal_failed)
        cleanup.push_async_callback(self._withdrawal.aclose)
        parts.failure.call(self._failed)

    @classmethod
    async def start(
        cls,
        host: Host,
        settings: BookieSettings,
        metadata: ClusterMetadata,
        metrics: Metrics | None = None,
        *,
        reopen: Reopen | None = None,
        security: SecuritySettings | None = None,
    ) -> Bookie:
        """Lock the directories, check the cookies, replay, listen, register.

        Args:
            metadata: the cluster; stays the caller's and is not closed.
            metrics: the registry for the bookie's metrics; None for none.
            reopen: opens the metadata again when its session is over; the bookie closes what it returns.
            security: the process's certificate and the authorities that it trusts; None for none.

        Raises:
            ConfigError, EnvironmentFault, WrongCluster, CorruptionError, FormatError, NodeExists: why it does not start, and the cure.
        """
        bookie_id = bookie_id_of(settings)
        door = Door.open(host, settings, security or SecuritySettings(), metrics)
        async with AsyncExitStack() as opened:
            opened.push_async_callback(door.aclose)
            limbo = Limbo(host, metadata, bookie_id, settings.registration_check_interval_s)
            await limbo.open()
            start = BookieStart(host, settings, bookie_id, metadata, BookieMetrics(metrics), limbo, door, opened)
            await start.open_directories()
            registration = start.registration(reopen)
            return await start.serve(await start.open_storage(), registration)

    @property
    def storage(self) -> Storage:
        return self.parts.storage

    @property
    def connections(self) -> ConnectionSet:
        return self.parts.connections

    @property
    def long_polls(self) -> LongPolls:
        return self.parts.long_polls

    @property
    def address(self) -> tuple[str, int]:
        """The address at which it listens."""
        return self.parts.listener.address

    @property
    def read_only(self) -> bool:
        """Whether normal writes are refused."""
        return self.parts.guard.read_only

    @property
    def registered(self) -> bool:
        """Whether the bookie is in the cluster's lists, as far as it knows."""
        return self.parts.registration.announced

    @property
    def failed(self) -> bool:
        """Whether nothing can be made durable any more."""
        return self.parts.failure.error.done()

    @property
    def ended_loops(self) -> list[str]:
        """Names of the loops that run as long as a bookie serves, and have ended here; empty when all is well."""
        running = self.parts.scope.tasks
        return [name for name in LOOPS if name not in running]

    async def collect_garbage(self) -> int:
        """One round of garbage collection now; returns how many ledgers were deleted. Raises as `GarbageCollector.collect`."""
        return await self.parts.garbage.collect()

    async def compact(self, threshold: float) -> int:
        """Rewrite entry logs of which less than this share is alive; returns how many. Raises as `Compactor.compact`."""
        return await self.parts.compactor.compact(threshold)

    async def scrub(self) -> ScrubPass:
        """Read and check all entries now, or the rest of a pass that was interrupted; returns the pass. Raises as `Scrubber.run`."""
        return await self.parts.scrubber.scrub()

    def add_chore(self, name: str, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run an endless task beside the server, until it stops. It is restarted after an error; an OSError ends the bookie."""
        if not self.stopping and not self.failed:
            self.parts.scope.spawn(keep_running(self._host, self.parts.metrics, name, run), name=name)

    async def wait_failed(self) -> OSError:
        """Return when the bookie can no longer write and has stopped serving; the caller should `stop` it and end the process."""
        return await asyncio.shield(self.parts.failure.error)

    async def stop(self) -> None:
        """Leave the cluster, answer what is journaled, flush, release the directories. Idempotent."""
        if self.stopping:
            return
        self.stopping = True
        await self.parts.registration.unregister()
        await self._cleanup.aclose()

    def _failed(self) -> None:
        """Nothing can be made durable any more: answer no request, accept none. Acknowledged entries are safe."""
        self.connections.close_all()
        if not self.stopping and not self._withdrawal.closing:
            self._withdrawal.spawn(self._withdraw(), name="withdraw")

    def _withdrawal_failed(self, error: BaseException) -> None:
        self._host.trace("bookie.withdrawal_failed", error=repr(error))

    async def _withdraw(self) -> None:
        """Leave the lists of bookies, so that no writer chooses this one. The caller of `wait_failed` ends the process."""
        self.parts.scope.cancel()
        await self.parts.listener.close()
        await self.parts.registration.unregister()


class BookieStart:
    """The steps of a start. `opened` releases what they acquire, the last acquired first."""

    def __init__(
        self,
        host: Host,
        settings: BookieSettings,
        bookie_id: str,
        metadata: ClusterMetadata,
        metrics: BookieMetrics,
        limbo: Limbo,
        door: Door,
        opened: AsyncExitStack,
    ) -> None:
        self._host = host
        self._settings = settings
        self._bookie_id = bookie_id
        self._metadata = metadata
        self._metrics = metrics
        self._limbo = limbo
        self._opened = opened
        self._directories = Directories(host.disk, settings)
        self._door = door
        self._connections = ConnectionSet(host, settings, door)
        self._failure = Failure(host, self._connections.close_all)
        self._scope = TaskScope(f"bookie {bookie_id}", on_failure=self._failure.fail)
        self._guard = DiskGuard(host, settings, self._directories, metrics)

    async def open_directories(self) -> None:
        await self._directories.open(self._metadata, self._bookie_id, self._limbo.incarnation, self._check_port)
        self._opened.callback(self._directories.close)

    async def _check_port(self) -> None:
        """Before anything is replayed: a start that cannot listen changes nothing."""
        problem = await port_problem(self._host, self._settings)
        if problem is not None:
            raise problem

    def registration(self, reopen: Reopen | None) -> Registration:
        registration = Registration(self._host, self._settings, self._guard, self._metadata, self._metrics, self._bookie_id, reopen=reopen)
        self._opened.push_async_callback(registration.aclose)
        return registration

    async def open_storage(self) -> Storage:
        host, settings, guard, opened = self._host, self._settings, self._guard, self._opened
        identity = FileIdentity(self._bookie_id, self._metadata.instance_id, 0, self._limbo.incarnation.number)
        opened.push_async_callback(self._scope.aclose)
        opened.callback(self._connections.frames.close)
        opened.callback(self._connections.close_all)
        opened.push_async_callback(guard.aclose)
        callbacks = StorageCallbacks(
            on_failure=self._failure.fail,
            on_group=lambda items: self._metrics.count_group(items, host.clock.monotonic()),
            on_flush=self._metrics.count_flush,
            on_full_disk=guard.set_flush_without_space,
            on_journal_full=lambda error: guard.set_journal_without_space(),
            in_limbo=self._limbo.is_in_limbo,
        )
        workers = StorageWorkers.new(host)
        opened.push_async_callback(workers.aclose)
        self._connections.show(self._metrics)
        try:
            check_files(host.disk, settings, identity)
            await workers.on_writer(check_data, host, settings, identity)
            guard.before_start()
            storage = await Storage.open(host, settings, identity, callbacks, workers)

            async def close_storage(kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
                await storage.close(flush=error is None)

            opened.push_async_exit(close_storage)
            _show_storage(self._metrics, storage)
            await self._limbo.resolve_loaded(storage.ledgers)
        except OSError as error:
            raise cannot_start(error) from error
        self._trace_replay(storage)
        return storage

    def _trace_replay(self, storage: Storage) -> None:
        replayed = [journal.replayed for journal in storage.journals]
        self._host.trace("bookie.replayed", bookie_id=self._bookie_id, groups=sum(each.groups for each in replayed))
        for each in replayed:
            if each.torn is not None:
                self._host.trace("bookie.torn_tail", path=each.torn.path, offset=each.torn.offset)

    async def serve(self, storage: Storage, registration: Registration) -> Bookie:
        """Listen and register; returns the running bookie."""
        host, settings, metadata, metrics = self._host, self._settings, self._metadata, self._metrics
        guard, limbo, scope = self._guard, self._limbo, self._scope
        checks = DigestChecks(host, metadata, storage.ledgers, settings.verify_on_write)
        collector = GarbageCollector(
            host, metadata, storage, metrics, settings.gc_interval_s, settings.trash_period_s, guard.lack_space_to_collect
        )
        compactor = Compactor(host, storage, settings, metrics, guard.lack_space_to_collect)
        upkeep = Upkeep(host, metadata, self._bookie_id, settings, storage, collector, compactor, guard.lack_space_to_collect)
        reads = ReadProcessor(host, storage, settings, metrics)
        long_polls = LongPolls(host.clock, reads, settings, metrics)
        requests = RequestProcessor(host, settings, storage, reads, long_polls, checks, guard, metrics)
        scrubber = await self._open_scrubber(storage)
        guard.measure_disks()
        await guard.make_reserves()
        self._opened.callback(scope.cancel)
        listener = await self._listen(requests)
        scope.spawn(reads.run(), name="reads")
        host_name, port = listener.address
        info = bookie_service(
            settings.advertised_address or host_name,
            port,
            network_location=settings.network_location,
            has_tls=self._door.policy.offers_tls,
        )
        await registration.register(info)
        scope.spawn(registration.run(info, (limbo, checks, collector, scrubber, upkeep)), name="registration")
        scope.spawn(guard.run(storage.set_short_of_space), name="disk guard")
        scope.spawn(checks.run(), name="digests")
        loops = (
            ("garbage collection", collector.run),
            ("compaction", compactor.run),
            ("scrubber", scrubber.run),
            ("upkeep requests", upkeep.run),
            ("door", self._door.run),
        )
        for name, run in loops:
            scope.spawn(keep_running(host, metrics, name, run), name=name)
        if limbo.active:
            scope.spawn(limbo.run(storage.ledgers), name="limbo")
        parts = BookieParts(
            metadata=metadata,
            metrics=metrics,
            storage=storage,
            guard=guard,
            registration=registration,
            connections=self._connections,
            door=self._door,
            long_polls=long_polls,
            limbo=limbo,
            checks=checks,
            garbage=collector,
            compactor=compactor,
            scrubber=scrubber,
            listener=listener,
            scope=scope,
            failure=self._failure,
        )
        return Bookie(host, settings, self._bookie_id, parts, self._opened.pop_all())

    async def _open_scrubber(self, storage: Storage) -> Scrubber:
        worker = self._host.new_worker("bookie-scrub")
        self._opened.push_async_callback(worker.close)
        file = ScrubFile(self._host.disk, join(self._settings.ledger_directories[0], CURRENT))
        tools = ScrubTools(storage, self._settings, self._metrics, worker, file)
        return await Scrubber.open(self._host, self._metadata, self._bookie_id, tools)

    async def _listen(self, requests: RequestProcessor) -> Listener:
        settings, scope, connections = self._settings, self._scope, self._connections
        try:
            listener = await self._host.network.listen(lambda: connections.new(requests, scope), settings.host, settings.port)
        except OSError as error:
            raise cannot_listen(settings, error) from error
        self._opened.push_async_callback(listener.close)
        return listener


def _show_storage(metrics: BookieMetrics, storage: Storage) -> None:
    metrics.journal_waiting.set_function(lambda: sum([journal.waiting_bytes for journal in storage.journals]))
    metrics.cache_bytes.set_function(lambda: storage.cache.size_bytes)
    metrics.handles.set_function(lambda: len(storage.ledgers))
