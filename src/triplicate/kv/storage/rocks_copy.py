"""One copy of a store in RocksDB. All methods block.

The keys of RocksDB are, by their first byte:

    d + key                       version u64, deadline u64, value: the content of a key (little-endian)
    x + deadline u64 + key        empty: the deadlines in their order (big-endian)
    m                             the state of the copy, see `store_stand`

One application of the log is one write batch with the state in it, so data and position never differ. RocksDB's write-ahead log is not
synced: the log is durable, and after a power failure the copy has an earlier state with the position of that state.

RocksDB writes its files by itself, outside of the disk port, as SQLite does.
"""

from __future__ import annotations

import importlib.util
import struct
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from triplicate.errors import ArgumentError, CorruptionError, Diverged, EnvironmentFault, TriplicateError
from triplicate.kv.core.key_expiry import is_expired
from triplicate.kv.core.operations import NEVER
from triplicate.kv.core.store_interface import ANSWER_BYTES, ChangeKind, Item, KeyRange, Record
from triplicate.kv.core.store_records import Effect
from triplicate.kv.storage.store_stand import StoreStand, decode_state, encode_state

if TYPE_CHECKING:
    from rocksdict import Options, Rdict, RdictIter, WriteBatch

_DATA, _DEADLINE, _STATE = b"d", b"x", b"m"
_CONTENT = struct.Struct("<QQ")
_SORTED_TIME = struct.Struct(">Q")
MEMORY_BYTES = 16 * 1024 * 1024
"""Size of RocksDB's table in memory. Changes wait in it and in the write-ahead log."""
SKIPPED_KEYS = 1000
"""A page of a scan ends behind this number of expired keys. The leader removes them in parts, and a short page is read on the loop."""
FEW_KEYS = 16
"""As many keys are read by one call."""
_DAMAGE = ("Corruption", "IO error: No such file or directory")
_MISSING = "key-value stores need the package rocksdict: pip install 'triplicate[rocksdb]'"
_INFO_LOGS, _INFO_LOG_BYTES = 2, 1024 * 1024


class AppliedBatch(NamedTuple):
    """One record of the log."""

    position: int
    """Offset after the record: the version of its keys."""
    effects: Sequence[Effect]


class ScannedPage(NamedTuple):
    items: Sequence[Item]
    cursor: bytes | None
    """Where the next page begins; None at the end of the range."""


class Moment(NamedTuple):
    """The content of a copy at one moment."""

    state: StoreStand
    items: Iterator[Item]
    """All stored keys in their order."""


class DueKey(NamedTuple):
    deadline_ms: int
    key: bytes


@contextmanager
def rocks_errors(path: str) -> Iterator[None]:
    """Translate the errors of RocksDB.

    Raises:
        CorruptionError: the files are damaged. EnvironmentFault: they cannot be used now.
    """
    try:
        yield
    except TriplicateError:
        raise
    except Exception as error:
        raise _translated(error, path) from error


def check_rocksdb() -> None:
    """Raises EnvironmentFault: the package is missing without which no copy can be opened."""
    if importlib.util.find_spec("rocksdict") is None:
        raise EnvironmentFault(_MISSING)


def _translated(error: Exception, path: str) -> CorruptionError | EnvironmentFault:
    if isinstance(error, ModuleNotFoundError):
        return EnvironmentFault(_MISSING)
    # The binding raises plain exceptions, whose texts begin with RocksDB's kind of error.
    if str(error).startswith(_DAMAGE):
        return CorruptionError(f"the files in {path} are damaged: {error}")
    return EnvironmentFault(f"the files in {path} cannot be used: {error}")


def options() -> Options:
    from rocksdict import DBRecoveryMode, Options

    found = Options(raw_mode=True)
    found.create_if_missing(True)
    found.set_write_buffer_size(MEMORY_BYTES)
    found.set_keep_log_file_num(_INFO_LOGS)
    found.set_max_log_file_size(_INFO_LOG_BYTES)
    # A write-ahead log that is damaged after a power failure ends at the damage.
    found.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    return found


_OPEN_COPIES: weakref.WeakSet[RocksCopy] = weakref.WeakSet()


def open_copies() -> list[RocksCopy]:
    """The copies that this process has open."""
    return [copy for copy in _OPEN_COPIES if copy.is_open]


