"""The poll of the SQLite driver: it reports every write of another connection, and wakes no thread while there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import apsw
import pytest

from tests.unit.metadata.stores import run
from triplicate.metadata import SqliteTree
from triplicate.metadata.drivers.sqlite_poll import POLL_INTERVAL_S, QUIET_AFTER_S, QUIET_INTERVAL_S, SqlitePoll
from triplicate.runtime import Clock, real_host


def never() -> bool:
    return False


@pytest.fixture
def written(tmp_path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(tmp_path / "metadata.db"))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE rows (number INTEGER)")
    return connection


def test_a_poll_reports_each_write_until_it_is_seen(tmp_path: Path, written: apsw.Connection) -> None:
    async def body() -> None:
        poll = SqlitePoll(str(tmp_path / "metadata.db"))
        poll.seen(poll.version())
        for _ in range(3):
            waiting = asyncio.ensure_future(poll.changed(real_host("test").clock, never))
            await asyncio.sleep(3 * POLL_INTERVAL_S)
            assert not waiting.done()
            written.execute("INSERT INTO rows VALUES (1)")
            version = await asyncio.wait_for(waiting, 5)
            assert version == await asyncio.wait_for(poll.changed(real_host("test").clock, never), 5), "an unseen write is reported again"
            poll.seen(version)
        poll.close()
        written.close()

    run(body())


class CountedClock:
    """A clock of the test: time moves from one call to the next."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[float] = []
        self._next: Callable[[], None] | None = None

    def monotonic(self) -> float:
        return self.now

    def call_at(self, when: float, function: Callable[[], None]) -> CountedClock:
        self.calls.append(when - self.now)
        self._next, self.now = function, when
        return self

    def cancel(self) -> None:
        self._next = None

    def advance(self) -> None:
        assert self._next is not None
        self._next()


def test_a_quiet_file_is_checked_less_often_until_the_next_write(tmp_path: Path, written: apsw.Connection) -> None:
    async def body() -> None:
        poll, clock = SqlitePoll(str(tmp_path / "metadata.db")), CountedClock()
        for _ in range(2):
            poll.seen(poll.version())
            waiting = asyncio.ensure_future(poll.changed(cast("Clock", clock), never))
            await asyncio.sleep(0)
            while clock.calls[-1] < (POLL_INTERVAL_S + QUIET_INTERVAL_S) / 2:
                clock.advance()
            assert clock.calls == pytest.approx([POLL_INTERVAL_S] * (len(clock.calls) - 1) + [QUIET_INTERVAL_S])
            assert sum(clock.calls[:-1]) == pytest.approx(QUIET_AFTER_S, abs=2 * POLL_INTERVAL_S)
            written.execute("INSERT INTO rows VALUES (1)")
            clock.advance()
            await waiting
            clock.calls.clear()
        poll.close()
        written.close()

    run(body())


def test_a_write_after_the_check_is_reported_by_the_next_one(tmp_path: Path, written: apsw.Connection) -> None:
    async def body() -> None:
        poll = SqlitePoll(str(tmp_path / "metadata.db"))
        checked = poll.version()
        written.execute("INSERT INTO rows VALUES (1)")
        poll.seen(checked)
        assert await asyncio.wait_for(poll.changed(real_host("test").clock, never), 5) == poll.version() != checked
        poll.close()
        written.close()

    run(body())


def test_a_poll_waits_for_no_lock_and_reports_that_it_cannot_read(tmp_path: Path) -> None:
    async def body() -> None:
        path = str(tmp_path / "locked.db")
        locking = apsw.Connection(path)
        locking.execute("CREATE TABLE rows (number INTEGER)")
        locking.execute("BEGIN EXCLUSIVE")
        poll, clock = SqlitePoll(path), real_host("test").clock
        began = clock.monotonic()
        assert await asyncio.wait_for(poll.changed(clock, never), 5) is None
        assert clock.monotonic() - began < 1
        poll.close()
        locking.close()

    run(body())


def test_a_poll_ends_when_it_is_due_and_when_it_is_cancelled(tmp_path: Path, written: apsw.Connection) -> None:
    async def body() -> None:
        poll = SqlitePoll(str(tmp_path / "metadata.db"))
        poll.seen(poll.version())
        assert await asyncio.wait_for(poll.changed(real_host("test").clock, lambda: True), 5) == poll.version()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(poll.changed(real_host("test").clock, never), 3 * POLL_INTERVAL_S)
        poll.close()
        written.close()

    run(body())


def test_watches_of_a_quiet_file_wake_no_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        tree = await SqliteTree.open(str(tmp_path / "metadata.db"), real_host("test"))
        other = await SqliteTree.open(str(tmp_path / "metadata.db"), real_host("other"))
        watch = tree.watch("/a")
        await asyncio.sleep(5 * POLL_INTERVAL_S)
        calls: list[list[str]] = []
        real = tree._store.changed_paths

        def counted(watched: Sequence[str]) -> list[str]:
            calls.append(list(watched))
            return real(watched)

        monkeypatch.setattr(tree._store, "changed_paths", counted)
        await asyncio.sleep(10 * POLL_INTERVAL_S)
        assert calls == []
        await other.create("/a")
        await asyncio.wait_for(watch.changed(), 5)
        assert calls
        assert set(map(tuple, calls)) == {("/a",)}
        await other.close()
        await tree.close()

    run(body())


def test_a_session_that_can_wait_is_checked_at_its_own_interval(tmp_path: Path, written: apsw.Connection) -> None:
    async def body() -> None:
        poll, clock = SqlitePoll(str(tmp_path / "metadata.db")), CountedClock()
        poll.seen(poll.version())
        waiting = asyncio.ensure_future(poll.changed(cast("Clock", clock), never, 0.5))
        await asyncio.sleep(0)
        for _ in range(5):
            clock.advance()
        assert clock.calls == pytest.approx([0.5] * 6)
        written.execute("INSERT INTO rows VALUES (1)")
        clock.advance()
        await waiting
        poll.close()
        written.close()

    run(body())
