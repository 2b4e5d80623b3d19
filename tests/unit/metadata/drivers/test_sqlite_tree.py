"""The SQLite driver alone: processes that die, stop and fork, files that are not ours, and a disk that stays locked."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.unit.metadata.stores import run
from tests.waiting import LIMIT_S
from triplicate.errors import (
    BadVersion,
    ConfigError,
    ConnectionLost,
    CorruptionError,
    FormatError,
    MetadataError,
    NoNode,
    SessionExpired,
)
from triplicate.metadata import DeleteNode, SqliteTree, Stat, open_tree
from triplicate.metadata.drivers import sqlite_poll, sqlite_sessions, sqlite_store, sqlite_tree
from triplicate.runtime import real_host

CHILD = """
import asyncio, sys
from triplicate.metadata import SqliteTree
from triplicate.runtime import real_host

async def main():
    tree = await SqliteTree.open(sys.argv[1], real_host("child"))
    await tree.create("/d/" + sys.argv[3], b"alive", ephemeral=True, parents=True)
    for number in range(int(sys.argv[2])):
        while True:
            data, stat = await tree.get("/counter")
            try:
                await tree.set("/counter", b"%d" % (int(data) + 1), stat.version)
                break
            except Exception as error:
                if type(error).__name__ != "BadVersion":
                    raise
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


def start_child(path: str, increments: int = 0, name: str = "child") -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", CHILD, path, str(increments), name], stdout=subprocess.PIPE)


