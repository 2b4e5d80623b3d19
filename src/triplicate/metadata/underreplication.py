"""Under-replicated ledgers: the nodes by which the auditor marks them and replication workers lock and repair them.

The node of a ledger names the bookies that lack copies. A worker locks the ledger, repairs it and deletes the node at the version that it
has read. If the ledger was marked again in the meantime, the node stays. A lock is ephemeral, so the death of a worker releases its ledger.

Source: BookKeeper `ZkLedgerUnderreplicationManager`.
"""

from __future__ import annotations

import enum
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from triplicate.errors import ArgumentError, BadVersion, ConnectionLost, FormatError, MetadataError, NodeExists, NoNode, NotEmpty
from triplicate.metadata.core.bookie_ids import check_bookie_id
from triplicate.metadata.core.paths import name_of, parent_of, underreplicated_path
from triplicate.metadata.core.repair_formats import (
    check_repair_layout,
    decode_check_time,
    decode_lock,
    decode_mark,
    encode_check_time,
    encode_lock,
    encode_mark,
    encode_repair_layout,
)
from triplicate.metadata.core.tree import ANY_VERSION, CheckVersion, DeleteNode, Tree, Watch
from triplicate.metadata.drivers.watches import JoinedWatch
from triplicate.metadata.retries import Attempts, retried
from triplicate.metadata.session_nodes import delete_of_session, multi_in_session
from triplicate.runtime import Host, shielded, sleep, timeout_at

RACES_MAX = 100
"""Maximum number of attempts of a change that loses races against other changes of the node."""

SEARCH_SHARE = 0.05
"""Greatest share of the time that a waiting worker spends on searches, since each of many waiting ledgers may wake it."""
SEARCH_PAUSE_MAX_S = 60.0

UNDO_LIMIT_S = 5.0
"""Longest time in which an interrupted attempt to lock a ledger deletes what it may have created."""

_LEVELS = 4
_DIRECTORY = re.compile(r"[0-9a-f]{4}", re.ASCII)
_MARK = re.compile(r"urL([0-9]{10,19})", re.ASCII)


def _not_held(ledger_id: int) -> bool:
    """No ledger is passed over."""
    return False


def _until_changed() -> float | None:
    """Nothing but a change in the metadata store ends the wait."""
    return None


class PeriodicCheck(enum.Enum):
    """The auditor's checks whose last run is recorded, by the name of their node."""

    ALL_LEDGERS = "checkallledgersctime"
    PLACEMENT_POLICY = "placementpolicycheckctime"
    REPLICAS = "replicascheckctime"


@dataclass(frozen=True, slots=True)
class UnderreplicatedLedger:
    """A ledger that lacks copies."""

    ledger_id: int
    missing: tuple[str, ...]
    """The bookies that lack copies."""
    ctime_ms: int | None
    """Time of the mark in ms since the epoch, as written into the node; None if the node has none."""
    version: int
    created_ms: int = 0
    """When the node was created, in ms since the epoch by the store's clock. Another mark of the ledger has another time."""


