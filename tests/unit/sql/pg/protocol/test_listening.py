"""Notifications that wait for a client: the limits, the folding of commits, and the rights to know of them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import AccessRights, StoredRole
from triplicate.sql.core.database_activity import DatabaseActivity
from triplicate.sql.core.notifications import Notification
from triplicate.sql.core.rights import Action
from triplicate.sql.pg.protocol import listening
from triplicate.sql.pg.protocol.listening import Listening
from triplicate.sql.pg.syntax.notify_statements import Listen, Unlisten

ACCESS = AccessRights([StoredRole("reader")], {}, {("seen", "reader"): frozenset({Action.SELECT})}, {})


class Stand:
    """A listener, the notices that it follows, and its calls."""

    def __init__(self, *channels: str, role: str | None = None) -> None:
        self.activity = DatabaseActivity()
        session = SimpleNamespace(roles=SimpleNamespace(acting=role), access=ACCESS)
        self.listening = Listening(cast("Any", SimpleNamespace(activity=self.activity)), cast("Any", session))
        self.firsts = 0
        self.overflow: SqlError | None = None
        self.listening.on_first, self.listening.on_overflow = self._first, self._overflowed
        for channel in channels:
            self.listening.change(Listen(channel), in_transaction=False)

    def _first(self) -> None:
        self.firsts += 1

    def _overflowed(self, error: SqlError) -> None:
        self.overflow = error

    def publish(self, position: int, *notifications: tuple[str, str], tables: tuple[str, ...] = ()) -> None:
        self.activity.notices.publish(position, [Notification(*one) for one in notifications], lambda: tables)

    def taken(self) -> list[tuple[str, str]]:
        found, data = [], self.listening.take()
        while data:
            size = int.from_bytes(data[1:5], "big")
            channel, payload, _ = data[9 : size + 1].split(b"\0")
            found.append((channel.decode(), payload.decode()))
            data = data[size + 1 :]
        return found


def test_only_the_channels_of_the_session_wait_for_it() -> None:
    stand = Stand("a", "b")
    stand.publish(1, ("a", "1"), ("c", "2"))
    stand.publish(2, ("b", "3"))
    assert stand.firsts == 1
    assert stand.taken() == [("a", "1"), ("b", "3")]
    stand.listening.change(Unlisten("a"), in_transaction=False)
    stand.publish(3, ("a", "4"))
    assert not stand.listening.has_waiting


@pytest.mark.parametrize("size", [1, 7000])
def test_a_session_that_leaves_too_many_unread_ends_with_an_error(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(listening, "WAITING_MAX", 10)
    monkeypatch.setattr(listening, "WAITING_BYTES_MAX", 40_000)
    stand = Stand("a")
    for number in range(20):
        stand.publish(number, ("a", "x" * size))
    assert stand.overflow is not None
    assert stand.overflow.sqlstate == "54000"
    assert f"{11 if size == 1 else 6} notifications wait" in stand.overflow.message
    assert not stand.listening.has_waiting
    assert stand.listening.channels == frozenset()


def test_commits_that_wait_are_told_as_one() -> None:
    stand = Stand("triplicate_changes")
    for position in range(1, 30_000):
        stand.publish(position, tables=("t", f"u{position % 3}"))
    ((channel, payload),) = stand.taken()
    assert channel == "triplicate_changes"
    assert json.loads(payload) == {"position": 29_999, "tables": ["t", "u1", "u2", "u0"]}
    stand.publish(30_000, tables=tuple(f"table_{number}" for number in range(1000)))
    assert json.loads(stand.taken()[0][1]) == {"position": 30_000, "tables": None}


def test_a_role_learns_of_the_tables_that_it_may_read() -> None:
    stand = Stand("triplicate_changes", role="reader")
    stand.publish(1, tables=("hidden",))
    assert not stand.listening.has_waiting
    stand.publish(2, tables=("hidden", "seen"))
    assert json.loads(stand.taken()[0][1]) == {"position": 2, "tables": ["seen"]}


def test_a_connection_that_has_ended_is_told_nothing() -> None:
    stand = Stand("a")
    stand.listening.close()
    stand.publish(1, ("a", "1"))
    assert not stand.listening.has_waiting