def wait_ready(child: subprocess.Popen[bytes]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"


def end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    assert child.stdout is not None
    child.stdout.close()


def test_the_ephemeral_nodes_of_a_killed_process_vanish_at_once(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.db")

    async def body() -> None:
        tree = await SqliteTree.open(path, real_host("test"))
        child = start_child(path)
        try:
            await asyncio.to_thread(wait_ready, child)
            watch = tree.watch("/d")
            assert (await tree.children("/d"))[0] == ["child"]
            os.kill(child.pid, signal.SIGKILL)
            async with asyncio.timeout(4):
                while (await tree.children("/d"))[0]:
                    await watch.changed()
        finally:
            end(child)
        assert len(os.listdir(f"{path}-sessions")) == 1
        await tree.close()
        assert os.listdir(f"{path}-sessions") == []

    run(body())


def test_processes_that_write_at_the_same_time_lose_no_change(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.db")

    async def body() -> None:
        tree = await SqliteTree.open(path, real_host("test"))
        await tree.create("/counter", b"0")
        children = [start_child(path, 40, name) for name in ("one", "two")]
        try:
            for child in children:
                await asyncio.to_thread(wait_ready, child)
            assert (await tree.children("/d"))[0] == ["one", "two"]
        finally:
            for child in children:
                end(child)
        data, stat = await tree.get("/counter")
        assert (int(data), stat.version) == (80, 80)
        await tree.close()

    run(body(), 40)


def test_a_session_whose_process_is_stopped_is_over_after_the_limit_and_learns_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "metadata.db")
    monkeypatch.setattr(sqlite_sessions, "HEARTBEAT_LIMIT_S", 1.0)
    monkeypatch.setattr(sqlite_tree, "HEARTBEAT_INTERVAL_S", 0.05)
    monkeypatch.setattr(sqlite_tree, "LOOK_INTERVAL_S", 0.05)

    async def body() -> None:
        stopped, tree = await SqliteTree.open(path, real_host("stopped")), await SqliteTree.open(path, real_host("test"))
        await stopped.create("/e", ephemeral=True)
        await asyncio.sleep(2.0)
        assert await tree.exists("/e") is not None, "a session that beats lives on"
        # In one process nobody can be stopped alone: take its heartbeat away instead.
        monkeypatch.setattr(stopped._lock, "beat", lambda: None)
        waiting = stopped.watch("/anything")
        watch = tree.watch("/e")
        async with asyncio.timeout(LIMIT_S):
            while await tree.exists("/e") is not None:
                await watch.changed()
        with pytest.raises(SessionExpired):
            await stopped.create("/never")
        with pytest.raises(SessionExpired):
            async with asyncio.timeout(LIMIT_S):
                await waiting.changed()
        await stopped.close()
        await tree.close()

    run(body())


def test_a_looker_that_has_slept_itself_does_not_judge_the_heartbeats_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = str(tmp_path)
    lock = sqlite_sessions.SessionLock.acquire(directory)
    now = sqlite_sessions.boot_seconds()
    monkeypatch.setattr(sqlite_sessions, "boot_seconds", lambda: now + 60)
    assert sqlite_sessions.is_dead(directory, lock.name, judge_heartbeat=True)
    assert not sqlite_sessions.is_dead(directory, lock.name, judge_heartbeat=False)
    lock.beat()
    assert not sqlite_sessions.is_dead(directory, lock.name, judge_heartbeat=True)
    lock.release()
    lock.release()
    lock.beat()
    assert sqlite_sessions.is_dead(directory, lock.name, judge_heartbeat=False)


def test_lock_files_without_a_session_are_cleaned_away_and_held_ones_stay(tmp_path: Path) -> None:
    directory = str(tmp_path)
    (tmp_path / "1-orphan.lock").write_bytes(b"")
    (tmp_path / "unrelated").write_bytes(b"")
    held = sqlite_sessions.SessionLock.acquire(directory)
    sqlite_sessions.remove_orphans(directory, [])
    assert sorted(os.listdir(directory)) == sorted([held.name, "unrelated"])
    held.release()


def test_session_ids_are_never_used_again_and_data_survives_reopening(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.db")

    async def body() -> None:
        seen: list[int] = []
        for number in range(3):
            tree = await SqliteTree.open(path, real_host("test"))
            seen.append(tree.session_id)
            assert (await tree.children("/"))[0] == [str(earlier) for earlier in range(number)]
            await tree.create(f"/{number}")
            await tree.close()
        assert seen == sorted(set(seen))

    run(body())


def test_a_change_is_synced_before_it_is_acknowledged(tmp_path: Path) -> None:
    async def body() -> tuple[int, str]:
        tree = await SqliteTree.open(str(tmp_path / "metadata.db"), real_host("test"))
        (synchronous,) = await tree._worker.run(lambda: tree._store._row("PRAGMA synchronous"))
        (journal,) = await tree._worker.run(lambda: tree._store._row("PRAGMA journal_mode"))
        await tree.close()
        return synchronous, journal

    assert run(body()) == (2, "wal")


def test_a_file_that_stays_locked_is_a_lost_connection_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "metadata.db")
    monkeypatch.setattr(sqlite_store, "BUSY_LIMIT_S", 0.1)

    async def body() -> None:
        tree = await SqliteTree.open(path, real_host("test"))
        watch = tree.watch("/a")
        await tree.exists("/a")
        blocker = apsw.Connection(path)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConnectionLost, match="stayed locked"):
            await tree.create("/a")
        await watch.changed()
        blocker.execute("ROLLBACK")
        blocker.close()
        await tree.create("/a")
        await tree.close()

    run(body())


def test_a_session_refuses_to_work_after_a_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        tree = await SqliteTree.open(str(tmp_path / "metadata.db"), real_host("test"))
        with monkeypatch.context() as patched:
            patched.setattr(os, "getpid", lambda: tree._process_id + 1)
            with pytest.raises(MetadataError, match="fork"):
                await tree.get("/")
        await tree.close()

    run(body())


def test_a_file_of_another_program_or_release_and_no_database_are_refused(tmp_path: Path) -> None:
    async def refused(path: Path, error: type[Exception], words: str) -> None:
        with pytest.raises(error, match=words):
            await SqliteTree.open(str(path), real_host("test"))

    async def body() -> None:
        foreign = tmp_path / "foreign.db"
        database = apsw.Connection(str(foreign))
        database.execute("CREATE TABLE theirs (x)")
        database.close()
        before = foreign.read_bytes()
        await refused(foreign, ConfigError, "another program")
        assert foreign.read_bytes() == before
        later = tmp_path / "later.db"
        await (await SqliteTree.open(str(later), real_host("test"))).close()
        database = apsw.Connection(str(later))
        database.execute("PRAGMA user_version = 99")
        database.close()
        await refused(later, FormatError, "format 99")
        noise = tmp_path / "noise.db"
        noise.write_bytes(b"no database at all" * 100)
        await refused(noise, CorruptionError, "noise.db")
        await refused(tmp_path / "no" / "such.db", ConfigError, "does not exist")
        await refused(tmp_path, ConfigError, str(tmp_path))
        await refused(Path("relative.db"), ConfigError, "absolute")

    run(body())


@pytest.mark.parametrize("uri", ["", "memory", "memory:x", "sqlite:relative", "sqlite://host/x", "zkk://x", "/plain/path"])
def test_an_address_of_no_known_form_is_an_error_that_names_the_known_ones(uri: str) -> None:
    async def body() -> None:
        with pytest.raises(ConfigError, match=r"memory:.*sqlite:///"):
            await open_tree(uri, real_host("test"))

    run(body())


def test_addresses_open_the_drivers_that_they_name(tmp_path: Path) -> None:
    async def body() -> None:
        host = real_host("test")
        for uri in ("memory:", f"sqlite://{tmp_path}/metadata.db"):
            tree = await open_tree(uri, host)
            await tree.create("/a")
            await tree.close()
        assert (tmp_path / "metadata.db").exists()

    run(body())


def test_opening_that_is_cancelled_leaves_no_lock_behind(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.db")

    async def body() -> None:
        for turns in range(6):
            opening = asyncio.ensure_future(SqliteTree.open(path, real_host("test")))
            for _ in range(turns):
                await asyncio.sleep(0)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
        tree = await SqliteTree.open(path, real_host("test"))
        assert len(os.listdir(f"{path}-sessions")) == 1
        await tree.close()

    run(body())


@pytest.mark.parametrize("change", [False, True])
def test_an_operation_that_is_cancelled_wakes_no_watch_on_another_path(tmp_path: Path, *, change: bool) -> None:
    async def body() -> None:
        tree = await SqliteTree.open(str(tmp_path / "metadata.db"), real_host("test"))
        await tree.create("/a")
        watch = tree.watch("/b")
        await tree.exists("/b")
        operation = asyncio.ensure_future(tree.set("/a", b"new") if change else tree.get("/a"))
        await asyncio.sleep(0)
        operation.cancel()
        with pytest.raises(asyncio.CancelledError):
            await operation
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10 * sqlite_poll.POLL_INTERVAL_S):
                await watch.changed()
        assert (await tree.get("/a"))[0] in ((b"new", b"") if change else (b"",))
        await tree.close()

    run(body())


@pytest.mark.parametrize("change", ["set", "delete", "multi"])
def test_a_change_that_nobody_waits_for_any_more_is_not_made_late(tmp_path: Path, change: str) -> None:
    """It waited for another process that was writing, and might hit what has come since."""
    path = str(tmp_path / "metadata.db")

    async def body() -> None:
        tree = await SqliteTree.open(path, real_host("test"))
        await tree.create("/a", b"old")
        blocker = apsw.Connection(path)
        blocker.execute("BEGIN IMMEDIATE")
        changes: dict[str, Callable[[], Awaitable[object]]] = {
            "set": lambda: tree.set("/a", b"new"),
            "delete": lambda: tree.delete("/a"),
            "multi": lambda: tree.multi([DeleteNode("/a")]),
        }
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await changes[change]()
        blocker.execute("ROLLBACK")
        blocker.close()
        assert (await tree.get("/a"))[0] == b"old"
        await tree.close()

    run(body())


def test_what_ends_with_its_session_is_not_synced(tmp_path: Path) -> None:
    """No power cut leaves a session, and a process that syncs keeps the others from writing meanwhile, for as long as it may be stopped."""

    async def body() -> None:
        tree = await SqliteTree.open(str(tmp_path / "metadata.db"), real_host("test"))
        await tree.create("/kept")
        await tree.create("/mine", ephemeral=True)
        levels: list[int] = []
        real = tree._store.set

        def seen(path: str, data: bytes, version: int) -> Stat:
            levels.extend(tree._store._row("PRAGMA synchronous"))
            return real(path, data, version)

        tree._store.set = seen  # type: ignore[method-assign]
        for path in ("/kept", "/mine", "/kept"):
            assert (await tree.set(path, b"new")).version > 0
        with pytest.raises(BadVersion):
            await tree.set("/mine", b"newer", 7)
        with pytest.raises(NoNode):
            await tree.set("/none", b"new")
        await tree.set("/kept", b"newer")
        assert levels == [2, 1, 2, 1, 2, 2]
        assert (await tree.get("/mine"))[0] == b"new"
        await tree.close()

    run(body())


def test_a_node_that_is_made_again_to_stay_is_synced(tmp_path: Path) -> None:
    path = str(tmp_path / "metadata.db")

    async def body() -> None:
        tree = await SqliteTree.open(path, real_host("test"))
        other = await SqliteTree.open(path, real_host("other"))
        await tree.create("/mine", ephemeral=True)
        real, levels = tree._store._transaction, []
        moved: list[str] = []

        def meanwhile(begin: str, function: Any) -> Any:
            if begin == "BEGIN IMMEDIATE" and not moved:
                moved.append("/mine")
                other._store.write(lambda store: store.delete("/mine", -1))
                other._store.write(lambda store: store.create("/mine", b"", ephemeral=False, sequential=False, parents=False))
            levels.extend(tree._store._row("PRAGMA synchronous"))
            return real(begin, function)

        tree._store._transaction = meanwhile  # type: ignore[method-assign]
        await tree.set("/mine", b"new")
        assert levels[-1] == 2
        assert (await other.get("/mine"))[0] == b"new"
        await other.close()
        await tree.close()

    run(body())
