"""The machines of bookies, also of those that are away: placement must not put a second copy beside theirs.

A registration ends with its bookie, and a process that starts later cannot learn from it where the copies of that bookie are. The node is
``/triplicate/<INSTANCEID>/machines/<bookie id>``: JSON with ``v`` (1), ``host`` and ``network_location``, both of the last registration.
Bookies of Triplicate write it when they register, the auditor writes it for all others. A decommissioned bookie has none.
"""

from __future__ import annotations

import json

from triplicate.errors import FormatError, NodeExists, NoNode
from triplicate.metadata.core.bookie_ids import check_bookie_id
from triplicate.metadata.core.own_paths import machine_path
from triplicate.metadata.core.service_info import NETWORK_LOCATION, BookieServiceInfo, bookie_service, machine_of
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

FORMAT = 1


def encode_machine(host: str, network_location: str) -> bytes:
    """The node's bytes."""
    return json.dumps({"v": FORMAT, "host": host, "network_location": network_location}, sort_keys=True, separators=(",", ":")).encode()


def decode_machine(data: bytes) -> BookieServiceInfo:
    """A registration with the host and the network location, without a port.

    Raises:
        FormatError: the data is not such a record, or was written by a newer release.
    """
    try:
        fields = json.loads(data)
        if fields["v"] != FORMAT:
            raise FormatError(f"the machine of a bookie: format {fields['v']}, this release knows {FORMAT}: start a newer one")
        host = str(fields["host"])
        if not host:
            raise FormatError("the machine of a bookie: the host is empty")
        return bookie_service(host, 0, network_location=str(fields["network_location"]))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"the machine of a bookie cannot be understood: {error!r}") from error


class BookieMachines:
    """The machines of one cluster's bookies.

    Args:
        root: Triplicate's root of the cluster.
    """

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._root = root

    async def get(self, bookie_id: str) -> BookieServiceInfo | None:
        """The recorded machine as a registration without a port; None if none was recorded.

        Raises:
            FormatError: the node cannot be decoded.
        """
        data = await self._data(self._path(bookie_id))
        return None if data is None else decode_machine(data)

    async def record(self, bookie_id: str, info: BookieServiceInfo) -> bool:
        """Record the machine of a registration. Of two processes that record at once, the last one counts. Returns whether it changed."""
        path = self._path(bookie_id)
        data = encode_machine(machine_of(bookie_id, info), info.properties.get(NETWORK_LOCATION, ""))
        if await self._data(path) == data:
            return False
        try:
            await retried(self._host, lambda: self._tree.create(path, data, parents=True))
        except NodeExists:
            try:
                await retried(self._host, lambda: self._tree.set(path, data))
            except NoNode:
                return False  # The bookie is being decommissioned.
        return True

    async def forget(self, bookie_id: str) -> None:
        """Delete the record of a bookie that no ledger names. Idempotent."""
        try:
            await retried(self._host, lambda: self._tree.delete(self._path(bookie_id)))
        except NoNode:
            return

    async def _data(self, path: str) -> bytes | None:
        try:
            return (await retried(self._host, lambda: self._tree.get(path)))[0]
        except NoNode:
            return None

    def _path(self, bookie_id: str) -> str:
        return machine_path(self._root, check_bookie_id(bookie_id))
