"""Asks the bookies that remain for their free disk, before copies are made on them."""

from __future__ import annotations

from collections.abc import Mapping

from triplicate.autorecovery.core.disk_room import DiskRoom, DiskSpace, disk_room
from triplicate.client import Client
from triplicate.errors import TriplicateError
from triplicate.metadata import BookieServiceInfo, machine_of
from triplicate.runtime import map_bounded, timeout_at

ANSWER_LIMIT_S = 5.0
"""Longest wait for the answer of one bookie, in seconds."""
BOOKIES_AT_ONCE = 32


async def room_on(client: Client, remaining: Mapping[str, BookieServiceInfo], needed_bytes: int) -> DiskRoom:
    """Compare the copies to make with the free disk of the bookies that can get them. A bookie that does not answer is named.

    Args:
        needed_bytes: estimate of the payload bytes of the copies.
    """

    async def space(bookie_id: str) -> DiskSpace | None:
        try:
            async with timeout_at(client.host.clock.monotonic() + ANSWER_LIMIT_S):
                found = await client.bookie_info(bookie_id)
        except (TriplicateError, TimeoutError):
            return None
        return DiskSpace(machine_of(bookie_id, remaining[bookie_id]), found.total_bytes, found.free_bytes)

    names = sorted(remaining)
    spaces = await map_bounded(space, names, most=BOOKIES_AT_ONCE, name="free disk of bookies")
    return disk_room(needed_bytes, dict(zip(names, spaces, strict=True)))
