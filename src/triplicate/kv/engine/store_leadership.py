"""Leading a store: batches are decided in their order, appended to the log, and made visible when the log has acknowledged them.

Batches that wait are decided together as a group, which is one entry of the log. They are decided on the state that the groups before them
will leave, so several groups may be at the log at a time. Groups are committed and answered in their order. Nobody else sees anything of a
group before its commit.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol

from triplicate.errors import EnvironmentFault, NotLeading, StoreError, StoreOutcomeUnknown, StoreUnavailable, TriplicateError, WindowFull
from triplicate.kv.core.decisions import BatchDecision, decide
from triplicate.kv.core.key_expiry import next_time_ms
from triplicate.kv.core.operations import BatchResult, Get, StoreBatch
from triplicate.kv.core.store_interface import Record, StoreLimits
from triplicate.kv.core.store_records import Effect, StoreEntryHeader, encode_header, encode_record, held_size_of, size_of
from triplicate.kv.core.validation import check_batch
from triplicate.kv.engine.batch_queue import BatchQueue, QueuedBatch
from triplicate.kv.storage.rocks_copy import AppliedBatch, RocksCopy
from triplicate.kv.storage.store_stand import StoreStand
from triplicate.replica import LeaderReads, SentReads
from triplicate.runtime import (
    Host,
    Spawn,
    TasklessFuture,
    TaskScope,
    Worker,
    deadline_after,
    fail,
    fault_point,
    resolve,
    shielded,
    sleep,
    timeout_at,
)

_LOG = logging.getLogger(__name__)

GROUP_BATCHES = 1024
"""Upper bound on the batches of a group."""
GROUP_BYTES = 1024 * 1024
"""A group of this size takes no further batch."""
FLYING_GROUPS = 4
"""Upper bound on the groups at the log."""
FURTHER_BATCHES = 8
"""The smallest number of waiting batches for which a group is sent while others are at the log. Each entry has a cost of its own."""
SHORT_COMMIT_BYTES = 64 * 1024
"""Groups of this size are committed on the event loop: a change of threads would take longer."""
EXPIRY_INTERVAL_S = 0.2
EXPIRY_KEYS = 1000
"""Expired keys that one batch deletes: also the longest keys fit."""


class EntryAppender(Protocol):
    """The part of `triplicate.log.LogWriter` that a leadership uses."""

    @property
    def epoch(self) -> int: ...

    @property
    def next_offset(self) -> int: ...

    def append_entry_nowait(self, values: Sequence[bytes], *, preamble: bytes | None = None) -> asyncio.Future[range]: ...

    async def append_entry(self, values: Sequence[bytes], *, preamble: bytes | None = None) -> range: ...

    async def noop(self) -> None: ...


class LeaderSettings(NamedTuple):
    """Settings of a leadership."""

    limits: StoreLimits
    lease_s: float = 0.0
    """See `replica.core.lease`; 0 for none."""
    mark_s: float = 0.0
    """A leader that has appended nothing for so long appends an entry without records, by which followers know their age; 0 for never."""


class _Decided(NamedTuple):
    """A batch of a group, with its answer."""

    request: QueuedBatch
    answer: BatchResult | Exception
    is_logged: bool
    """Whether the batch changes something."""


class _Group:
    """Batches that are decided and sent together."""

    __slots__ = ("acknowledged", "batches", "decided", "header", "held_bytes", "records", "sent", "size_bytes", "state")

    def __init__(self, header: StoreEntryHeader) -> None:
        self.header = header
        self.decided: list[_Decided] = []
        self.records: list[bytes] = []
        self.batches: list[AppliedBatch] = []
        self.size_bytes = self.held_bytes = 0
        """Of the records, and of their effects in memory."""
        self.state: StoreStand
        """After the group."""
        self.sent: SentReads | None = None
        self.acknowledged: asyncio.Future[range] | asyncio.Future[None]


class _PendingRecord(NamedTuple):
    """The content of a key after a group that is not committed yet."""

    record: Record | None
    group: int


class StoreLeadership:
    """One epoch of leading one store. `run` serves until the log refuses or leaves an outcome unknown.

    Args:
        copy: the local copy, which has all records before the log's next offset. worker: for long commits.
    """

    def __init__(self, host: Host, log: EntryAppender, copy: RocksCopy, worker: Worker, name: str, settings: LeaderSettings) -> None:
        self._clock = host.clock
        self._log = log
        self._copy = copy
        self._worker = worker
        self._name = name
        self._settings = settings
        self._state = copy.state._replace(epoch=log.epoch)
        """After the last group that was sent."""
        self._pending: dict[bytes, _PendingRecord] = {}
        self._queue = BatchQueue(name)
        self._flying: deque[_Group] = deque()
        """Groups that were sent and are not answered, in order."""
        self._has_task = False
        """Whether a group waits for room at the log, so that no other may be sent before it."""
        self._changed = asyncio.Event()
        self.reads = LeaderReads(host.clock, settings.lease_s, log.noop, self._not_leading)
        self._over: NotLeading | None = None
        self._drained: asyncio.Event | None = None
        """Set when no group is at the log. None while groups are sent."""
        self._damage: asyncio.Future[TriplicateError] = asyncio.get_running_loop().create_future()
        self.find_leader: Callable[[], str | None] = lambda: None
        self.on_writing: Callable[[StoreStand], None] = lambda state: None
        """Called before a commit with the state after it."""
        self.on_commit: Callable[[Sequence[AppliedBatch], StoreStand], None] = lambda batches, state: None
        """Called after each commit."""

    # For the store.

    @property
    def epoch(self) -> int:
        return self._log.epoch

    @property
    def now_ms(self) -> int:
        """The leader's clock, milliseconds since the epoch."""
        return self._clock.wall_us() // 1000

    def submit(self, batch: StoreBatch) -> TasklessFuture[BatchResult]:
        """See `store_interface.KeyValueStore.submit`."""
        if self._over is not None:
            raise self._over
        queued = self._queue.add(batch, check_batch(batch, self._settings.limits))
        self._changed.set()
        return queued.answer

    async def drain(self, limit_s: float) -> bool:
        """Send no further group, and wait until none is at the log. Batches that come meanwhile wait for the end of the leadership.

        Returns:
            False if the log has not answered within `limit_s` seconds. Groups are sent again then.
        """
        drained = self._drained = asyncio.Event()
        self._changed.set()
        try:
            with suppress(TimeoutError):
                async with timeout_at(deadline_after(self._clock, limit_s)):
                    await drained.wait()
        finally:
            if not drained.is_set():
                self._drained = None
                self._changed.set()
        return drained.is_set()

    # Serving.

    async def run(self) -> None:
        """Serve until the leadership ends, which is always by an error or by cancellation.

        Raises:
            LogFenced: another node leads. TriplicateError: the log or the copy cannot be written.
        """
        try:
            async with TaskScope(f"leadership {self._name}") as scope:
                scope.spawn(self.reads.run(), name="confirm reads")
                scope.spawn(self._expire(), name="expiry")
                scope.spawn(self._end_when_damaged(), name="damage")
                if self._settings.mark_s > 0:
                    scope.spawn(self._mark(), name="marks")
                scope.spawn(self._serve(partial(scope.spawn, name="append")), name="serve")
        finally:
            self._finish()

    def end(self, damage: TriplicateError) -> None:
        """End the leadership, because a reader has found the copy damaged."""
        resolve(self._damage, damage)

    async def _end_when_damaged(self) -> None:
        raise await self._damage

    def _finish(self) -> None:
        """Fail everything that still waits."""
        self._over = self._not_leading()
        for group in self._flying:
            for decided in group.decided:
                fail(decided.request.answer, self._unknown() if decided.is_logged else self._not_leading())
            if group.sent is not None:
                self.reads.fail(group.sent)
        self._flying.clear()
        while self._queue:
            fail(self._queue.take().answer, self._not_leading())
        self.reads.close()

    async def _serve(self, spawn: Spawn[range]) -> None:
        while True:
            self._changed.clear()
            if self._flying and self._flying[0].acknowledged.done():
                await self._commit_acknowledged()
            elif self._may_send():
                self._send_group(spawn)
            else:
                if self._drained is not None and not self._flying:
                    self._drained.set()
                await self._changed.wait()

    def _may_send(self) -> bool:
        if not self._queue or self._has_task or self._drained is not None:
            return False
        return not self._flying or (len(self._queue) >= FURTHER_BATCHES and len(self._flying) < FLYING_GROUPS)

    def _send_group(self, spawn: Spawn[range]) -> None:
        """Decide the batches that wait, and send what they change to the log."""
        group = self._decide_group()
        if not group.decided:
            return
        self._flying.append(group)
        if not group.records:
            # Answers that change nothing are reads: they too must come from a node that leads.
            group.acknowledged = _done() if self.reads.is_confirmed() else self.reads.proof()
        else:
            self._append(group, spawn)
        group.acknowledged.add_done_callback(partial(self._answered, group.sent))

    def _decide_group(self) -> _Group:
        time_ms = next_time_ms(self._state.time_ms, self.now_ms)
        group = _Group(StoreEntryHeader(self._state.identity, self._log.epoch, self._state.number + 1, time_ms, self._state.keys))
        try:
            self._fill(group, time_ms)
        except BaseException:
            # They wait in the queue no more, and nothing of them was sent.
            for decided in group.decided:
                fail(decided.request.answer, self._not_leading())
            raise
        return group

    def _fill(self, group: _Group, time_ms: int) -> None:
        """Decide the batches that wait, as many as a group may have."""
        position, keys = self._state.position, self._state.keys
        while self._queue and len(group.decided) < GROUP_BATCHES and group.held_bytes < GROUP_BYTES:
            request = self._queue.first
            if request.answer.done():
                self._queue.take()  # Its client has gone.
                continue
            decision, record = self._decide(request.batch, time_ms, position)
            if decision.effects:
                size_bytes = size_of(decision.effects)
                if group.records and group.size_bytes + size_bytes > self._settings.limits.batch_bytes:
                    break
                position += 1
                for effect in decision.effects:
                    keys += effect.keys_added
                group.size_bytes += size_bytes
                group.held_bytes += held_size_of(decision.effects)
                group.records.append(record)
                group.batches.append(AppliedBatch(position, decision.effects))
                self._expect(decision.effects, position, group.header.number)
            self._queue.take()
            group.decided.append(_Decided(request, decision.result, bool(decision.effects)))
        if group.records:
            self._state = self._state.after(group.header, position, keys)
        group.state = self._state

    def _decide(self, batch: StoreBatch, time_ms: int, position: int) -> tuple[BatchDecision, bytes]:
        """Decide a batch; the decision, and the record of its effects. A batch that meets a defect of this program fails alone.

        Raises:
            TriplicateError: the copy cannot be read.
        """
        try:
            decision = decide(batch, self._stored, time_ms, position, self._settings.limits)
            return decision, encode_record(decision.effects) if decision.effects else b""
        except TriplicateError:
            raise
        except Exception as error:  # noqa: BLE001  no error of a client's batch may end the leadership
            _LOG.exception("a batch of store %r could not be decided", self._name)
            return BatchDecision(StoreError(f"internal error: {error!r}; nothing of the batch was stored"), ()), b""

    def _stored(self, key: bytes) -> Record | None:
        """The content of a key after all groups that were sent."""
        pending = self._pending.get(key)
        return self._copy.get(key) if pending is None else pending.record

    def _expect(self, effects: Sequence[Effect], position: int, group: int) -> None:
        """Later batches are decided on these effects."""
        for effect in effects:
            record = None if effect.value is None else Record(effect.value, position, effect.deadline_ms)
            self._pending[effect.key] = _PendingRecord(record, group)

    @fault_point("kv.append")
    def _append(self, group: _Group, spawn: Spawn[range]) -> None:
        preamble = encode_header(group.header)
        group.sent = self.reads.send()
        try:
            group.acknowledged = self._log.append_entry_nowait(group.records, preamble=preamble)
        except WindowFull:
            self._has_task = True
            group.acknowledged = spawn(self._append_later(group.records, preamble))

    async def _append_later(self, records: Sequence[bytes], preamble: bytes) -> range:
        """Append when the log has room."""
        try:
            return await self._log.append_entry(records, preamble=preamble)
        finally:
            self._has_task = False

    def _answered(self, sent: SentReads | None, acknowledged: asyncio.Future[range] | asyncio.Future[None]) -> None:
        """The log has answered for a group. An error is raised where the group is committed, unless another one ends the leadership before.

        The reads of the append are confirmed at once: a group before it may wait for them.
        """
        if not acknowledged.cancelled() and acknowledged.exception() is None and sent is not None:
            self.reads.acknowledge(sent)
        self._changed.set()

    @fault_point("kv.commit")
    async def _commit_acknowledged(self) -> None:
        """Make the groups visible that the log has acknowledged, and answer them."""
        groups: list[_Group] = []
        for group in self._flying:
            if not group.acknowledged.done():
                break
            offsets = group.acknowledged.result()
            if offsets is not None and offsets.stop != group.state.position:
                expected = group.state.position
                raise EnvironmentFault(f"the log gave a group of {self._name!r} the offsets up to {offsets.stop}, where {expected} was due")
            groups.append(group)
        await shielded(self._commit(groups))
        for group in groups:
            self._flying.popleft()
            self._forget(group)
        for group in groups:
            for decided in group.decided:
                if isinstance(decided.answer, BatchResult):
                    resolve(decided.request.answer, decided.answer)
                else:
                    fail(decided.request.answer, decided.answer)

    async def _commit(self, groups: Sequence[_Group]) -> None:
        batches = [batch for group in groups for batch in group.batches]
        if not batches:
            return
        state = groups[-1].state
        self.on_writing(state)
        if sum(group.held_bytes for group in groups) <= SHORT_COMMIT_BYTES:
            self._copy.write(batches, state)
        else:
            await self._worker.run(self._copy.write, batches, state)
        self.on_commit(batches, state)

    def _forget(self, group: _Group) -> None:
        """The copy has the effects of a group."""
        for batch in group.batches:
            for effect in batch.effects:
                pending = self._pending.get(effect.key)
                if pending is not None and pending.group == group.header.number:
                    del self._pending[effect.key]

    async def _mark(self) -> None:
        """Append a no-op whenever nothing was appended for a while."""
        while True:
            wait_s = self.reads.sent_at + self._settings.mark_s - self._clock.elapsed()
            if wait_s > 0:
                await sleep(self._clock, wait_s)
            else:
                await self.reads.noop()

    async def _expire(self) -> None:
        """Delete keys whose deadline has passed, some at a time."""
        swept_ms = 0  # No stored key has a deadline before it.
        while True:
            now_ms, committed_ms = self.now_ms, self._copy.state.time_ms
            due = self._copy.due(now_ms, EXPIRY_KEYS, swept_ms)
            try:
                await self.expire([one.key for one in due])
            except StoreUnavailable:
                await sleep(self._clock, EXPIRY_INTERVAL_S)  # Too many batches wait; clients go first.
                continue
            if len(due) < EXPIRY_KEYS:
                # A group that is committed later has a later time than the copy, and sets deadlines after it.
                swept_ms = min(now_ms, committed_ms)
                await sleep(self._clock, EXPIRY_INTERVAL_S)

    async def expire(self, keys: Sequence[bytes]) -> None:
        """Delete those of these keys whose deadline has passed by the leader's clock. Raises as `submit`."""
        for begin in range(0, len(keys), EXPIRY_KEYS):
            await self.submit(StoreBatch(tuple(Get(key) for key in keys[begin : begin + EXPIRY_KEYS])))

    def _not_leading(self) -> NotLeading:
        return NotLeading(f"this node does not lead store {self._name!r}; connect to the node that does", self.find_leader())

    def _unknown(self) -> StoreError:
        return StoreOutcomeUnknown(
            f"this node lost the leadership of store {self._name!r} while the change was at the log: it may have happened. Read the keys "
            "again at the node that leads"
        )


def _done() -> asyncio.Future[None]:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    resolve(done, None)
    return done
