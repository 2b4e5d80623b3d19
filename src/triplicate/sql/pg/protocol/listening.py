"""The channels that one connection listens to, and the notifications that wait for its client.

A client gets notifications between two transactions, as in PostgreSQL. Until then they wait, within a limit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Database, Session
from triplicate.sql.core.notifications import CHANGES_CHANNEL, PAYLOAD_BYTES_MAX, Notification
from triplicate.sql.core.rights import Action
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.syntax.notify_statements import Listen, Unlisten

WAITING_MAX = 10_000
"""Limit on the notifications that wait for one client."""
WAITING_BYTES_MAX = 8 * 1024 * 1024
"""Limit on their characters."""


class Listening:
    """A listener of `CommitNotices`.

    Attributes:
        on_first: called when the first notification begins to wait.
        on_overflow: called with the error for the client when too many wait. Nothing waits any more then.
    """

    def __init__(self, database: Database, session: Session) -> None:
        self._notices = database.activity.notices
        self._session = session
        self._channels: set[str] = set()
        self._pending: list[Listen | Unlisten] = []
        """The commands of the open transaction, which its commit applies."""
        self._waiting: list[Notification] = []
        self._waiting_size = 0
        self._position = 0
        """The position of the newest commit whose notice waits; 0 for none."""
        self._tables: dict[str, None] = {}
        """The tables that this commit and those before it change, as far as no notice of them was sent."""
        self.on_first: Callable[[], None] = lambda: None
        self.on_overflow: Callable[[SqlError], None] = lambda error: None

    # LISTEN and UNLISTEN.

    @property
    def channels(self) -> frozenset[str]:
        return frozenset(self._channels)

    def change(self, command: Listen | Unlisten, *, in_transaction: bool) -> None:
        """Run a command. In a transaction it takes effect at the commit."""
        self._pending.append(command)
        if not in_transaction:
            self.commit()

    def commit(self) -> None:
        """The transaction was committed."""
        pending, self._pending = self._pending, []
        for command in pending:
            if isinstance(command, Listen):
                self._channels.add(command.channel)
            elif command.channel is None:
                self._channels.clear()
            else:
                self._channels.discard(command.channel)
        if self._channels:
            self._notices.add(self)
        else:
            self._notices.remove(self)

    def roll_back(self) -> None:
        """The transaction has ended without a commit, or has been committed already."""
        self._pending.clear()

    def close(self) -> None:
        """The connection ends. Idempotent."""
        self._channels.clear()
        self._pending.clear()
        self._notices.remove(self)

    # For the notices of the database.

    @property
    def follows_commits(self) -> bool:
        return CHANGES_CHANNEL in self._channels

    def notified(self, notifications: Sequence[Notification]) -> None:
        wanted = [one for one in notifications if one.channel in self._channels]
        if not wanted:
            return
        is_first = not self.has_waiting
        self._waiting += wanted
        self._waiting_size += sum([len(one.channel) + len(one.payload) for one in wanted])
        if len(self._waiting) > WAITING_MAX or self._waiting_size > WAITING_BYTES_MAX:
            count = len(self._waiting)
            self._forget_waiting()
            self.close()
            self.on_overflow(
                SqlError(
                    "54000",
                    f"{count} notifications wait for this session, which is more than a session may leave unread",
                    hint="Read the notifications as they come, and do not listen within long transactions.",
                )
            )
        elif is_first:
            self.on_first()

    def committed(self, position: int, tables: Sequence[str]) -> None:
        role, access = self._session.roles.acting, self._session.access
        readable = [table for table in tables if role is None or access.has(role, Action.SELECT, table)]
        if tables and not readable:
            return
        is_first = not self.has_waiting
        self._position = position
        self._tables.update(dict.fromkeys(readable))
        if is_first:
            self.on_first()

    # For the connection.

    @property
    def has_waiting(self) -> bool:
        """Whether notifications wait."""
        return bool(self._waiting or self._position)

    def take(self) -> bytes:
        """The messages of all that waits. Nothing waits any more then."""
        messages = [wire.notification_response(one.channel, one.payload) for one in self._waiting]
        if self._position:
            messages.append(wire.notification_response(CHANGES_CHANNEL, _commit_payload(self._position, list(self._tables))))
        self._forget_waiting()
        return b"".join(messages)

    def _forget_waiting(self) -> None:
        self._waiting, self._waiting_size = [], 0
        self._position, self._tables = 0, {}


def _commit_payload(position: int, tables: list[str]) -> str:
    """Position and tables as JSON. Where there are too many tables for a notification, `tables` is null."""
    payload = json.dumps({"position": position, "tables": tables}, ensure_ascii=False)
    return payload if len(payload.encode()) <= PAYLOAD_BYTES_MAX else json.dumps({"position": position, "tables": None})
