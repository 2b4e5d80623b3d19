"""A key-value store in the process of an application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from triplicate.embedded.embedded_node import LOCAL_LEASE_S, EmbeddedNode
from triplicate.embedded.usable_copy import wait_until_usable
from triplicate.errors import HandleClosed, StoreExists, StoreUnavailable
from triplicate.kv import (
    ALL_KEYS,
    LEASE_S,
    LINEARIZABLE,
    NO_EXPIRY,
    BatchResult,
    Count,
    DeadlineWhen,
    Delete,
    Expire,
    Expiry,
    Found,
    FoundMany,
    HostedStores,
    Item,
    KeyPage,
    KeyRange,
    KeyWatch,
    Outcome,
    Put,
    ReplicatedStore,
    StoreBatch,
    StoreLimits,
    StoreReadLevel,
    ValueIs,
    When,
    check_rocksdb,
    create_store,
    read_store,
    store_names,
)

PAGE_KEYS = 1000
"""Keys that an iteration reads at a time."""


class EmbeddedStore:
    """One key-value store of an embedded node. Made by `triplicate.key_value`. Tasks may use it at the same time.

    Keys and values are bytes. Changes and linearizable reads are for the process that leads the store. In another one they raise
    `NotLeading`, whose `leader` has the leader's address, and its copy is read at the other levels.

    Every method may raise StoreUnavailable (this copy cannot be used now), ArgumentError (beyond `limits`; nothing was changed),
    EnvironmentFault (the node has failed) and HandleClosed.
    """

    def __init__(self, name: str, node: EmbeddedNode, stores: HostedStores, *, shares_node: bool) -> None:
        self.name = name
        self._node = node
        self._stores = stores
        self._shares_node = shares_node
        self._is_closed = False

    @classmethod
    async def open(cls, node: EmbeddedNode, name: str, *, create: bool, limit_s: float, shares_node: bool = False) -> EmbeddedStore:
        """Wait until the store can be used here: this node leads it, or follows and has what the log had when this was called.

        Args:
            create: make it if there is none of the name.
            limit_s: limit of the wait, seconds.
            shares_node: whether the node goes on when the store is closed.

        Raises:
            NoSuchStore: there is no such store. EnvironmentFault: it cannot be used within the time, and why; or the package rocksdict
                is missing.
        """
        check_rocksdb()
        stores = await node.stores.open()
        if not create:
            await read_store(node.client, name)
        elif name not in await store_names(node.client):
            log_settings, lease_s = (None, LEASE_S) if node.cluster is None else (node.cluster.log_settings, LOCAL_LEASE_S)
            with suppress(StoreExists):  # Another process made it meanwhile.
                await create_store(node.client, name, log_settings, logs=node.logs, lease_s=lease_s)
        store = cls(name, node, stores, shares_node=shares_node)
        await wait_until_usable(node, stores, name, store._title, limit_s)
        return store

    # State.

    @property
    def node_id(self) -> str:
        """The node of this process, whose copy answers all reads."""
        return self._store.node_id

    @property
    def is_leader(self) -> bool:
        """Whether this process leads the store now, so that it accepts changes."""
        return self._store.is_leader

    @property
    def leader(self) -> str | None:
        """``host:port`` of the node that leads the store; None if it is unknown, or does not listen."""
        return self._store.leader_hint or None

    @property
    def position(self) -> int:
        """The offset after the last record of the store's log that the copy of this process has."""
        return self._store.position

    @property
    def limits(self) -> StoreLimits:
        """Upper bounds of keys, values and batches."""
        return self._store.limits

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port at which clients of Redis reach this process; None where it does not listen for them."""
        return self._node.stores.address

    @property
    def node(self) -> EmbeddedNode:
        """The node, for logs, databases and other stores of its cluster."""
        return self._node

    @property
    def _title(self) -> str:
        return f"store {self.name}"

    @property
    def _store(self) -> ReplicatedStore:
        if self._is_closed:
            raise HandleClosed(f"{self._title} was closed; open it again")
        self._node.check_works(self._title)
        store = self._stores.get(self.name)
        if store is None:
            raise StoreUnavailable(f"this process has no copy of store {self.name!r} any more: it was dropped, or this node drains")
        return store

    # Changes. The log has acknowledged them on return. Where their caller is cancelled, they happen or not.

    async def put(
        self, key: bytes, value: bytes, *, expiry: Expiry = NO_EXPIRY, when: When = When.ALWAYS, returns_old: bool = False
    ) -> tuple[Outcome, int]:
        """Store a value; the outcome, and the position for later reads at the level `session`.

        Args:
            expiry: when the key is deleted by itself.
            when: where this does not hold, nothing is changed and the outcome is not `applied`.
            returns_old: whether the outcome has the value before.

        Raises:
            NotLeading: another process leads; nothing was changed. StoreOutcomeUnknown: it happened or not.
        """
        return await self._store.put(key, value, expiry=expiry, when=when, returns_old=returns_old)

    async def delete(self, *keys: bytes) -> tuple[int, int]:
        """Delete keys, all at once; the number of those that existed, and the position. Raises as `put`."""
        return await self._store.delete(*keys)

    async def expire(self, key: bytes, expiry: Expiry, when: DeadlineWhen = DeadlineWhen.ALWAYS) -> bool:
        """Set the deadline of a key, or with `NO_EXPIRY` remove it; whether the key was changed. Raises as `put`."""
        return (await self.execute(StoreBatch((Expire(key, expiry, when),)))).outcomes[0].applied

    async def compare_and_set(self, key: bytes, expected: bytes | None, value: bytes | None, *, expiry: Expiry = NO_EXPIRY) -> bool:
        """Store a value if the key has the one that is expected; whether it had, and nothing was changed otherwise. Raises as `put`.

        To compare versions or several keys, `execute` a batch with conditions.

        Args:
            expected: None: the key does not exist.
            value: None deletes the key.
        """
        operation = Delete(key) if value is None else Put(key, value, expiry)
        return (await self.execute(StoreBatch((operation,), (ValueIs(key, expected),)))).held

    async def execute(self, batch: StoreBatch) -> BatchResult:
        """Run the operations of a batch, all or none, in their order, if all of its conditions hold before the first.

        Raises:
            WrongValue: an operation failed; nothing was changed. Otherwise as `put`.
        """
        return await self._store.execute(batch)

    # Reads.

    async def get(self, key: bytes, level: StoreReadLevel = LINEARIZABLE) -> Found:
        """Read a key: its `value`, its `record` with version and deadline, and the position of the answer.

        Raises:
            NotLeading: linearizable, and another process leads. LevelNotMet: this copy does not reach the level in time.
        """
        return await self._store.get(key, level)

    async def get_many(self, keys: Sequence[bytes], level: StoreReadLevel = LINEARIZABLE) -> FoundMany:
        """Read several keys as they are at one moment. Raises as `get`."""
        return await self._store.get_many(keys, level)

    async def scan(
        self, keys: KeyRange, limit: int = PAGE_KEYS, level: StoreReadLevel = LINEARIZABLE, *, with_values: bool = True
    ) -> KeyPage:
        """Read the first keys of a range, as they are at one moment: one page of at most about 1 MiB. Raises as `get`.

        Args:
            keys: such as ``KeyRange.prefix(b"cart:")``. The next page is ``keys.from_cursor(page.cursor)``.
            limit: of the keys.
            with_values: if false, the records have empty values.
        """
        return await self._store.scan(keys, limit, level, with_values=with_values)

    async def items(
        self, keys: KeyRange = ALL_KEYS, level: StoreReadLevel = LINEARIZABLE, *, page_keys: int = PAGE_KEYS, with_values: bool = True
    ) -> AsyncIterator[Item]:
        """The keys of a range with their records, in the order of the keys' bytes, read a page at a time. Raises as `get`.

        A page is of one moment. Two pages may be of different moments.

        Args:
            page_keys: keys that are read at a time, at most.
        """
        rest: KeyRange | None = keys
        while rest is not None:
            page = await self.scan(rest, page_keys, level, with_values=with_values)
            for item in page.items:
                yield item
            rest = None if page.cursor is None else rest.from_cursor(page.cursor)

    async def count(self, keys: KeyRange = ALL_KEYS, level: StoreReadLevel = LINEARIZABLE) -> Count:
        """The number of keys in a range, and the position of the answer. Raises as `get`."""
        return await self._store.count(keys, level)

    # Changes of others.

    async def watch(self, prefix: bytes = b"", position: int | None = None) -> KeyWatch:
        """The changes of the keys with a prefix, each once and in the log's order; close it at the end.

        Args:
            position: give the changes after this position, such as that of a `scan`; None: from now on.

        Raises:
            PlaceLost: these changes are no longer kept; read the keys, and watch from the position of that answer.
        """
        return await self._store.watch(prefix, position)

    # The end.

    async def aclose(self) -> None:
        """Stop the node, unless it is shared, with its cluster where that is in this process. Idempotent."""
        self._is_closed = True
        if not self._shares_node:
            await self._node.aclose()
