"""The table of network locations: racks of bookies and machines, as the operator states them for the whole cluster.

The node is ``/triplicate/<INSTANCEID>/racks``: JSON with ``v`` (1) and ``locations``, an object from bookie id or machine to
``/region/rack``. Without the node the table is empty.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from triplicate.errors import ArgumentError, BadVersion, FormatError, NodeExists, NoNode
from triplicate.ledger import parse_location
from triplicate.metadata.core.own_paths import racks_path
from triplicate.metadata.core.tree import Tree
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

_FORMAT = 1
_ABSENT = -1


@dataclass(frozen=True, slots=True)
class LocationTable:
    """The table as it was read.

    Attributes:
        version: of its node; negative without one.
    """

    locations: Mapping[str, str] = field(default_factory=dict)
    version: int = _ABSENT


def encode_locations(locations: Mapping[str, str]) -> bytes:
    """The node's bytes."""
    return json.dumps({"v": _FORMAT, "locations": dict(locations)}, sort_keys=True, separators=(",", ":")).encode()


def decode_locations(data: bytes) -> dict[str, str]:
    """Raises FormatError: the data is not a table of locations, or was written by a newer release."""
    try:
        fields = json.loads(data)
        if fields["v"] != _FORMAT:
            raise FormatError(f"a table of network locations of format {fields['v']}, this release knows {_FORMAT}: start a newer one")
        return {str(name): str(location) for name, location in fields["locations"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FormatError(f"not a table of network locations: {error!r}") from error


class NetworkLocations:
    """The table of one cluster, changed by compare-and-set.

    Args:
        root: Triplicate's root of the cluster.
    """

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._path = racks_path(root)

    async def read(self) -> LocationTable:
        """The present table.

        Raises:
            FormatError: the node cannot be decoded.
        """
        try:
            data, stat = await retried(self._host, lambda: self._tree.get(self._path))
        except NoNode:
            return LocationTable()
        return LocationTable(decode_locations(data), stat.version)

    async def set(self, name: str, location: str) -> None:
        """State the location of a bookie (by id) or of all bookies of a machine (by host).

        Raises:
            ArgumentError: the name is empty, or the location has a wrong form.
        """
        if not name:
            raise ArgumentError("give a bookie id or a host")
        stated = str(parse_location(location))
        await self._change(lambda locations: {**locations, name: stated})

    async def unset(self, name: str) -> bool:
        """Remove an entry; returns whether there was one."""
        if name not in (await self.read()).locations:
            return False
        await self._change(lambda locations: {other: location for other, location in locations.items() if other != name})
        return True

    async def _change(self, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        while True:
            found = await self.read()
            data = encode_locations(change(found.locations))
            try:
                if found.version == _ABSENT:
                    await retried(self._host, lambda data=data: self._tree.create(self._path, data, parents=True))  # type: ignore[misc]
                else:
                    await retried(self._host, lambda data=data, found=found: self._tree.set(self._path, data, found.version))  # type: ignore[misc]
            except (BadVersion, NodeExists, NoNode):
                # Another process changed the table, or this change was applied and its answer was lost.
                if (await self.read()).locations == decode_locations(data):
                    return
            else:
                return
