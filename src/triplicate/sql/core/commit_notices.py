"""Sends the sessions that listen on a node a notice of each commit of its copy of a database. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from triplicate.sql.core.notifications import Notification
from triplicate.sql.core.records import decode_header


class CommitListener(Protocol):
    """A session that listens. Its methods are called on the event loop and must be quick."""

    @property
    def follows_commits(self) -> bool:
        """Whether it wants to know of every commit."""

    def notified(self, notifications: Sequence[Notification]) -> None:
        """Transactions with these notifications have been committed, in this order."""

    def committed(self, position: int, tables: Sequence[str]) -> None:
        """Changes of these tables have been committed. The copy has reached this position."""


class CommitNotices:
    """The listeners to one copy of a database. They get a notice after the commit is visible in the copy."""

    def __init__(self) -> None:
        self._listeners: dict[int, CommitListener] = {}

    def add(self, listener: CommitListener) -> None:
        """Idempotent."""
        self._listeners[id(listener)] = listener

    def remove(self, listener: CommitListener) -> None:
        """Idempotent."""
        self._listeners.pop(id(listener), None)

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    def publish(self, position: int, notifications: Sequence[Notification], tables: Callable[[], Sequence[str]]) -> None:
        """A commit has become visible.

        Args:
            position: the copy's, after it. tables: finds the names of the changed tables; called only if somebody wants to know.
        """
        if not self.has_listeners:
            return
        changed: Sequence[str] | None = None
        for listener in list(self._listeners.values()):
            if notifications:
                listener.notified(notifications)
            if listener.follows_commits:
                changed = tables() if changed is None else changed
                listener.committed(position, changed)


def changed_tables(preambles: Sequence[bytes | None]) -> list[str]:
    """The names of the tables whose rows some batches change, each once."""
    return list(dict.fromkeys(shape.name for preamble in preambles if preamble for shape in decode_header(preamble).tables))
