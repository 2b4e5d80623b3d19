"""The moment at which a leader notifies its sessions of commits, over a log whose acknowledgements the test holds back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.unit.sql.cluster import run, state_of
from tests.unit.sql.held_log import HeldLog, play, visible
from tests.waiting import eventually
from triplicate.errors import LogFenced
from triplicate.sql import SqlDatabase, SqlSession
from triplicate.sql.core.interface import Prepared, StatementKind
from triplicate.sql.core.notifications import Notification
from triplicate.sql.storage.applier import Applier, follow
from triplicate.sql.storage.sqlite_file import open_follower, open_store

NOTIFY = Prepared("", StatementKind.WRITE, (), (), "NOTIFY", command=Notification("c", "p"))


class Told:
    """A listener that notes the notices."""

    follows_commits = True

    def __init__(self, database: SqlDatabase) -> None:
        self.notifications: list[Notification] = []
        self.commits: list[tuple[int, list[str]]] = []
        self.rows: list[list[object]] = []
        """Those that others see at each notice of a commit."""
        self._database = database
        database.activity.notices.add(self)

    def notified(self, notifications: Sequence[Notification]) -> None:
        self.notifications += notifications

    def committed(self, position: int, tables: Sequence[str]) -> None:
        self.commits.append((position, list(tables)))
        self.rows.append(visible(self._database))


async def notify_with_a_row(session: SqlSession) -> None:
    await run(session, "begin")
    await run(session, "insert into t values(2)")
    await session.start(NOTIFY, ())
    await run(session, "commit")


@pytest.mark.parametrize("fails", [False, True])
def test_sessions_get_notices_once_the_log_has_acknowledged_and_the_rows_are_visible(tmp_path: Path, *, fails: bool) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        told, session, position = Told(database), await database.session(), database.position
        log.held = True
        task = asyncio.get_running_loop().create_task(state_of(notify_with_a_row(session)))
        await log.sent(1)
        assert (told.notifications, told.commits) == ([], [])
        log.release(LogFenced("another node leads") if fails else None)
        assert await task == ("08007" if fails else "")
        if fails:
            assert (told.notifications, told.commits) == ([], [])
        else:
            assert told.notifications == [Notification("c", "p")]
            assert told.commits == [(position + 1, ["t"])]
            assert told.rows == [[1, 2]]

    play(tmp_path, scene)


def test_single_notifications_share_an_entry_and_followers_apply_them(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        told, sessions = Told(database), [await database.session() for _ in range(3)]
        entries = log.entries
        await asyncio.gather(*(session.start(NOTIFY, ()) for session in sessions))
        await eventually(lambda: len(told.notifications) == 3)
        assert log.entries <= entries + 2
        path = str(tmp_path / "follower.db")
        open_store(path, b"i" * 16)
        applier = Applier(open_follower(path))
        assert follow(applier, log.sent_batches) == database.position
        assert applier.taken_notifications() == told.notifications
        assert applier.taken_notifications() == []

    play(tmp_path, scene)


def test_too_many_notifications_of_one_transaction_are_refused(tmp_path: Path) -> None:
    async def scene(database: SqlDatabase, log: HeldLog) -> None:
        session = await database.session()
        large = Prepared("", StatementKind.WRITE, (), (), "NOTIFY", command=Notification("c", "x" * 1_500_000))
        await run(session, "begin")
        await run(session, "savepoint s")
        for _ in range(2):
            await session.start(large, ())
        await run(session, "rollback to s")
        for _ in range(2):
            await session.start(large, ())
        assert await state_of(session.start(large, ())) == "54000"
        await run(session, "rollback")

    play(tmp_path, scene)
