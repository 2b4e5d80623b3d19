"""The nodes of named consumers: saved positions, changed by compare-and-set, and who consumes at present.

Every opening writes its token into the position's node, so a process that opened the consumer before finds another version and cannot
save. A version alone does not distinguish a consumer from the next one of its name, since each node counts from 0. So an opening also
creates an empty node with its token's name among the log's holders, in place of that of the opening before; a deletion deletes it with the
consumer. A transaction on a position needs the holder's node of the token that was read. The ephemeral node below the position serves
liveness and messages.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

from triplicate.errors import (
    BadVersion,
    ConsumerFenced,
    ConsumerOwned,
    CorruptionError,
    FormatError,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    TriplicateError,
)
from triplicate.log.core.consumer_state import ConsumerState, decode_consumer, encode_consumer
from triplicate.log.core.head import Owner, decode_owner, encode_owner
from triplicate.log.store.head_store import HeadStore
from triplicate.log.store.ownership import release_node
from triplicate.metadata import CheckVersion, CreateNode, DeleteNode, SetData, TreeOperation, own_paths
from triplicate.runtime import sleep

OWNER_PAUSE_S = 0.05
RENEW_PAUSE_S = 1.0
DELETE_ATTEMPTS = 20


@dataclass(frozen=True, slots=True)
class StoredConsumer:
    """A consumer's position and the version of its node."""

    state: ConsumerState
    version: int


