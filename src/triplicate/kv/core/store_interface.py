"""The boundary between users of key-value stores (the RESP server, programs in the node's process) and the engine.

A `KeyValueStore` is one replicated store as this node sees it. It knows neither connections nor protocols. Methods that are not ``async``
never block and create no task: a server answers many small requests without a task for each.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol

from triplicate.config.values import check_seconds
from triplicate.errors import ArgumentError
from triplicate.kv.core.operations import BatchResult, Expiry, Outcome, StoreBatch, When

ANSWER_BYTES = 32 * 1024 * 1024
"""Upper bound of the values of one read of many keys, and of those that one batch looks at or returns."""


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Upper bounds of one store, bytes. A request beyond them is refused with ArgumentError before anything is changed."""

    key_bytes: int = 4096
    """Of a key, which has at least one byte."""
    value_bytes: int = 1024 * 1024
    """Of a value. An `Append` beyond it fails with `WrongValue`."""
    batch_bytes: int = 4 * 1024 * 1024 - 64 * 1024
    """Of all keys and values of a batch, and 32 for each operation and condition: what one entry of the log can hold."""
    batch_operations: int = 10_000
    """Operations and conditions of a batch, keys of a `get_many`, items of a page."""
    answer_bytes: int = ANSWER_BYTES
    """Of all values that a batch returns, and of all that it looks at."""


class LevelKind(Enum):
    LINEARIZABLE = "linearizable"
    SESSION = "session"
    BOUNDED = "bounded"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class StoreReadLevel:
    """The freshness of a read. Make one with the constants and functions below.

    Args:
        position: of `SESSION`: the read shows at least everything before this position.
        age_s: of `BOUNDED`: the read shows at least everything that was acknowledged this long before it arrived, seconds.
        wait_s: a copy that is behind waits up to this time to catch up, seconds. Then `LevelNotMet` is raised.
    """

    kind: LevelKind
    position: int = 0
    age_s: float = 0.0
    wait_s: float = 0.0

    def __post_init__(self) -> None:
        """Raises ArgumentError: a position or a time cannot be."""
        if type(self.position) is not int or not 0 <= self.position < 1 << 63:
            raise ArgumentError(f"the position of a session is an integer of 63 bits, not {self.position!r}")
        check_seconds("the age of a bounded read", self.age_s)
        check_seconds("the wait of a read", self.wait_s)


LINEARIZABLE = StoreReadLevel(LevelKind.LINEARIZABLE)
"""The read shows everything that was acknowledged before it arrived. Only the leader serves it."""
ANY = StoreReadLevel(LevelKind.ANY)
"""The read shows this copy as it is, which never goes back while the copy is open."""
WAIT_S = 2.0
"""Default time to wait for a copy that is behind."""


def session(position: int, wait_s: float = WAIT_S) -> StoreReadLevel:
    """The read shows at least the position, which is that of an earlier answer on any connection to any node."""
    return StoreReadLevel(LevelKind.SESSION, position=position, wait_s=wait_s)


def bounded(age_s: float, wait_s: float = WAIT_S) -> StoreReadLevel:
    """The read is at most this number of seconds behind the log."""
    return StoreReadLevel(LevelKind.BOUNDED, age_s=age_s, wait_s=wait_s)


class Record(NamedTuple):
    """The content of a key."""

    value: bytes
    version: int
    """Offset after the log record that changed it last."""
    deadline_ms: int
    """Milliseconds since the epoch; 0 for a key that does not expire."""


class Found(NamedTuple):
    """The answer to `get`."""

    record: Record | None
    position: int
    """A position that shows at least all of this answer: the token for later session reads. Also in the answers below."""
    time_ms: int
    """The time by which deadlines were compared: ``deadline_ms - time_ms`` is the time to live."""
    age_s: float | None = 0.0
    """The answer lacks nothing that was acknowledged longer before it than this, seconds: 0 for a linearizable read, None where it is not
    known. A copy that follows compares two machines' clocks, so its age is as exact as they are. Also in the answers below."""

    @property
    def value(self) -> bytes | None:
        """The value; None if the key does not exist."""
        return None if self.record is None else self.record.value


class FoundMany(NamedTuple):
    """The answer to `get_many`, of one moment."""

    records: Sequence[Record | None]
    """In the order of the keys."""
    position: int
    time_ms: int
    age_s: float | None = 0.0


class Item(NamedTuple):
    key: bytes
    record: Record


class KeyPage(NamedTuple):
    """The answer to `scan`, of one moment. Two pages of one scan may be of different moments."""

    items: Sequence[Item]
    """In the order of the keys' bytes. Expired keys are passed over, a number of them for each page: a page with a cursor may be empty."""
    cursor: bytes | None
    """The start of the range for the next page; None at the end."""
    position: int
    time_ms: int
    age_s: float | None = 0.0


