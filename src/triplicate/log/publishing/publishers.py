"""The last batch of each publisher of a log, and the batches of publishers that have been idle for long.

A publisher's node is kept while the log has not too many publishers. Beyond that number the nodes that have been idle for longest, by the
metadata store's clock, are deleted. One node keeps only their last batches, so that a repeated batch is refused and not published twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from triplicate.errors import BadVersion, NodeExists, NoNode, PublisherForgotten
from triplicate.log.core.forgotten_publishers import ForgottenPublishers, decode_forgotten, encode_forgotten
from triplicate.log.core.head import PublisherState, decode_publisher
from triplicate.log.store.head_store import HeadStore
from triplicate.metadata import CreateNode, DeleteNode, SetData, TreeOperation, own_paths


@dataclass(frozen=True, slots=True)
class StoredPublisher:
    """The last publish of an application, and the version of its node."""

    state: PublisherState
    version: int


class IdlePublisher(NamedTuple):
    """The node of a publisher; sorted by its last change."""

    changed_ms: int
    """By the store's clock."""
    child: str
    version: int


@dataclass(frozen=True, slots=True)
class StoredForgotten:
    """The forgotten publishers, and the version of their node; None if there is no node."""

    publishers: ForgottenPublishers
    version: int | None


async def read_publisher(store: HeadStore, name: str, application: str | None) -> StoredPublisher | None:
    """The last publish of an application; None if it has none, or if there is no application."""
    if application is None:
        return None
    path = own_paths.publisher_path(store.own_root, name, application)
    try:
        data, stat = await store.persist(lambda: store.tree.get(path))
    except NoNode:
        return None
    return StoredPublisher(decode_publisher(data, application), stat.version)


async def check_not_forgotten(store: HeadStore, name: str, application: str, batch: int) -> None:
    """Raise PublisherForgotten for a batch of a publisher without a node that was published before the node was deleted."""
    last = (await _read_forgotten(store, name)).publishers.last_batch(application)
    if last is not None and batch <= last:
        raise PublisherForgotten(
            f"log {name!r}: batch {batch} of {application!r} was published, as all up to {last} were, so long ago that its offsets are "
            "no longer known; nothing was published again. A new job needs another application's name"
        )


async def sweep_publishers(store: HeadStore, name: str, *, dry_run: bool = False) -> int:
    """Delete the nodes of idle publishers beyond the number that is kept. Returns the number deleted."""
    folder = own_paths.publishers_path(store.own_root, name)
    log_id = (await store.read(name)).head.log_id
    try:
        children, _ = await store.persist(lambda: store.tree.children(folder))
    except NoNode:
        return 0
    excess = len(children) - store.settings.publishers_kept
    if excess <= 0:
        return 0
    oldest_ms = await store.now_ms() - int(store.settings.publisher_idle_s * 1000)
    idle = [found for found in await _by_last_change(store, folder, children) if found.changed_ms <= oldest_ms]
    swept = 0
    for publisher in idle[:excess]:
        swept += dry_run or await _fold_into_forgotten(store, name, log_id, publisher.child, publisher.version)
    return swept


async def _by_last_change(store: HeadStore, folder: str, children: Sequence[str]) -> list[IdlePublisher]:
    """The nodes, the one that changed first at the front."""
    found: list[IdlePublisher] = []
    for child in children:
        stat = await store.persist(lambda child=child: store.tree.exists(f"{folder}/{child}"))  # type: ignore[misc]
        if stat is not None:
            found.append(IdlePublisher(stat.mtime_ms, child, stat.version))
    return sorted(found)


async def _fold_into_forgotten(store: HeadStore, name: str, log_id: str, child: str, version: int) -> bool:
    """Replace one publisher's node by an entry in the common node, in one transaction.

    Returns:
        False if it has published meanwhile, or another process has done this.
    """
    path = f"{own_paths.publishers_path(store.own_root, name)}/{child}"
    application = own_paths.decode_name(child)
    try:
        data, _ = await store.persist(lambda: store.tree.get(path))
        forgotten = await _read_forgotten(store, name)
        data = encode_forgotten(forgotten.publishers.with_publisher(application, decode_publisher(data, application).batch))
        place = own_paths.forgotten_path(store.own_root, name)
        remember: TreeOperation = CreateNode(place, data) if forgotten.version is None else SetData(place, data, forgotten.version)
        await store.tree.multi([DeleteNode(path, version), remember, await store.identity(name, log_id)])
    except (NoNode, BadVersion, NodeExists):
        return False
    return True


async def _read_forgotten(store: HeadStore, name: str) -> StoredForgotten:
    try:
        data, stat = await store.persist(lambda: store.tree.get(own_paths.forgotten_path(store.own_root, name)))
    except NoNode:
        return StoredForgotten(ForgottenPublishers(), None)
    return StoredForgotten(decode_forgotten(data, name), stat.version)