class ConsumerNodes:
    """The nodes of one consumer.

    Args:
        log, name: the log, and the consumer's name.
    """

    def __init__(self, store: HeadStore, log: str, name: str) -> None:
        self._store = store
        self.log = log
        self._name = name
        self._path = own_paths.consumer_path(store.own_root, log, name)
        self._owner_path = f"{self._path}/owner"

    def __str__(self) -> str:
        return f"consumer {self._name!r} of log {self.log!r}"

    async def read(self, *, synced: bool = False) -> StoredConsumer | None:
        """The saved position; None: there is no such consumer."""
        if synced:
            await self._store.persist(lambda: self._store.tree.sync(self._path))
        try:
            data, stat = await self._store.persist(lambda: self._store.tree.get(self._path))
        except NoNode:
            return None
        return StoredConsumer(decode_consumer(data, self.log, self._name), stat.version)

    async def write(self, state: ConsumerState, stored: StoredConsumer | None) -> StoredConsumer:
        """Create the node (stored None), or change it from what is stored, or from a later version of the same owner.

        An unknown outcome is resolved. An owner has later versions than it knows if a change of its own was cancelled.

        Raises:
            ConsumerFenced: the node has another version; nothing was changed by this call. NoSuchLog.
        """
        store, data, expected = self._store, encode_consumer(state), None if stored is None else stored.version
        has_parent = False
        held = await self._hold(state, None if stored is None else stored.state.owner)

        async def attempt() -> StoredConsumer:
            nonlocal expected, has_parent
            operation = CreateNode(self._path, data) if expected is None else SetData(self._path, data, expected)
            try:
                await store.tree.multi([operation, await store.identity(self.log, state.log_id), *held])
                return StoredConsumer(state, 0 if expected is None else expected + 1)
            except (BadVersion, NodeExists, NoNode):
                await store.tree.sync(self._path)
                try:
                    found, stat = await store.tree.get(self._path)
                except NoNode:
                    if expected is None and not has_parent:
                        await store.identity(self.log, state.log_id, afresh=True)
                        await self._ensure_parent()
                        has_parent = True
                        return await attempt()
                    raise ConsumerFenced(f"{self} was deleted: its position was not saved") from None
                current = decode_consumer(found, self.log, self._name)
                if current == state:
                    return StoredConsumer(current, stat.version)  # An attempt whose answer was lost.
                if current.owner == state.owner and stat.version != expected:
                    expected = stat.version
                    return await attempt()
                raise ConsumerFenced(
                    f"{self} belongs to {current.owner.name!r} now, at offset {current.position}: position {state.position} of "
                    f"{state.owner.name!r} was not saved"
                ) from None

        return await store.persist(attempt)

    async def _hold(self, state: ConsumerState, former: Owner | None) -> list[TreeOperation]:
        """The operations with which the owner of a state holds the consumer. They fail if it is not the former owner's any more."""
        store, own = self._store, self._holder(state.owner)
        if former == state.owner:
            return [CheckVersion(own)]
        folder = own_paths.holders_path(store.own_root, self.log)
        if await store.persist(lambda: store.tree.exists(folder)) is None:
            identity = await store.identity(self.log, state.log_id, afresh=True)
            with suppress(NodeExists):
                await store.persist(lambda: store.tree.multi([identity, CreateNode(folder)]))
        return [CreateNode(own), *await self._end_of_hold(former)]

    async def _end_of_hold(self, former: Owner | None) -> list[TreeOperation]:
        """The deletion of a holder's node. A process of an earlier release has none."""
        if former is None:
            return []
        path = self._holder(former)
        return [] if await self._store.persist(lambda: self._store.tree.exists(path)) is None else [DeleteNode(path)]

    def _holder(self, owner: Owner) -> str:
        return own_paths.holder_path(self._store.own_root, self.log, owner.token)

    async def _ensure_parent(self) -> None:
        try:
            await self._store.tree.create(own_paths.consumers_path(self._store.own_root, self.log), parents=True)
        except NodeExists:
            return

    async def delete(self) -> bool:
        """Delete the consumer. False: there was none."""
        tree, sent = self._store.tree, False
        made_ms: int | None = None

        async def attempt() -> bool:
            nonlocal sent, made_ms
            was_sent, sent = sent, True
            for _ in range(DELETE_ATTEMPTS):
                try:
                    data, stat = await tree.get(self._path)
                except NoNode:
                    return was_sent  # By an attempt whose answer was lost.
                if made_ms not in (None, stat.ctime_ms):
                    return True  # This one was made afterwards.
                made_ms = stat.ctime_ms
                below: list[TreeOperation] = [DeleteNode(self._owner_path)] if await tree.exists(self._owner_path) is not None else []
                try:
                    held = await self._end_of_hold(decode_consumer(data, self.log, self._name).owner)
                except (FormatError, CorruptionError):
                    held = []
                try:
                    await tree.multi([*below, *held, DeleteNode(self._path, stat.version)])
                except (NoNode, NotEmpty, BadVersion) as error:
                    # The process that consumes has come or gone, or has saved, in between.
                    self._store.host.trace("log.consumer_delete_retried", log=self.log, consumer=self._name, error=repr(error))
                else:
                    return True
            raise ConsumerOwned(f"{self} was recorded as used at every attempt to delete it; stop its process")

        return await self._store.persist(attempt)

    # The process that consumes.

    async def live_owner(self) -> Owner | None:
        """The process whose session lives, or None."""
        try:
            data, _ = await self._store.persist(lambda: self._store.tree.get(self._owner_path))
        except NoNode:
            return None
        return decode_owner(data, str(self))

    async def await_no_owner(self) -> None:
        """Return when nobody consumes.

        Raises:
            ConsumerOwned: somebody still does after the grace time of the settings.
        """
        clock = self._store.host.clock
        deadline = clock.monotonic() + self._store.settings.owner_grace_s
        while (living := await self.live_owner()) is not None:
            if clock.monotonic() >= deadline:
                raise ConsumerOwned(
                    f"{self} is used by {living.name!r}: stop that process, choose another name, or take the consumer over "
                    "(take_over=True; --force of the commands)"
                )
            await sleep(clock, OWNER_PAUSE_S)

    async def claim(self, owner: Owner) -> None:
        """Record who consumes, in place of anyone else. If it is cancelled, it leaves no record."""
        store = self._store

        async def attempt() -> None:
            try:
                data, stat = await store.tree.get(self._owner_path)
                if decode_owner(data, str(self)) == owner:
                    return
                await store.tree.multi([DeleteNode(self._owner_path, stat.version)])
            except (NoNode, BadVersion):
                pass  # The node of an earlier owner has gone or changed; the creation below finds out which.
            try:
                await store.tree.create(self._owner_path, encode_owner(owner), ephemeral=True)
            except (NodeExists, NoNode) as error:
                store.host.trace("log.consumer_owner_not_kept", log=self.log, consumer=self._name, error=repr(error))

        try:
            await store.persist(attempt)
        except asyncio.CancelledError:
            await self.release(owner)
            raise

    async def keep(self, owner: Owner) -> None:
        """Record the owner again whenever its node is gone, for example after the session was renewed. Returns when the consumer has
        another owner."""
        watch = self._store.tree.watch(self._owner_path)
        try:
            while True:
                try:
                    stored = await self.read()
                    if stored is None or stored.state.owner != owner:
                        return
                    if await self.live_owner() is None:
                        await self.claim(owner)
                except SessionExpired:
                    return
                except TriplicateError as error:
                    self._store.host.trace("log.consumer_owner_not_kept", log=self.log, consumer=self._name, error=repr(error))
                    await sleep(self._store.host.clock, RENEW_PAUSE_S)
                else:
                    await watch.changed()
        finally:
            watch.close()

    async def release(self, owner: Owner) -> None:
        """Delete the record of the owner if it is still this one. See `release_node`."""
        await release_node(
            self._store, self._owner_path, lambda data: decode_owner(data, str(self)) == owner, log=self.log, consumer=self._name
        )


async def consumer_names(store: HeadStore, log: str) -> list[str]:
    """Names of the consumers of a log, sorted."""
    try:
        children, _ = await store.persist(lambda: store.tree.children(own_paths.consumers_path(store.own_root, log)))
    except NoNode:
        return []
    return sorted(map(own_paths.decode_name, children))
