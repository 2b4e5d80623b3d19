"""The owner of a log, recorded in an ephemeral node for liveness and for messages. Safety comes from fencing alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from triplicate.errors import BadVersion, LogOwned, NodeExists, NoNode, TriplicateError
from triplicate.log.core.head import Owner, decode_owner, encode_owner
from triplicate.log.store.head_store import HeadStore
from triplicate.metadata import CreateNode, DeleteNode, TreeOperation
from triplicate.runtime import sleep

OWNER_PAUSE_S = 0.05


def _path(store: HeadStore, name: str) -> str:
    return f"{store.path(name)}/owner"


async def live_owner(store: HeadStore, name: str) -> Owner | None:
    """The writer whose session lives, or None."""
    try:
        data, _ = await store.persist(lambda: store.tree.get(_path(store, name)))
    except NoNode:
        return None
    return decode_owner(data, name)


async def await_no_owner(store: HeadStore, name: str) -> None:
    """Return when no writer is alive.

    Raises:
        LogOwned: one is still alive after the grace time of the settings; the message names it.
    """
    clock = store.host.clock
    deadline = clock.monotonic() + store.settings.owner_grace_s
    while (living := await live_owner(store, name)) is not None:
        if clock.monotonic() >= deadline:
            raise LogOwned(
                f"log {name!r} is written by {living.name!r}: stop that writer, or take the log over "
                "(take_over=True; --take-over of append, --force of delete)"
            )
        await sleep(clock, OWNER_PAUSE_S)


async def claim(store: HeadStore, name: str, log_id: str, owner: Owner, *, take_over: bool) -> None:
    """Become the owner; with `take_over` also in place of a living one. If it is cancelled, it leaves no node.

    Args:
        log_id: of the log that is meant.

    Raises:
        LogOwned: another writer is alive and `take_over` is False. NoSuchLog.
    """
    path, data = _path(store, name), encode_owner(owner)

    async def attempt() -> bool:
        try:
            current, stat = await store.tree.get(path)
        except NoNode:
            operations: list[TreeOperation] = [CreateNode(path, data, ephemeral=True)]
        else:
            living = decode_owner(current, name)
            if living == owner:
                return True
            if not take_over:
                return False
            operations = [DeleteNode(path, stat.version), CreateNode(path, data, ephemeral=True)]
        try:
            await store.tree.multi([*operations, await store.identity(name, log_id, afresh=True)])
        except (NodeExists, NoNode, BadVersion):
            return False
        return True

    try:
        for _ in range(store.settings.take_over_attempts):
            if not take_over:
                await await_no_owner(store, name)
            if await store.persist(attempt):
                return
    except asyncio.CancelledError:
        await release(store, name, owner)  # The node may have been made. It would shut others out as long as the session lives.
        raise
    raise LogOwned(f"log {name!r}: at every attempt another process became its owner; try again later")


async def renew(store: HeadStore, name: str, log_id: str, owner: Owner) -> None:
    """Recreate the node whenever it is gone, for example after the session was renewed. Returns when the log has another owner.

    Raises:
        SessionExpired: the client is closed. NoSuchLog: the log is deleted.
    """
    path = _path(store, name)
    watch = store.tree.watch(path)
    try:
        while (await store.read(name)).head.owner == owner:
            if await store.persist(lambda: store.tree.exists(path)) is None:
                try:
                    operations = [CreateNode(path, encode_owner(owner), ephemeral=True), await store.identity(name, log_id)]
                    await store.persist(lambda operations=operations: store.tree.multi(operations))  # type: ignore[misc]
                except (NodeExists, NoNode):
                    continue
            await watch.changed()
    finally:
        watch.close()


async def release(store: HeadStore, name: str, owner: Owner) -> None:
    """Delete the owner's node if it is still this owner's. See `release_node`."""
    await release_node(store, _path(store, name), lambda data: decode_owner(data, name) == owner, log=name)


async def release_node(store: HeadStore, path: str, is_own: Callable[[bytes], bool], **facts: object) -> None:
    """Delete an ephemeral node if it is still the caller's.

    An error is traced and not raised: this ends work that has failed or was cancelled, and must not replace that by its own error. The
    node expires with the session, which may live for long: it is deleted once the store answers another operation.

    Args:
        is_own: decides by the node's data.
        facts: for the trace.
    """
    try:
        await store.persist(lambda: store.delete_own(path, is_own))
    except TriplicateError as error:
        store.host.trace("log.release_failed", **facts, error=repr(error))
        store.delete_later(path, is_own)
    except BaseException:
        store.delete_later(path, is_own)
        raise