class RocksCopy:
    """An open copy. `get`, `get_many`, `scan` and `write` may be called from different threads.

    Args:
        path: the folder, which is made if it is missing.
        identity: 16 bytes; the copy must be of this store.
    """

    def __init__(self, path: str, identity: bytes) -> None:
        self.path = path
        self._database: Rdict | None = None
        with rocks_errors(path):
            from rocksdict import Rdict

            self._database = Rdict(path, options())
            stored = self._database.get(_STATE)
            self.state = StoreStand(identity) if stored is None else decode_state(stored)
            if stored is None:
                self._database.put(_STATE, encode_state(self.state))
        if self.state.identity != identity:
            self.close()
            raise OtherStore(f"the files in {path} are of another store")

        _OPEN_COPIES.add(self)

    @property
    def is_open(self) -> bool:
        return self._database is not None

    @property
    def _open(self) -> Rdict:
        if self._database is None:
            raise EnvironmentFault(f"the copy in {self.path} is closed")
        return self._database

    # Reads.

    def get(self, key: bytes) -> Record | None:
        """The stored record of a key, which may be expired."""
        database = self._open
        try:
            content = database.get(_DATA + key)
        except Exception as error:  # A context manager would cost as much as the read.
            raise _translated(error, self.path) from error
        return None if content is None else _record(content)

    def get_many(self, keys: Sequence[bytes]) -> list[Record | None]:
        """The stored records of keys, of one moment.

        Raises:
            ArgumentError: their values have more than `ANSWER_BYTES` together.
        """
        found: list[Record | None] = []
        size_bytes = 0
        with rocks_errors(self.path):
            for content in self._contents(keys):
                size_bytes += 0 if content is None else len(content)
                if size_bytes > ANSWER_BYTES:
                    raise ArgumentError(f"the values of these keys have more than {ANSWER_BYTES} bytes together; read fewer keys at once")
                found.append(None if content is None else _record(content))
        return found

    def _contents(self, keys: Sequence[bytes]) -> Iterator[bytes | None]:
        """The contents of keys, of one moment. Those of many keys are read one by one, for they may be large together."""
        if len(keys) <= FEW_KEYS:
            yield from self._open.get([_DATA + key for key in keys]) or []
            return
        iterator = self._open.iter()
        for key in keys:
            stored = _DATA + key
            iterator.seek(stored)
            yield iterator.value() if iterator.valid() and iterator.key() == stored else None
        iterator.status()

    def scan(self, keys: KeyRange, limit: int, limit_bytes: int, time_ms: int, *, with_values: bool = True) -> ScannedPage:
        """The first keys of a range that are not expired at a time. A page that is not the last may have fewer keys, or none.

        Args:
            limit: upper bound of the number of keys. limit_bytes: a page ends at this size, expired values included.
        """
        items: list[Item] = []
        size_bytes = skipped = 0
        with rocks_errors(self.path):
            for stored, content in self._data(keys.start):
                key = stored[1:]
                if keys.end is not None and key >= keys.end:
                    break
                if len(items) >= limit or size_bytes >= limit_bytes or skipped >= SKIPPED_KEYS:
                    return ScannedPage(items, key)
                _, deadline_ms = _CONTENT.unpack_from(content)
                if is_expired(deadline_ms, time_ms):
                    skipped += 1
                    size_bytes += len(content)
                    continue
                record = _record(content)
                items.append(Item(key, record if with_values else record._replace(value=b"")))
                size_bytes += len(key) + (len(record.value) if with_values else 0)
        return ScannedPage(items, None)

    def count(self, keys: KeyRange, time_ms: int) -> int:
        """The number of keys of a range that are not expired at a time."""
        number = 0
        with rocks_errors(self.path):
            for stored, content in self._data(keys.start):
                if keys.end is not None and stored[1:] >= keys.end:
                    break
                _, deadline_ms = _CONTENT.unpack_from(content)
                number += not is_expired(deadline_ms, time_ms)
        return number

    def count_all(self) -> int:
        """The number of all keys that are not expired at the time of the copy, of one moment."""
        with rocks_errors(self.path):
            iterator = self._open.iter()
            state = _state_of(iterator)
            return state.keys - sum(1 for _ in _deadlines(iterator, state.time_ms))

    def due(self, time_ms: int, limit: int, since_ms: int = 0) -> list[DueKey]:
        """The stored keys whose deadline is not after a time, the earliest first, at most `limit`.

        Args:
            since_ms: deadlines before it are left out. RocksDB would pass over all that were deleted there.
        """
        found: list[DueKey] = []
        with rocks_errors(self.path):
            found += islice(_deadlines(self._open.iter(), time_ms, since_ms), limit)
        return found

    def moment(self) -> Moment:
        """The state and all keys of this moment. The copy must not be closed before the iterator of the keys ends, or is deleted."""
        with rocks_errors(self.path):
            iterator = self._open.iter()
            return Moment(_state_of(iterator), self._items(iterator))

    def _items(self, iterator: RdictIter) -> Iterator[Item]:
        with rocks_errors(self.path):
            for key, content in _pairs(iterator, _DATA):
                yield Item(key[1:], _record(content))

    def _data(self, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The stored keys of data from a key on, with their contents, of the moment of the call."""
        return _pairs(self._open.iter(), _DATA, start)

    # Changes.

    def write(self, batches: Sequence[AppliedBatch], state: StoreStand) -> None:
        """Apply records of the log, and store the state after them, all or none.

        Raises:
            Diverged: a record changes a key that this copy does not have.
        """
        with rocks_errors(self.path):
            from rocksdict import WriteBatch

            changes = WriteBatch(raw_mode=True)
            values: dict[bytes, bytes | None] = {}
            for batch in batches:
                for effect in batch.effects:
                    self._apply(changes, effect, batch.position, values)
            changes.put(_STATE, encode_state(state))
            self._open.write(changes)
        self.state = state

    def _apply(self, changes: WriteBatch, effect: Effect, version: int, values: dict[bytes, bytes | None]) -> None:
        """Add one effect to a write batch.

        Args:
            values: of the keys that earlier effects of the batch have changed; None for a deleted one.
        """
        kind, key, value, deadline_ms, old_deadline_ms, _ = effect
        if old_deadline_ms != NEVER and old_deadline_ms != deadline_ms:
            changes.delete(_deadline_key(old_deadline_ms, key))
        if kind is ChangeKind.DEADLINE and value is None:
            value = self._value(key, values)
        if kind in (ChangeKind.PUT, ChangeKind.DEADLINE):
            if value is None:
                raise Diverged(f"the log changes the deadline of a key at offset {version - 1} that this copy does not have")
            changes.put(_DATA + key, _CONTENT.pack(version, deadline_ms) + value)
            if deadline_ms != NEVER:
                changes.put(_deadline_key(deadline_ms, key), b"")
            values[key] = value
        else:
            changes.delete(_DATA + key)
            values[key] = None

    def _value(self, key: bytes, values: dict[bytes, bytes | None]) -> bytes | None:
        if key in values:
            return values[key]
        record = self.get(key)
        return None if record is None else record.value

    def load(self, items: Sequence[Item]) -> None:
        """Store the content of keys in a new copy, without a state. The state is stored last, by `write`."""
        with rocks_errors(self.path):
            from rocksdict import WriteBatch

            changes = WriteBatch(raw_mode=True)
            for key, record in items:
                changes.put(_DATA + key, _CONTENT.pack(record.version, record.deadline_ms) + record.value)
                if record.deadline_ms != NEVER:
                    changes.put(_deadline_key(record.deadline_ms, key), b"")
            self._open.write(changes)

    def flush(self) -> None:
        """Write everything into synced files."""
        with rocks_errors(self.path):
            self._open.flush(True)

    def close(self) -> None:
        """Close the files. Idempotent."""
        database, self._database = self._database, None
        if database is not None:
            with rocks_errors(self.path):
                database.close()


def _pairs(iterator: RdictIter, kind: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
    """The keys and contents of one kind from a key on.

    An iterator of RocksDB ends at damage as at the end, and only its status shows the difference.
    """
    iterator.seek(kind + start)
    while iterator.valid():
        key = iterator.key()
        if key[:1] != kind:
            return
        yield key, iterator.value()
        iterator.next()
    iterator.status()


def _state_of(iterator: RdictIter) -> StoreStand:
    """The state of the copy at the moment of an iterator. One that the binding makes of a snapshot has a later moment than the snapshot."""
    iterator.seek(_STATE)
    if not iterator.valid() or iterator.key() != _STATE:
        iterator.status()
        raise CorruptionError("the copy has no state")
    return decode_state(iterator.value())


def _deadlines(iterator: RdictIter, time_ms: int, since_ms: int = 0) -> Iterator[DueKey]:
    """The deadlines that are not after a time, the earliest first."""
    for stored, _ in _pairs(iterator, _DEADLINE, _SORTED_TIME.pack(since_ms)):
        (deadline_ms,) = _SORTED_TIME.unpack_from(stored, 1)
        if deadline_ms > time_ms:
            return
        yield DueKey(deadline_ms, stored[1 + _SORTED_TIME.size :])


class OtherStore(TriplicateError):
    """The files are of another store than the one that was expected."""


def _record(content: bytes) -> Record:
    version, deadline_ms = _CONTENT.unpack_from(content)
    return Record(content[_CONTENT.size :], version, deadline_ms)


def _deadline_key(deadline_ms: int, key: bytes) -> bytes:
    return _DEADLINE + _SORTED_TIME.pack(deadline_ms) + key
