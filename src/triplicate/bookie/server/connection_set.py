"""The open connections of a bookie, and what they share: memory for unfinished frames and for responses."""

from __future__ import annotations

from collections.abc import Iterator

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.server.budgets import AnswerShares, FrameBudget
from triplicate.bookie.server.door import Door
from triplicate.bookie.server.request_processor import RequestProcessor
from triplicate.bookie.server.server_connection import ServerConnection
from triplicate.config import BookieSettings
from triplicate.runtime import Host, TaskScope


class ConnectionSet:
    """Counts the connections, refuses those beyond the limit, and divides the shared memory among them."""

    def __init__(self, host: Host, settings: BookieSettings, door: Door) -> None:
        self._host = host
        self._door = door
        self._settings = settings
        self._open: dict[int, ServerConnection] = {}
        self.frames = FrameBudget(host.clock, settings.unfinished_frames_bytes, self._open)
        self._shares = AnswerShares(settings)

    def __iter__(self) -> Iterator[ServerConnection]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def new(self, requests: RequestProcessor, scope: TaskScope) -> ServerConnection:
        """A connection for the listener; it counts once it is made."""
        share = self._shares.share_bytes
        return ServerConnection(self._host, self._settings, requests, scope, self.frames, share, self._door, self)

    def add(self, connection: ServerConnection) -> None:
        """A connection is made. Beyond the limit it is dropped at once."""
        if len(self._open) >= self._settings.connections:
            connection.drop("too many connections")
            return
        self._open[id(connection)] = connection
        self.frames.join(connection)
        self._share_answers()

    def remove(self, connection: ServerConnection) -> None:
        """A connection is gone. Idempotent."""
        if self._open.pop(id(connection), None) is not None:
            self._share_answers()

    def _share_answers(self) -> None:
        if self._shares.resize(len(self._open)):
            for connection in self._open.values():
                connection.share_answers(self._shares.share_bytes)

    def close_all(self) -> None:
        """Close every connection. Later ones are still accepted."""
        for connection in self:
            connection.close()

    def show(self, metrics: BookieMetrics) -> None:
        """Have the metrics read what the connections hold."""
        connections = self._open
        metrics.unfinished_frames.set_function(lambda: self.frames.held_bytes)
        metrics.frames_most.set_function(lambda: max([each.frame_held for each in connections.values()], default=0))
        metrics.answers_waiting.set_function(lambda: sum([each.answers_waiting_bytes for each in connections.values()]))
        metrics.answers_most.set_function(lambda: max([each.answers_waiting_bytes for each in connections.values()], default=0))
