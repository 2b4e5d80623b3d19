"""Hosting the replicas of a list that this node is chosen for, and no other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, Protocol

from triplicate.errors import FormatError, SessionExpired, TriplicateError
from triplicate.metadata import Watch
from triplicate.replica.copy_departure import CopyDepartures
from triplicate.replica.copy_folders import empty_folder, rename_folder
from triplicate.replica.hosted_copies import HostedCopies
from triplicate.replica.hosted_copy import HostedCopy, Machine
from triplicate.replica.node_parts import NodeParts
from triplicate.replica.placed_nodes import node_entry
from triplicate.replica.replica_directory import Info, ReplicaDirectory
from triplicate.runtime import Backoff, TaskScope, first_of, sleep

RETRY_FIRST_S = 0.05
RETRY_LONGEST_S = 2.0
DEPARTURE_CHECK_S = 0.5
"""Interval at which copies that are to be given up are looked at."""


class NewCopy(Protocol[Machine, Info]):
    """Makes the hosted copy of a replica, without running it. The arguments are those of `HostedCopy`."""

    def __call__(self, info: Info, on_gone: Callable[[], None], *, replaces_another: bool) -> HostedCopy[Machine, Info]: ...


class HostingLoop(Generic[Machine, Info]):
    """Follows the list of the replicas of one kind and their placement, and runs each one that has a copy here.

    Args:
        copies: the hosted copies, which this fills.
        watches: of the list and of the placement; begun before the list is read first.
        scope: for the tasks of the hosted copies.
    """

    def __init__(
        self,
        parts: NodeParts,
        directory: ReplicaDirectory[Info],
        copies: HostedCopies[Machine, Info],
        new_copy: NewCopy[Machine, Info],
        watches: Sequence[Watch],
        scope: TaskScope,
    ) -> None:
        self._node = parts
        self._directory = directory
        self._copies = copies
        self._new_copy = new_copy
        self._watches = watches
        self._scope = scope
        self._gone = asyncio.Event()
        """Set when the entry of a hosted copy may have gone."""
        self._departures: CopyDepartures[Machine, Info] = CopyDepartures(parts.client, directory, parts.settings.node_id)
        self._without_copy: set[bytes] = set()
        """Identities of replicas that have no copy in this node's directory."""
        self._given_up: set[bytes] = set()
        """Identities of replicas whose copies this node has shown and given up."""
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The tasks of the hosted copies, by name."""

    async def open_all(self) -> None:
        """Host every replica of the list. Returns when their copies are open; waits for the metadata without limit."""
        await self._reconcile()
        for hosted in self._copies.hosted.values():
            await hosted.opened

    async def run(self) -> None:
        """Follow the list until cancelled."""
        while True:
            await self._changed()
            await self._reconcile()

    async def _changed(self) -> None:
        """Return when something may have changed, or when it is time to look at the copies that are to be given up."""
        waits = [*(_changed(watch) for watch in self._watches), self._entry_gone()]
        if not self._departures.is_empty:
            waits.append(sleep(self._node.host.clock, DEPARTURE_CHECK_S))
        await first_of(waits, name="replicas")

    async def _entry_gone(self) -> None:
        await self._gone.wait()
        self._gone.clear()

    async def _reconcile(self) -> None:
        backoff = Backoff(RETRY_FIRST_S, RETRY_LONGEST_S, self._node.host.entropy.stream(f"node.{self._directory.kind}s"))
        while not await self._try_reconcile():
            await sleep(self._node.host.clock, backoff.next_s())

    async def _try_reconcile(self) -> bool:
        """Host replicas that are to have a copy here, and stop hosting the others; False when this must be tried again."""
        try:
            own = await node_entry(self._node.client, self._node.settings.node_id)
            infos = await self._infos(synced=False)
            if any(self._is_gone(hosted, infos) for hosted in self._copies.hosted.values()):
                # A copy is given up only by a list that is not out of date.
                infos = await self._infos(synced=True)
                for hosted in self._copies.hosted.values():
                    if self._is_gone(hosted, infos):
                        await self._stop_hosting(hosted, infos)
            for hosted in self._copies.hosted.values():
                await self._review(hosted, infos, is_draining=own.is_draining)
        except SessionExpired:
            raise
        except TriplicateError as error:
            self._node.host.trace("node.waits_for_metadata", node=self._node.settings.node_id, error=str(error))
            return False
        for name, info in infos.items():
            if info is not None and name not in self._copies.hosted and await self._is_wanted(info, is_draining=own.is_draining):
                hosted = self._host(info)
                if not info.placement.assigns(self._node.settings.node_id, is_draining=own.is_draining):
                    self._departures.begin(hosted)
        self._copies.is_partial = not infos.keys() <= self._copies.hosted.keys()
        return None not in infos.values()

    async def _is_wanted(self, info: Info, *, is_draining: bool) -> bool:
        """Whether a replica is to have a copy here, or has one that other nodes may still need."""
        if info.placement.assigns(self._node.settings.node_id, is_draining=is_draining):
            self._without_copy.discard(info.identity)
            return True
        if info.identity in self._without_copy:
            return False
        worker = self._node.host.new_worker(f"{self._directory.kind}-{info.name}-copy")
        try:
            has_copy = await worker.run(self._node.host.disk.exists, self._directory.copy_file(info.name))
        finally:
            await worker.close()
        if not has_copy:
            self._without_copy.add(info.identity)
        return has_copy

    async def _review(self, hosted: HostedCopy[Machine, Info], infos: dict[str, Info | None], *, is_draining: bool) -> None:
        """Give a copy up that is no longer expected here, once the others have reached it.

        Raises:
            TriplicateError: the metadata do not answer.
        """
        info = infos.get(hosted.info.name) or hosted.info
        if info.placement.assigns(self._node.settings.node_id, is_draining=is_draining):
            self._departures.end(hosted)
            return
        self._departures.begin(hosted)
        if await self._departures.may_leave(hosted):
            await self._give_up(hosted)

    async def _give_up(self, hosted: HostedCopy[Machine, Info]) -> None:
        """Stop hosting a replica that other nodes host, and delete the copy."""
        await self._end(hosted)
        self._departures.end(hosted)
        self._given_up.add(hosted.info.identity)
        await self._change_files(hosted.info.name, empty_folder, hosted.folder)
        self._trace("node.copy_left", hosted.info.name)

    def _trace(self, kind: str, name: str, **facts: object) -> None:
        self._node.host.trace(kind, node=self._node.settings.node_id, **{self._directory.kind: name}, **facts)

    async def _end(self, hosted: HostedCopy[Machine, Info]) -> None:
        """End a copy."""
        self._copies.remove(hosted)
        task = self._tasks.pop(hosted.info.name)
        task.cancel()
        await asyncio.wait([task])

    async def _change_files(self, name: str, change: Callable[..., object], *paths: str) -> None:
        worker = self._node.host.new_worker(f"{self._directory.kind}-{name}-gone")
        try:
            await worker.run(change, self._node.host.disk, *paths)
        except OSError as error:
            self._trace("node.copy_stays", name, error=repr(error))
        finally:
            await worker.close()

    async def _infos(self, *, synced: bool) -> dict[str, Info | None]:
        """The replicas as they are listed now, by name. None for those that cannot be read."""
        if synced:
            await self._node.client.metadata.tree.sync(self._directory.list_path)
        infos: dict[str, Info | None] = {}
        for name in await self._directory.names():
            try:
                info = await self._directory.read(name)
            except FormatError as error:
                # The others are hosted nevertheless.
                self._trace(f"node.{self._directory.kind}_not_hosted", name, error=repr(error))
                infos[name] = None
            else:
                if info is not None:  # Otherwise it was dropped since the list was read.
                    infos[name] = info
        return infos

    def _is_gone(self, hosted: HostedCopy[Machine, Info], infos: dict[str, Info | None]) -> bool:
        name = hosted.info.name
        info = infos.get(name)
        return name not in infos or (info is not None and info.identity != hosted.info.identity)

    def _host(self, info: Info) -> HostedCopy[Machine, Info]:
        hosted = self._new_copy(info, self._gone.set, replaces_another=info.identity in self._given_up)
        self._copies.add(hosted)
        self._tasks[info.name] = self._scope.spawn(hosted.run(), name=f"{self._directory.kind} {info.name}")
        return hosted

    async def _stop_hosting(self, hosted: HostedCopy[Machine, Info], infos: dict[str, Info | None]) -> None:
        """Stop hosting a replica. The copy is moved when the replica was renamed, deleted when it was dropped, and kept otherwise.

        Raises:
            TriplicateError: the metadata do not answer.
        """
        name, identity = hosted.info.name, hosted.info.identity
        dropped = await self._directory.is_dropped(hosted.info)
        names = [info.name for info in infos.values() if info is not None and info.identity == identity]
        await self._end(hosted)
        self._departures.end(hosted)
        self._trace(f"node.{self._directory.kind}_gone", name, dropped=dropped, renamed=names)
        if names:
            await self._change_files(name, rename_folder, hosted.folder, self._directory.copy_file(names[0]))
        elif dropped:
            await self._change_files(name, empty_folder, hosted.folder)


async def _changed(watch: Watch) -> None:
    await watch.changed()