class Count(NamedTuple):
    """The answer to `count`."""

    number: int
    position: int
    age_s: float | None = 0.0


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys from `start` up to, and without, `end`; None: without upper bound. Keys are compared as bytes."""

    start: bytes = b""
    end: bytes | None = None

    @classmethod
    def prefix(cls, prefix: bytes) -> KeyRange:
        """The keys that begin with a prefix; all keys if it is empty."""
        stem = prefix.rstrip(b"\xff")
        return cls(prefix, stem[:-1] + bytes((stem[-1] + 1,)) if stem else None)

    def from_cursor(self, cursor: bytes) -> KeyRange:
        """The rest of the range, for the next page."""
        return KeyRange(cursor, self.end)


ALL_KEYS = KeyRange()


class ChangeKind(Enum):
    PUT = "put"
    """The value was stored."""
    DEADLINE = "deadline"
    """Only the deadline was changed."""
    DELETE = "delete"
    EXPIRE = "expire"
    """The key was deleted because its deadline had passed."""


class KeyChange(NamedTuple):
    """One change of one key."""

    position: int
    """Offset after the log record. Changes of one batch have the same. Watch from here to go on after all of them."""
    kind: ChangeKind
    key: bytes
    value: bytes | None
    """The stored value; None except for `PUT`."""
    deadline_ms: int


class KeyWatch(Protocol):
    """The changes of keys with a prefix, in the log's order, each once. Closed with ``aclose`` or ``async with``.

    Iteration gives the changes of one batch or of several at a time, never a part of a batch. A batch without a change of the prefix is
    left out. Iteration raises `PlaceLost` if the watcher was slower than the copy's buffer, and StoreUnavailable when this copy closes.
    """

    @property
    def position(self) -> int:
        """All changes before this position were given. A watch from here goes on without a gap."""

    def __aiter__(self) -> AsyncIterator[Sequence[KeyChange]]: ...

    async def __anext__(self) -> Sequence[KeyChange]: ...

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> KeyWatch: ...

    async def __aexit__(self, *exc_info: object) -> None: ...


class BatchFuture(Awaitable[BatchResult], Protocol):
    """The part of an asyncio future that users of a store need. It waits in no task."""

    def done(self) -> bool: ...

    def result(self) -> BatchResult: ...

    def exception(self) -> BaseException | None: ...

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...


class KeyValueStore(Protocol):
    """One store on this node.

    Every method may raise StoreUnavailable (the copy is not open, or is found wrong) and ArgumentError (beyond `limits`). Reads raise
    `NotLeading` (linearizable on a follower) and `LevelNotMet` (session, bounded).
    """

    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> StoreLimits: ...

    @property
    def node_id(self) -> str:
        """Id of the node whose copy this is, so of the place that its answers come from."""

    @property
    def is_leader(self) -> bool:
        """Whether this node may change the store and serve linearizable reads now."""

    @property
    def leader_hint(self) -> str | None:
        """``host:port`` of the leader's node, as its other protocols are advertised; None if unknown."""

    @property
    def leader_node(self) -> str | None:
        """Id of the node that leads the store, whose registration in the metadata has its addresses; None if unknown."""

    @property
    def is_taking_over(self) -> bool:
        """Whether this node was elected, and does not lead yet."""

    @property
    def leader_resp_address(self) -> str | None:
        """``host:port`` at which the leader's node serves clients of Redis; None if it serves none, or is unknown."""

    @property
    def position(self) -> int:
        """The offset after the last log record applied here."""

    # Changes. They are atomic, and acknowledged by the log before they are answered or seen.

    def submit(self, batch: StoreBatch) -> BatchFuture:
        """Run a batch; the future has its result when the log has acknowledged it and this copy shows it.

        Batches run in the order of the calls of this method. Cancelling the future does not undo the batch.
        The future fails with `WrongValue` (nothing was changed), `NotLeading` (nothing was changed), or `StoreOutcomeUnknown`.

        Raises:
            NotLeading: this node follows. StoreUnavailable: too many batches wait. ArgumentError: the batch is beyond the limits.
        """

    async def execute(self, batch: StoreBatch) -> BatchResult:
        """Run a batch, as `submit`."""

    async def put(
        self, key: bytes, value: bytes, *, expiry: Expiry = ..., when: When = When.ALWAYS, returns_old: bool = False
    ) -> tuple[Outcome, int]:
        """Store a value. Returns the outcome and the position."""

    async def delete(self, *keys: bytes) -> tuple[int, int]:
        """Delete keys, all at once. Returns the number of keys that existed, and the position."""

    # Reads.

    def try_get(self, key: bytes) -> Found | None:
        """A linearizable `get` if it can be answered at once: the lease holds, and no deadline is in doubt. Else None; then use `get`.

        Raises:
            NotLeading, StoreUnavailable, ArgumentError.
        """

    async def get(self, key: bytes, level: StoreReadLevel = LINEARIZABLE) -> Found: ...

    async def get_many(self, keys: Sequence[bytes], level: StoreReadLevel = LINEARIZABLE) -> FoundMany: ...

    async def scan(self, keys: KeyRange, limit: int = 1000, level: StoreReadLevel = LINEARIZABLE, *, with_values: bool = True) -> KeyPage:
        """The first keys of a range, at most `limit`, and at most about 1 MiB of keys and values. `cursor` is None at the end.

        Args:
            with_values: if false, the records have empty values.
        """

    async def count(self, keys: KeyRange = ALL_KEYS, level: StoreReadLevel = LINEARIZABLE) -> Count:
        """The number of keys. Of all keys it is known at once; of a range it reads the range."""

    # Changes of others.

    async def watch(self, prefix: bytes = b"", position: int | None = None) -> KeyWatch:
        """Watch the keys with a prefix on this copy, which may follow.

        Args:
            position: give the changes after this position, such as that of a `scan`; None: from now on.

        Raises:
            PlaceLost: these changes are no longer kept.
        """


class KeyValueStores(Protocol):
    """The stores of a node, as its server uses them."""

    @property
    def starting(self) -> bool:
        """Whether the node may not know all stores yet."""

    def get(self, name: str) -> KeyValueStore | None: ...

    def names(self) -> list[str]: ...
