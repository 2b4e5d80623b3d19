"""The positions of a stream, saved as those of a named consumer, so that the cluster shows them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from triplicate.errors import ConsumerOwned, HandleClosed, SessionExpired, TriplicateError
from triplicate.log import Logs, Owner, WatchedPosition, stream_owner
from triplicate.runtime import deadline_after, map_bounded, timeout_at
from triplicate.spark.cluster import access
from triplicate.spark.core.given_options import Access
from triplicate.spark.core.offsets import LogPosition

SAVE_INTERVAL_S = 5.0
"""Minimum time between two saves of a log's position."""
SAVE_LIMIT_S = 30.0
REST_INTERVAL_S = 2.0
"""Minimum time between two saves of a stream that has read everything, which waits for them: Spark ends its process without a word."""
REST_LIMIT_S = 1.0
LAST_SAVE_LIMIT_S = 5.0
"""Maximum time for which the end of a query waits for its last save."""
REFUSALS_UNNAMED = 4
"""Spark kills the process of a query that it stops, which counts as the user until its session ends: no warning of that by the next one."""
SAVES_AT_ONCE = 16
_logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Watched:
    """One log. `saved` is the position that its consumer has, `refused` how often in a row it could not be saved."""

    log_id: str
    position: WatchedPosition
    saved: int | None = None
    refused: int = 0


class WatchedPositions:
    """The positions of one stream. Errors are warnings, once for each log; nothing here ends a query.

    Args:
        way: how the stream reaches its cluster.
        consumer: the consumer's name.
    """

    def __init__(self, way: Access, consumer: str) -> None:
        self._access = way
        self._consumer = consumer
        self._noted: Mapping[str, LogPosition] = {}
        self._tried: Mapping[str, LogPosition] = {}
        """The positions of the last save, even if it failed."""
        self._due_at = 0.0
        self._rest_due_at = 0.0
        self._warned: set[str] = set()
        self._unnamed = REFUSALS_UNNAMED
        # The rest is used on the client's loop only.
        self._client: object = None
        self._saving = asyncio.Lock()
        self._watched: dict[str, _Watched] = {}
        self._owner: Owner | None = None

    def note(self, positions: Mapping[str, LogPosition]) -> None:
        """Save positions in the background, unless others are being saved, or were a moment ago."""
        self._noted = positions
        now = time.monotonic()
        if now >= self._due_at:
            # A client that loses its session does not even begin to save.
            self._due_at = now + SAVE_LIMIT_S + SAVE_INTERVAL_S
            with self._warning(), access.logs(*self._access) as logs:
                logs.post(self._save_and_wait)

    def rest(self) -> None:
        """Save positions of a stream that has nothing to read, and wait for a limited time."""
        now = time.monotonic()
        if now >= self._rest_due_at and self._tried != self._noted:
            self._rest_due_at, self._due_at = now + REST_INTERVAL_S, now + SAVE_INTERVAL_S
            with self._warning(), access.logs(*self._access) as logs:
                logs.run(lambda logs: self._save(logs, REST_LIMIT_S))

    def close(self) -> None:
        """Save the last positions, and give the consumer up."""
        if self._noted:
            with self._warning(), access.logs(*self._access) as logs:
                logs.run(self._end)

    @contextmanager
    def _warning(self) -> Iterator[None]:
        """Warn of errors that are not of one log."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  a defect of a position that is only shown must not end the query
            self._warn("", error)

    def _warn(self, log: str, error: Exception) -> None:
        if log not in self._warned:
            self._warned.add(log)
            reason = str(error) or "the cluster took too long"
            _logger.warning("triplicate: a stream goes on, but consumer %r does not get its position: %s", self._consumer, reason)

    async def _save_and_wait(self, logs: Logs) -> None:
        try:
            with self._warning():
                await self._save(logs, SAVE_LIMIT_S)
        finally:
            self._due_at = time.monotonic() + SAVE_INTERVAL_S

    async def _end(self, logs: Logs) -> None:
        self._unnamed = 0
        try:
            await self._save(logs, LAST_SAVE_LIMIT_S)
        finally:
            async with timeout_at(deadline_after(logs.client.host.clock, LAST_SAVE_LIMIT_S)):
                for watched in self._watched.values():
                    await watched.position.close()

    async def _save(self, logs: Logs, limit_s: float) -> None:
        if self._client is not logs.client:
            # The client before this one has lost its session.
            self._client, self._watched, self._saving = logs.client, {}, asyncio.Lock()
        self._owner = self._owner or stream_owner(logs.store, f"Spark stream, {logs.client.host.name}")
        async with timeout_at(deadline_after(logs.client.host.clock, limit_s)), self._saving:
            self._tried = self._noted
            changed = [(logs, *item) for item in self._tried.items() if self._is_changed(*item)]
            await map_bounded(self._save_one, changed, most=SAVES_AT_ONCE, name="positions")

    def _is_changed(self, log: str, at: LogPosition) -> bool:
        watched = self._watched.get(log)
        return at.log_id is not None and (watched is None or (watched.log_id, watched.saved) != (at.log_id, at.offset))

    async def _save_one(self, item: tuple[Logs, str, LogPosition]) -> None:
        logs, log, at = item
        assert at.log_id is not None
        assert self._owner is not None
        watched = self._watched.get(log)
        if watched is None or watched.log_id != at.log_id:
            watched = _Watched(at.log_id, WatchedPosition(logs.store, log, at.log_id, self._consumer, self._owner))
            self._watched[log] = watched
        try:
            await watched.position.save(at.offset)
        except (SessionExpired, HandleClosed):
            raise  # Of all logs. The query meets it too, and opens another client.
        except TriplicateError as error:
            watched.refused += 1
            if not isinstance(error, ConsumerOwned) or watched.refused > self._unnamed:
                self._warn(log, error)
        else:
            watched.saved, watched.refused = at.offset, 0
            self._warned.discard(log)
