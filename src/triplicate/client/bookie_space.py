"""The disk space of bookies, as they state it themselves.

Source: BookKeeper `BookieInfoReader`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from triplicate.client.connection.pool import ChannelPool
from triplicate.client.connection.response_errors import bookie_error
from triplicate.client.connection.single_request import send_request
from triplicate.errors import BookieError
from triplicate.runtime import Host, TaskScope, map_bounded
from triplicate.wire import BookieInfoRequest, BookieInfoResponse, Status

REQUESTS_MAXIMUM = 16
"""Bookies that are asked at a time."""


@dataclass(frozen=True, slots=True)
class BookieInfo:
    """The space of a bookie's ledger directories: each file system once, in bytes."""

    total_bytes: int
    free_bytes: int


async def request_space(pool: ChannelPool, bookie_id: str) -> BookieInfo:
    """The disk space of a bookie. Uses version 3 of the protocol.

    Raises:
        BookieError: it did not answer, or it answered with an error.
    """
    response = await send_request(pool.v3_channel(bookie_id), BookieInfoRequest(), BookieInfoResponse)
    if response.status is not Status.OK or response.total_bytes is None or response.free_bytes is None:
        status = Status.IO_ERROR if response.status is Status.OK else response.status
        raise bookie_error(BookieError, bookie_id, f"bookie {bookie_id} answered {status.name} to the request for its disk space")
    return BookieInfo(response.total_bytes, response.free_bytes)


class FreeDisk:
    """The free disk of bookies as last known, refreshed in the background.

    Args:
        interval_s: least time between two refreshes, in seconds.
    """

    def __init__(self, host: Host, pool: ChannelPool, scope: TaskScope, interval_s: float) -> None:
        self.free_bytes: dict[str, int] = {}
        """By bookie id. Bookies that have not answered yet are missing."""
        self._host = host
        self._pool = pool
        self._scope = scope
        self._interval_s = interval_s
        self._due = 0.0

    def refresh(self, bookie_ids: Iterable[str]) -> None:
        """Ask the bookies, if the last answers are older than the interval or one of them was never asked. Returns at once."""
        names = sorted(bookie_ids)
        now = self._host.clock.monotonic()
        if now >= self._due and not self._scope.closing:
            self._due = now + self._interval_s
            self._scope.spawn(self._ask(names), name="free disk of bookies")

    async def _ask(self, bookie_ids: list[str]) -> None:
        await map_bounded(self._ask_one, bookie_ids, most=REQUESTS_MAXIMUM, name="free disk of bookies")

    async def _ask_one(self, bookie_id: str) -> None:
        try:
            self.free_bytes[bookie_id] = (await request_space(self._pool, bookie_id)).free_bytes
        except BookieError as error:
            self._host.trace("client.free_disk_unknown", bookie=bookie_id, why=str(error))