@dataclass(frozen=True, slots=True)
class ReplicationLock:
    """An under-replicated ledger locked by this session."""

    mark: UnderreplicatedLedger
    session_id: int
    """The session that holds the lock. Another worker can lock the ledger after that session ends."""


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock as another session may hold it.

    Args:
        since_ms: when it was made, in ms since the epoch, by the store's clock.
        worker: the name in it; empty if it cannot be decoded.
    """

    ledger_id: int
    session_id: int
    since_ms: int
    worker: str


class UnderreplicationManager:
    """The marks and locks of one cluster, and the settings of its auto-recovery."""

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._base = f"{root}/underreplication"
        self._marks = f"{self._base}/ledgers"
        self._locks = f"{self._base}/locks"
        self._order = host.entropy.stream("metadata.under_replication")
        self._prepared = False
        self._claimed: set[int] = set()
        """Ledgers that this object has locked or is locking, so that two of its users cannot share a lock."""
        self._left: dict[int, None] = {}
        """Ledgers whose lock may be left from an interrupted attempt that could not delete it."""

    # Marks.

    async def mark(self, ledger_id: int, missing: Iterable[str]) -> None:
        """Mark a ledger as under-replicated, or add bookies to its node. The time is updated only if a bookie is added.

        Raises:
            ArgumentError: not a ledger id or bookie id. FormatError: the existing node cannot be decoded.
        """
        path, wanted = self._path(ledger_id), tuple(dict.fromkeys(check_bookie_id(bookie_id) for bookie_id in missing))
        await self._prepare()
        attempts = Attempts(self._host)
        for _ in range(RACES_MAX):
            try:
                await self._tree.create(path, encode_mark(wanted, self._now_ms()), parents=True)
            except NodeExists:
                try:
                    await self._add(path, wanted)
                except (NoNode, BadVersion):
                    continue  # Repaired, or marked by another process, between the read and the write.
                except ConnectionLost as error:
                    await attempts.again(error)
                    continue
            except NoNode:
                continue  # The last node beside it was deleted, and its parents with it.
            except ConnectionLost as error:
                await attempts.again(error)  # If the change was applied, the next attempt finds all bookies listed.
                continue
            return
        raise MetadataError(f"{path}: others changed it {RACES_MAX} times while it was being marked")

    async def _add(self, path: str, wanted: tuple[str, ...]) -> None:
        data, stat = await retried(self._host, lambda: self._tree.get(path))
        present, _ = decode_mark(data)
        complete = tuple(dict.fromkeys(present + wanted))
        if complete != present:
            await self._tree.set(path, encode_mark(complete, self._now_ms()), stat.version)

    async def get(self, ledger_id: int) -> UnderreplicatedLedger | None:
        """The node of an under-replicated ledger, or None.

        Raises:
            FormatError: it cannot be understood.
        """
        path = self._path(ledger_id)
        try:
            data, stat = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        missing, ctime_ms = decode_mark(data)
        return UnderreplicatedLedger(ledger_id, missing, ctime_ms, stat.version, stat.ctime_ms)

    def marks(self) -> UnderreplicatedIterator:
        """All under-replicated ledgers by ascending id. Concurrent creations and deletions may be missed."""
        return UnderreplicatedIterator(self, self._tree, self._host, self._marks)

    # Locks.

    async def lock_any(self, worker: str) -> ReplicationLock | None:
        """Lock a random under-replicated ledger that is not locked; None if there is none.

        Args:
            worker: the name written into the lock.
        """
        await self._prepare()
        return await self._search(worker, _not_held, watches=None)

    async def lock_next(
        self, worker: str, is_held: Callable[[int], bool] = _not_held, held_until: Callable[[], float | None] = _until_changed
    ) -> ReplicationLock:
        """As `lock_any`, but waits until there is such a ledger and auto-recovery is enabled.

        Args:
            is_held: whether a ledger is to be passed over now.
            held_until: the time of the monotonic clock after which `is_held` may be false for a ledger for which it is true now.
        """
        await self._prepare()
        clock = self._host.clock
        while True:
            watches: list[Watch] = [self._tree.watch(self._disabled), self._tree.watch(self._locks)]
            began = clock.monotonic()
            try:
                found = await self._search(worker, is_held, watches) if await self.is_enabled() else None
                if found is not None:
                    return found
                search_s = clock.monotonic() - began
                with suppress(TimeoutError):
                    async with timeout_at(held_until()):
                        await JoinedWatch(watches).changed()
                await sleep(clock, min(SEARCH_PAUSE_MAX_S, search_s * (1 / SEARCH_SHARE - 1)))
            finally:
                for watch in watches:
                    watch.close()

    async def lock(self, ledger_id: int, worker: str) -> ReplicationLock | None:
        """Lock one ledger; None if it is not marked, or already locked.

        A call that is cancelled or fails leaves no lock behind, unless the metadata store fails as well.
        """
        return await self._lock(ledger_id, worker, marked=True)

    async def lock_unmarked(self, ledger_id: int, worker: str) -> ReplicationLock | None:
        """Lock a ledger that lacks no copies, so that no worker repairs it meanwhile; None if it is marked, or already locked.

        `release` releases it. Source: BookKeeper `acquireUnderreplicatedLedger`, which its garbage collection uses in this way.
        """
        return await self._lock(ledger_id, worker, marked=False)

    async def _lock(self, ledger_id: int, worker: str, *, marked: bool) -> ReplicationLock | None:
        await self._prepare()
        await self._undo_left()
        if ledger_id in self._claimed or (ledger_id in self._left and not marked):
            return None
        self._claimed.add(ledger_id)
        lock: ReplicationLock | None = None
        try:
            if not marked or await self.get(ledger_id) is not None:
                lock = await self._lock_claimed(ledger_id, worker, marked=marked)
            return lock
        finally:
            if lock is None:
                self._claimed.discard(ledger_id)

    async def _lock_claimed(self, ledger_id: int, worker: str, *, marked: bool) -> ReplicationLock | None:
        path, is_decided = self._lock_path(ledger_id), False
        try:
            if not await self._create_lock(path, worker):
                is_decided = True
                return None
            session_id = self._tree.session_id
            # Read under the lock: the ledger may have been repaired before, and a worker of a later mark cannot begin.
            mark = await self.get(ledger_id)
            is_wanted = (mark is not None) == marked
            if not is_wanted:
                await self._delete_lock(path, session_id)
            is_decided = True
            found = mark or UnderreplicatedLedger(ledger_id, (), None, ANY_VERSION)
            return ReplicationLock(found, session_id) if is_wanted else None
        finally:
            if is_decided:
                self._left.pop(ledger_id, None)
            else:
                await shielded(self._undo(ledger_id))

    async def _undo(self, ledger_id: int) -> None:
        """Delete the lock if it is this session's. If the metadata store does not answer, a later search, or `locks`, does."""
        path = self._lock_path(ledger_id)
        self._left[ledger_id] = None
        try:
            async with timeout_at(self._host.clock.monotonic() + UNDO_LIMIT_S):
                await self._delete_lock(path, self._tree.session_id)
        except (MetadataError, TimeoutError) as error:
            self._host.trace("metadata.replication_lock_left", ledger=ledger_id, error=" ".join(str(error).split()))
        else:
            self._left.pop(ledger_id, None)

    async def _undo_left(self) -> None:
        """Delete the locks that are left behind. Ends with the first that cannot be deleted: the metadata store does not answer."""
        for ledger_id in [item for item in self._left if item not in self._claimed]:
            self._claimed.add(ledger_id)
            try:
                await self._undo(ledger_id)
            finally:
                self._claimed.discard(ledger_id)
            if ledger_id in self._left:
                return

    async def _create_lock(self, path: str, worker: str) -> bool:
        attempts = Attempts(self._host)
        while True:
            try:
                await self._tree.create(path, encode_lock(worker), ephemeral=True, parents=True)
            except NodeExists:
                # If it is this session's, it is from an attempt whose answer was lost: no other user of this object has claimed the ledger.
                stat = await retried(self._host, lambda: self._tree.exists(path))
                return stat is not None and stat.ephemeral_owner == self._tree.session_id
            except ConnectionLost as error:
                await attempts.again(error)
            else:
                return True

    async def complete(self, lock: ReplicationLock) -> bool:
        """Delete the node of a repaired ledger and its lock in one transaction, and the parents that become empty.

        Returns:
            Whether the node is gone. It stays, for another repair, if the ledger was marked again or the lock was lost with its session.
        """
        path = self._path(lock.mark.ledger_id)
        with self._ending(lock.mark.ledger_id):
            await self._delete_under(lock, path)
            await self._delete_lock(self._lock_path(lock.mark.ledger_id), lock.session_id)
        if await retried(self._host, lambda: self._tree.exists(path)) is not None:
            return False
        await self._prune(path)
        return True

    async def _delete_under(self, lock: ReplicationLock, path: str) -> None:
        lock_path = self._lock_path(lock.mark.ledger_id)
        attempts = Attempts(self._host)
        while await self._holds(lock):
            try:
                mended = CheckVersion(lock_path), DeleteNode(path, lock.mark.version), DeleteNode(lock_path)
                await multi_in_session(self._tree, lock.session_id, mended)
            except ConnectionLost as error:
                await attempts.again(error)  # The lock shows whether the transaction was applied.
            except (NoNode, BadVersion):
                return
            else:
                return
        self._host.trace("metadata.replication_lock_lost", ledger=lock.mark.ledger_id)

    async def release(self, lock: ReplicationLock) -> None:
        """Release the lock of a ledger that was not repaired. If that fails, a later search, or `locks`, does it."""
        with self._ending(lock.mark.ledger_id):
            await self._delete_lock(self._lock_path(lock.mark.ledger_id), lock.session_id)

    @contextmanager
    def _ending(self, ledger_id: int) -> Iterator[None]:
        """While a lock is deleted: it counts as left behind until that has succeeded."""
        self._left[ledger_id] = None
        try:
            yield
            self._left.pop(ledger_id, None)
        finally:
            self._claimed.discard(ledger_id)

    async def worker_of(self, ledger_id: int) -> str | None:
        """The name of the worker that has locked a ledger, or None.

        Raises:
            FormatError: the lock cannot be decoded.
        """
        path = self._lock_path(ledger_id)
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return decode_lock(data)

    async def locks(self) -> frozenset[HeldLock]:
        """The locks of all workers. One that a worker has released and made again is another one; those that this object's users have left
        behind are deleted first."""
        await self._undo_left()
        found: list[HeldLock] = []
        for name in await self._names(self._locks):
            path, match = f"{self._locks}/{name}", _MARK.fullmatch(name)
            if match is None:
                continue
            with suppress(NoNode):  # It was released meanwhile.
                data, stat = await retried(self._host, lambda path=path: self._tree.get(path))  # type: ignore[misc]
                try:
                    worker = decode_lock(data)
                except FormatError:
                    worker = ""
                found.append(HeldLock(int(match[1]), stat.ephemeral_owner, stat.ctime_ms, worker))
        return frozenset(found)

    # Settings of auto-recovery.

    async def is_enabled(self) -> bool:
        """Whether auto-recovery is enabled in the cluster."""
        return await retried(self._host, lambda: self._tree.exists(self._disabled)) is None

    async def disable(self) -> bool:
        """Disable auto-recovery in the whole cluster; False if it was disabled already."""
        await self._prepare()
        return await self._create_if_missing(self._disabled, b"")

    async def enable(self) -> bool:
        """Enable auto-recovery; False if it was enabled already."""
        if await self.is_enabled():
            return False
        await self._delete(self._disabled)
        return True

    async def lost_bookie_recovery_delay_s(self) -> int | None:
        """Delay in seconds between the loss of a bookie and the marking of its ledgers; None if it is not set.

        Raises:
            FormatError: not a number.
        """
        data = await self._data(f"{self._base}/lostBookieRecoveryDelay")
        if data is None:
            return None
        if not re.fullmatch(rb"-?[0-9]{1,10}", data):
            raise FormatError(f"lostBookieRecoveryDelay says {data!r}: not a number of seconds")
        return int(data)

    async def set_lost_bookie_recovery_delay_s(self, delay_s: int) -> None:
        """Change the delay. Auditors that watch it react at once."""
        await self._create_or_set("lostBookieRecoveryDelay", _delay(delay_s))

    async def initialise_lost_bookie_recovery_delay_s(self, delay_s: int) -> bool:
        """Set the delay unless it is set; returns whether this call set it."""
        await self._prepare()
        return await self._create_if_missing(f"{self._base}/lostBookieRecoveryDelay", _delay(delay_s))

    async def check_time_ms(self, check: PeriodicCheck) -> int | None:
        """Time of the last completed run of a check in ms since the epoch; None if it never ran.

        Raises:
            FormatError: it cannot be understood.
        """
        data = await self._data(f"{self._base}/{check.value}")
        return None if data is None else decode_check_time(data)

    async def set_check_time_ms(self, check: PeriodicCheck, ctime_ms: int) -> None:
        """Record the time of a completed run of a check."""
        await self._create_or_set(check.value, encode_check_time(ctime_ms))

    def watch(self) -> Watch:
        """Wakes when auto-recovery may have been disabled or enabled, or the delay changed."""
        return JoinedWatch([self._tree.watch(self._disabled), self._tree.watch(f"{self._base}/lostBookieRecoveryDelay")])

    # Helpers.

    @property
    def _disabled(self) -> str:
        return f"{self._base}/disable"

    def _path(self, ledger_id: int) -> str:
        return self._marks + underreplicated_path(ledger_id)

    def _lock_path(self, ledger_id: int) -> str:
        return f"{self._locks}/{name_of(underreplicated_path(ledger_id))}"

    def _now_ms(self) -> int:
        return self._host.clock.wall_us() // 1000

    async def _prepare(self) -> None:
        """Create the nodes that BookKeeper's tools expect, once.

        Raises:
            FormatError: the tree has an unknown layout.
        """
        if self._prepared:
            return
        await self._create_if_missing(f"{self._base}/LAYOUT", encode_repair_layout())
        check_repair_layout(await self._data(f"{self._base}/LAYOUT") or b"")
        for path in (self._marks, self._locks):
            await self._create_if_missing(path, b"")
        self._prepared = True

    async def _search(self, worker: str, is_held: Callable[[int], bool], watches: list[Watch] | None) -> ReplicationLock | None:
        """Walk the tree in random order until a ledger could be locked. Every directory read is watched."""
        await self._undo_left()
        left = [name_of(underreplicated_path(ledger_id)) for ledger_id in self._left]
        locked = dict.fromkeys(name for name in await self._names(self._locks) if name not in left)
        waiting = [(self._marks, 0)]
        while waiting:
            path, level = waiting.pop()
            if watches is not None:
                watches.append(self._tree.watch(path))
            names = await self._names(path)
            self._order.shuffle(names)
            if level < _LEVELS:
                waiting.extend((f"{path}/{name}", level + 1) for name in names if _DIRECTORY.fullmatch(name))
                continue
            for name in names:
                found = _MARK.fullmatch(name)
                if found is None or name in locked or is_held(int(found[1])):
                    continue
                if (lock := await self.lock(int(found[1]), worker)) is not None:
                    return lock
        return None

    async def _holds(self, lock: ReplicationLock) -> bool:
        path = self._lock_path(lock.mark.ledger_id)
        stat = await retried(self._host, lambda: self._tree.exists(path))
        return stat is not None and stat.ephemeral_owner == lock.session_id

    async def _delete_lock(self, path: str, session_id: int) -> None:
        """Delete a lock if the session has made it. The lock of a later session at its path may be another worker's."""
        await retried(self._host, lambda: delete_of_session(self._tree, path, session_id))

    async def _prune(self, path: str) -> None:
        parent = parent_of(path)
        while parent != self._marks:
            try:
                await self._tree.delete(parent)
            except (NotEmpty, NoNode, ConnectionLost):
                return  # Still in use, or left to the next repaired ledger.
            parent = parent_of(parent)

    async def _names(self, path: str) -> list[str]:
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(path))
        except NoNode:
            return []
        return names

    async def _data(self, path: str) -> bytes | None:
        try:
            data, _ = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return data

    async def _create_or_set(self, name: str, data: bytes) -> None:
        await self._prepare()
        path = f"{self._base}/{name}"
        if not await self._create_if_missing(path, data):
            await retried(self._host, lambda: self._tree.set(path, data))

    async def _create_if_missing(self, path: str, data: bytes) -> bool:
        try:
            await retried(self._host, lambda: self._tree.create(path, data, parents=True))
        except NodeExists:
            return False
        return True

    async def _delete(self, path: str) -> None:
        with suppress(NoNode):
            await retried(self._host, lambda: self._tree.delete(path))


