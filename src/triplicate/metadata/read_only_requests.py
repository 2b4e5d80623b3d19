"""Requests of operators that bookies be read-only.

The node is ``/triplicate/<INSTANCEID>/readonly/<bookie id>``: JSON with ``v`` (1), ``since_ms`` and, for a bookie that is being
decommissioned, ``leaving`` (true). Its existence is the request, so a bookie obeys requests of later formats, too. Bookies read their nodes
at the start and with each check of their registration. Writers and replication workers move ledgers off bookies that are leaving.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass

from triplicate.errors import BadVersion, NodeExists, NoNode
from triplicate.metadata.core.bookie_ids import check_bookie_id
from triplicate.metadata.core.own_paths import read_only_request_path, read_only_requests_path
from triplicate.metadata.core.tree import CheckVersion, Stat, Tree, TreeOperation
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

FORMAT = 1


@dataclass(frozen=True, slots=True)
class RequestChange:
    """A change of a request, with which it can be undone.

    Args:
        before: the data of the request that was there; None if there was none.
    """

    before: bytes | None
    after: bytes


class ReadOnlyRequests:
    """The requests of one cluster.

    Args:
        root: Triplicate's root of the cluster.
    """

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._root = root

    async def is_requested(self, bookie_id: str) -> bool:
        """Whether the bookie is requested to be read-only."""
        return await self.read(bookie_id) is not None

    async def read(self, bookie_id: str) -> Stat | None:
        """The status of the bookie's request, by which it differs from a later one; None if there is none."""
        path = self._path(bookie_id)
        return await retried(self._host, lambda: self._tree.exists(path))

    def unchanged(self, bookie_id: str, request: Stat) -> TreeOperation:
        """An operation of a transaction that succeeds while the request is as it was read."""
        return CheckVersion(self._path(bookie_id), request.version)

    async def request(self, bookie_id: str, *, leaving: bool = False) -> bool:
        """Request that the bookie be read-only; False if it was requested before.

        Args:
            leaving: whether the bookie is being decommissioned. A request that exists gets this mark as well.
        """
        change = await self.change(bookie_id, leaving=leaving)
        return change is not None and change.before is None

    async def change(self, bookie_id: str, *, leaving: bool) -> RequestChange | None:
        """Make the request as `request` does; None if the one that is there says as much already."""
        path = self._path(bookie_id)
        fields: dict[str, object] = {"since_ms": self._host.clock.wall_us() // 1000, "v": FORMAT}
        if leaving:
            fields["leaving"] = True
        after = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode()
        change: RequestChange | None = None
        while True:
            found = await self._get(path)
            if found is not None:
                if change is not None and found[0] == after:
                    return change  # It was applied, and repeated after its answer was lost.
                if not leaving or _says_leaving(found[0]):
                    return None
            change = RequestChange(None if found is None else found[0], after)
            try:
                if found is None:
                    await retried(self._host, lambda: self._tree.create(path, after, parents=True))
                else:
                    await self._set(path, after, found[1].version)
            except (NodeExists, NoNode, BadVersion):
                continue  # Another changed it meanwhile.
            return change

    async def undo(self, bookie_id: str, change: RequestChange) -> None:
        """Put back what was there before a change, unless the request was changed again meanwhile."""
        path = self._path(bookie_id)
        found = await self._get(path)
        if found is None or found[0] != change.after:
            return
        version = found[1].version
        with contextlib.suppress(NoNode, BadVersion):  # It was changed meanwhile, perhaps by this call, whose answer was lost.
            if change.before is None:
                await retried(self._host, lambda: self._tree.delete(path, version))
            else:
                await self._set(path, change.before, version)

    async def leaving(self) -> list[str]:
        """The bookies that are being decommissioned, sorted."""
        return [bookie_id for bookie_id in await self.bookie_ids() if await self._is_leaving(bookie_id)]

    async def _is_leaving(self, bookie_id: str) -> bool:
        found = await self._get(read_only_request_path(self._root, bookie_id))
        return found is not None and _says_leaving(found[0])

    async def _get(self, path: str) -> tuple[bytes, Stat] | None:
        try:
            return await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None

    async def _set(self, path: str, data: bytes, version: int) -> None:
        await retried(self._host, lambda: self._tree.set(path, data, version))

    async def withdraw(self, bookie_id: str) -> bool:
        """Withdraw the request; False if there is none."""
        path = self._path(bookie_id)
        try:
            await retried(self._host, lambda: self._tree.delete(path))
        except NoNode:
            return False
        return True

    async def bookie_ids(self) -> list[str]:
        """The bookies that are requested to be read-only, sorted."""
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(read_only_requests_path(self._root)))
        except NoNode:
            return []
        return sorted(names)

    def _path(self, bookie_id: str) -> str:
        return read_only_request_path(self._root, check_bookie_id(bookie_id))


def _says_leaving(data: bytes) -> bool:
    try:
        return json.loads(data).get("leaving") is True
    except (ValueError, AttributeError):
        return False  # A request of another format still makes the bookie read-only.
