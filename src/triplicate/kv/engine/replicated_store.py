"""One replicated store on this node: the state machine that the replica feeds, and the store that clients see."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from triplicate.config import NodeSettings, StoreSettings
from triplicate.errors import CorruptionError, Diverged, LevelNotMet, NotLeading, StoreUnavailable, TriplicateError
from triplicate.kv.core.key_expiry import is_expired
from triplicate.kv.core.operations import NO_EXPIRY, BatchResult, Delete, Expiry, Outcome, Put, StoreBatch, When
from triplicate.kv.core.store_interface import (
    ALL_KEYS,
    LINEARIZABLE,
    Count,
    Found,
    FoundMany,
    KeyPage,
    KeyRange,
    LevelKind,
    Record,
    StoreLimits,
    StoreReadLevel,
)
from triplicate.kv.core.validation import check_bytes, check_count, check_integer, check_key, check_range
from triplicate.kv.engine.local_store import LocalStore, LoggedEntry
from triplicate.kv.engine.store_leadership import EntryAppender, LeaderSettings, StoreLeadership
from triplicate.kv.engine.watching import ChangeHub, StoreWatch
from triplicate.kv.storage.rocks_copy import AppliedBatch, RocksCopy
from triplicate.kv.storage.store_snapshots import StoreSnapshots
from triplicate.kv.storage.store_stand import StoreStand
from triplicate.log import LogEntry, LogWriter
from triplicate.replica import Candidate, LeaseSuccession, is_position_mismatch
from triplicate.runtime import Host, Metrics, TasklessFuture, deadline_after, fault_point, shielded, timeout_at

Result = TypeVar("Result", FoundMany, KeyPage, Count)

PAGE_BYTES = 1024 * 1024
"""A page of a scan ends at this size."""
SHORT_READ_KEYS = 128
"""Scans of this number of keys run on the event loop, longer ones on a thread."""


class ReplicatedStore:
    """Implements `replica.HostedMachine` for the replica and `store_interface.KeyValueStore` for clients.

    Args:
        identity: 16 bytes; the local copy must be of this store.
        path: folder of the copy; its parent is made if it is missing.
        lease_s: how long a leader of this store answers reads on its own, see `replica.core.lease`; the same on every node.
    """

    def __init__(
        self,
        host: Host,
        name: str,
        identity: bytes,
        path: str,
        settings: StoreSettings,
        node: NodeSettings,
        *,
        metrics: Metrics | None = None,
        lease_s: float = 0.0,
    ) -> None:
        self._host = host
        self._name = name
        self._worker = host.new_worker(f"kv-{name}")
        self._reader = host.new_worker(f"kv-{name}-reads")
        self._local = LocalStore(host, identity, path)
        limits = StoreLimits(value_bytes=settings.value_bytes)
        self._leading_settings = LeaderSettings(limits, lease_s, settings.mark_interval_s)
        self._node = node
        self._succession = LeaseSuccession(host.clock, lease_s, node.clock_rate_error)
        self._hub = ChangeHub(name, settings.watch_buffer_bytes)
        self._unusable: str | None = f"store {name!r} is starting"
        self._is_closed = False
        self._writing_position = 0
        """A read on this copy may show what is before this position."""
        self._current_us = 0
        """The copy shows everything that was acknowledged before this time of the leader's clock, µs since the epoch."""
        self.leadership: StoreLeadership | None = None
        self.position = 0
        self.suspicion: str | None = None
        self.snapshots = StoreSnapshots(host, self, name, identity)
        """Copies the state, and replaces it by another."""
        self.find_leader: Callable[[], Candidate | None] = lambda: None
        self._rebuilding: str | None = None
        self._damage: CorruptionError | None = None
        if metrics is not None:
            self._add_gauges(metrics)

    # For clients.

    @property
    def name(self) -> str:
        return self._name

    @property
    def limits(self) -> StoreLimits:
        return self._leading_settings.limits

    @property
    def path(self) -> str:
        return self._local.path

    @property
    def node_id(self) -> str:
        return self._node.node_id

    @property
    def is_leader(self) -> bool:
        return self.leadership is not None

    @property
    def leader_hint(self) -> str | None:
        leader = self.find_leader()
        return None if leader is None else leader.address

    @property
    def leader_node(self) -> str | None:
        leader = self.find_leader()
        return None if leader is None else leader.node_id

    @property
    def is_taking_over(self) -> bool:
        return self.leader_node == self._node.node_id and not self.is_leader

    @property
    def leader_resp_address(self) -> str | None:
        leader = self.find_leader()
        return None if leader is None else leader.resp_address or None

    @property
    def unusable(self) -> str | None:
        """Why the copy is not served, or None."""
        return self._unusable

    def submit(self, batch: StoreBatch) -> TasklessFuture[BatchResult]:
        return self._leading().submit(batch)

    async def execute(self, batch: StoreBatch) -> BatchResult:
        return await self.submit(batch)

    async def put(
        self, key: bytes, value: bytes, *, expiry: Expiry = NO_EXPIRY, when: When = When.ALWAYS, returns_old: bool = False
    ) -> tuple[Outcome, int]:
        result = await self.submit(StoreBatch((Put(key, value, expiry, when, returns_old),)))
        return result.outcomes[0], result.position

    async def delete(self, *keys: bytes) -> tuple[int, int]:
        result = await self.submit(StoreBatch([Delete(key) for key in keys]))
        return sum(outcome.applied for outcome in result.outcomes), result.position

    def try_get(self, key: bytes) -> Found | None:
        check_key(key, self.limits)
        leadership = self._leading()
        try:
            record = self.copied.get(key)
        except CorruptionError as error:
            raise self._damaged(error) from error
        if record is not None and record.deadline_ms:
            record = self._shown(record)
            if record is not None and is_expired(record.deadline_ms, leadership.now_ms):
                return None
        position = self._writing_position
        return Found(record, position, leadership.now_ms) if leadership.reads.is_confirmed() else None

    async def get(self, key: bytes, level: StoreReadLevel = LINEARIZABLE) -> Found:
        found = await self.get_many((key,), level)
        return Found(found.records[0], found.position, found.time_ms, found.age_s)

    async def get_many(self, keys: Sequence[bytes], level: StoreReadLevel = LINEARIZABLE) -> FoundMany:
        check_count("keys of one read", len(keys), self.limits)
        for key in keys:
            check_key(key, self.limits)

        async def read() -> FoundMany:
            stored = self.copied.get(keys[0]) if len(keys) == 1 else None
            records = [stored] if len(keys) == 1 else self.copied.get_many(keys)
            return FoundMany([self._shown(record) for record in records], self._writing_position, self._time_ms)

        return await self._at_level(level, read, lambda found: zip(keys, found.records, strict=True))

    async def scan(self, keys: KeyRange, limit: int = 1000, level: StoreReadLevel = LINEARIZABLE, *, with_values: bool = True) -> KeyPage:
        check_count("keys of a page", limit, self.limits)
        check_range(keys)

        async def read() -> KeyPage:
            time_ms = self._log_time_ms
            scan = partial(self.copied.scan, with_values=with_values)
            arguments = (keys, limit, PAGE_BYTES, time_ms)
            page = scan(*arguments) if limit <= SHORT_READ_KEYS else await self._reader.run(scan, *arguments)
            return KeyPage(page.items, page.cursor, self._writing_position, self._time_ms)

        return await self._at_level(level, read, lambda page: page.items)

    async def count(self, keys: KeyRange = ALL_KEYS, level: StoreReadLevel = LINEARIZABLE) -> Count:
        check_range(keys)
        leadership = self._leading() if level.kind is LevelKind.LINEARIZABLE else None
        if leadership is not None:
            due = await self._reader.run(self.copied.due, leadership.now_ms, self.limits.batch_operations)
            await leadership.expire([one.key for one in due])

        async def read() -> Count:
            number = await self._reader.run(self._counted, keys, self._log_time_ms)
            return Count(number, self._writing_position)

        return await self._at_level(level, read, lambda _: ())

    def _counted(self, keys: KeyRange, time_ms: int) -> int:
        copy = self.copied
        return copy.count_all() if keys == ALL_KEYS else copy.count(keys, time_ms)

    async def watch(self, prefix: bytes = b"", position: int | None = None) -> StoreWatch:
        self._check_usable()
        check_bytes("the prefix of a watch", prefix)
        begin = self.position if position is None else position
        check_integer("the position of a watch", begin)
        self._hub.buffer.check(begin)
        return StoreWatch(self._hub, prefix, begin)

    # Levels of reads.

    @property
    def copied(self) -> RocksCopy:
        """The open copy. Raises StoreUnavailable."""
        self._check_usable()
        copy = self._local.copy
        if copy is None:
            raise StoreUnavailable(f"store {self._name!r} is starting; use another node, or try again")
        return copy

    def _check_usable(self) -> None:
        if self._unusable is not None:
            raise StoreUnavailable(f"{self._unusable}; use another node, or try again")

    def _leading(self) -> StoreLeadership:
        """Raises NotLeading."""
        if self.leadership is None:
            self._check_usable()
            raise NotLeading(f"this node does not lead store {self._name!r}; connect to the node that does", self.leader_hint)
        return self.leadership

    @property
    def _log_time_ms(self) -> int:
        return self.copied.state.time_ms

    @property
    def _time_ms(self) -> int:
        """The time that an answer gives for computing times to live."""
        return self.leadership.now_ms if self.leadership is not None else self._log_time_ms

    def _shown(self, record: Record | None) -> Record | None:
        """A stored record, unless it is expired by the log's time of this copy."""
        return None if record is None or is_expired(record.deadline_ms, self._log_time_ms) else record

    async def _at_level(
        self,
        level: StoreReadLevel,
        read: Callable[[], Awaitable[Result]],
        shown: Callable[[Result], Iterable[tuple[bytes, Record | None]]],
    ) -> Result:
        """Read at a level.

        Args:
            read: reads the copy as it is.
            shown: the keys of an answer with their records.
        """
        try:
            return await self._read_at_level(level, read, shown)
        except CorruptionError as error:
            raise self._damaged(error) from error

    def _damaged(self, error: CorruptionError) -> StoreUnavailable:
        """A reader has found the copy damaged: it is not served any more, and built again."""
        self._damage = error
        self._unusable = f"this node's copy of store {self._name!r} is damaged ({error})"
        if self.leadership is not None:
            self.leadership.end(error)
        return StoreUnavailable(f"{self._unusable}; use another node")

    async def _read_at_level(
        self,
        level: StoreReadLevel,
        read: Callable[[], Awaitable[Result]],
        shown: Callable[[Result], Iterable[tuple[bytes, Record | None]]],
    ) -> Result:
        if level.kind is not LevelKind.LINEARIZABLE:
            await self._reach(level)
            leadership, current_us = self.leadership, self._current_us  # Before the read, which may wait for a thread.
            found = await read()
            return found._replace(age_s=self._age_since(current_us) if leadership is None else leadership.reads.age_s())
        leadership = self._leading()
        now_ms = leadership.now_ms
        found = await read()
        late = [key for key, record in shown(found) if record is not None and is_expired(record.deadline_ms, now_ms)]
        if late:
            # The leader's clock has passed a deadline that the log's time has not: the expiry is logged before it is answered.
            await leadership.expire(late)
            found = await read()
        await leadership.reads.confirm()
        return found

    async def _reach(self, level: StoreReadLevel) -> None:
        """Wait until the copy satisfies a level other than linearizable.

        Raises:
            LevelNotMet: it does not in time.
        """
        self._check_usable()
        if level.kind is LevelKind.BOUNDED and self.leadership is not None:
            await self.leadership.reads.confirm()
            return
        try:
            async with timeout_at(deadline_after(self._host.clock, level.wait_s)):
                while not self._reaches(level):
                    await self._hub.moved()
                    self._check_usable()
        except TimeoutError:
            raise self._not_met(level) from None

    def _reaches(self, level: StoreReadLevel) -> bool:
        if level.kind is LevelKind.SESSION:
            return self.position >= level.position
        if level.kind is LevelKind.ANY:
            return True
        age_s = self._age_since(self._current_us)
        return age_s is not None and age_s <= level.age_s

    def _age_since(self, current_us: int) -> float | None:
        """How old a state is at most that shows everything acknowledged before this time of the leader's clock, seconds; None for 0, of
        which nothing is known. It compares two machines' clocks, so it is as exact as they are.
        """
        return max(0.0, (self._host.clock.wall_us() - current_us) / 1e6) if current_us else None

    def _not_met(self, level: StoreReadLevel) -> LevelNotMet:
        if level.kind is LevelKind.SESSION:
            behind = f"at position {self.position} and {level.position - self.position} behind the position of the session"
        else:
            age_s = self._age_since(self._current_us)
            behind = "of unknown age" if age_s is None else f"{age_s:.3f} s old"
        return LevelNotMet(f"this copy of store {self._name!r} is {behind} after {level.wait_s:g} s; use another node, or wait longer")

    # The replica's state machine.

    async def open(self) -> int:
        copy = await self._worker.run(self._local.open)
        state = copy.state
        self._moved(state)
        self._hub.restart(state.position)
        if state.diverged is not None and not is_position_mismatch(state.diverged):
            raise Diverged(state.diverged)
        self.suspicion = state.diverged
        self._unusable = self._rebuilding if self.suspicion is None else f"this node's copy of store {self._name!r} is being verified"
        return state.position

    async def verify(self, entry: LogEntry | None) -> None:
        await self._worker.run(self._local.verify, None if entry is None else _logged(entry))
        self.suspicion, self._unusable = None, self._rebuilding

    async def follow(self) -> int:
        if self._local.copy is None:
            await self.open()  # A snapshot replaced the copy, and it could not be opened then.
        return self.position

    @fault_point("kv.apply")
    async def apply(self, entries: Sequence[LogEntry]) -> int:
        if self._damage is not None:
            raise Diverged(str(self._damage))
        logged = [_logged(entry) for entry in entries if not entry.is_control]
        if logged:
            # Reads may show the new state from the write on, before this coroutine goes on.
            self._writing_position = max(self._writing_position, logged[-1].first_offset + len(logged[-1].records))
            batches = await self._worker.run(self._local.apply, logged)
            self._committed(batches, self._state)
        self._current_us = max(self._current_us, *(entry.wall_time_us for entry in entries))
        self._hub.progress()
        return self.position

    @property
    def _state(self) -> StoreStand:
        copy = self._local.copy
        assert copy is not None, "the copy is open while it follows or leads"
        return copy.state

    async def lead(self, writer: LogWriter, serves: Callable[[], None]) -> None:
        await self._lead(writer, serves)

    async def _lead(self, log: EntryAppender, serves: Callable[[], None]) -> None:
        entered_at = self._host.clock.elapsed()
        copy = self._local.copy
        assert copy is not None, "the copy is open while it follows"
        leadership = StoreLeadership(self._host, log, copy, self._worker, self._name, self._leading_settings)
        leadership.find_leader = lambda: self.leader_hint
        leadership.on_writing = self._writing
        leadership.on_commit = self._committed
        try:
            await self._succession.outwait_predecessor(log.epoch, entered_at)
            # The first answer to a client must not come from a leader that has been fenced since its election.
            await leadership.reads.noop()
            self._succession.leads(log.epoch)
            self.leadership = leadership
            serves()
            await leadership.run()
        except CorruptionError as error:
            raise Diverged(str(error)) from error
        finally:
            self.leadership = None

    def _writing(self, state: StoreStand) -> None:
        self._writing_position = state.position

    def _committed(self, batches: Sequence[AppliedBatch], state: StoreStand) -> None:
        self._moved(state)
        self._hub.publish(batches)

    def _moved(self, state: StoreStand) -> None:
        self.position = self._writing_position = state.position

    async def replace(self, swap: Callable[[], None]) -> int:
        """Serve another copy: `swap` puts its folder in the place of the old one, and it is opened. Returns its position.

        Raises:
            EnvironmentFault: `swap` failed; the copy that is there then has been opened.
        """
        return await shielded(self._replace(swap))

    async def _replace(self, swap: Callable[[], None]) -> int:
        self._unusable = f"this node's copy of store {self._name!r} is replaced by a snapshot"
        try:
            await self._worker.run(self._local.replace, swap)
        finally:
            await self.open()
        return self.position

    async def diverge(self, reason: str) -> None:
        self._unusable = f"this node's copy of store {self._name!r} is wrong ({reason})"
        try:
            await self._worker.run(self._local.mark_diverged, reason)
        except TriplicateError as error:
            # A copy that cannot be marked fails again when it is opened or followed with.
            self._host.trace("kv.mark_failed", store=self._name, error=repr(error))

    async def drain(self) -> bool:
        """As the leader, send no further change to the log and wait for those that are there. See `StoreLeadership.drain`."""
        leadership = self.leadership
        return leadership is None or await leadership.drain(self._node.handover_limit_s)

    async def run_beside(self) -> None:
        """Nothing."""

    def catch_up(self) -> None:
        self._rebuilding = self._unusable = f"this node's copy of store {self._name!r} is being built again from the log"

    def caught_up(self) -> None:
        if self._unusable == self._rebuilding:
            self._unusable = None
        self._rebuilding = None

    def failed(self, error: Exception) -> None:
        self._unusable = f"this node's copy of store {self._name!r} has failed ({error}) and is opened again soon"

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._unusable is None:
            self._unusable = f"this node closes its copy of store {self._name!r}"
        self._hub.close()
        await self._reader.close()
        await self._worker.run(self._local.close)
        await self._worker.close()

    def _add_gauges(self, metrics: Metrics) -> None:
        def gauge(name: str, text: str, value: Callable[[], float]) -> None:
            metrics.gauge(name, text, ("store",)).labels(self._name).set_function(value)

        gauge("triplicate_store_position", "Offset after the last log record applied.", lambda: self.position)
        gauge("triplicate_store_leader", "1 while this node leads the store.", lambda: 1 if self.is_leader else 0)
        gauge("triplicate_store_keys", "Keys that are stored.", lambda: 0 if self._local.copy is None else self._local.copy.state.keys)


def _logged(entry: LogEntry) -> LoggedEntry:
    return LoggedEntry(entry.first_offset, entry.epoch, entry.preamble, entry.values)