def _delay(delay_s: int) -> bytes:
    if not 0 <= delay_s < 2**31:
        raise ArgumentError(f"a delay of {delay_s} s is outside 0 to {2**31 - 1}")
    return str(delay_s).encode("ascii")


class UnderreplicatedIterator:
    """Iterates over under-replicated ledgers: walks the tree depth first, one directory at a time."""

    def __init__(self, owner: UnderreplicationManager, tree: Tree, host: Host, top: str) -> None:
        self._owner = owner
        self._tree = tree
        self._host = host
        self._directories = [(top, 0)]
        self._found: deque[int] = deque()

    def __aiter__(self) -> UnderreplicatedIterator:
        return self

    async def __anext__(self) -> UnderreplicatedLedger:
        while True:
            while self._found:
                mark = await self._owner.get(self._found.popleft())
                if mark is not None:
                    return mark
            if not self._directories:
                raise StopAsyncIteration
            await self._read(*self._directories.pop())

    async def aclose(self) -> None:
        """End the iteration. Idempotent."""
        self._directories.clear()
        self._found.clear()

    async def _read(self, path: str, level: int) -> None:
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(path))
        except NoNode:
            return
        if level < _LEVELS:
            self._directories.extend((f"{path}/{name}", level + 1) for name in sorted(names, reverse=True) if _DIRECTORY.fullmatch(name))
        else:
            self._found.extend(sorted(int(found[1]) for name in names if (found := _MARK.fullmatch(name))))
