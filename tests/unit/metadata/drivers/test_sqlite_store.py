"""The metadata file: its modes, its waits for another writer, and what it refuses."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import ConfigError, ConnectionLost
from triplicate.metadata import SqliteTree
from triplicate.metadata.drivers import sqlite_sessions, sqlite_store
from triplicate.metadata.drivers.sqlite_sessions import SessionLock, remove_orphans
from triplicate.metadata.drivers.sqlite_store import SqliteStore
from triplicate.runtime import real_host


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """The mode of each file and directory below a folder, by its name without what changes from run to run."""
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*")}
    return {f"a{path.suffix}" if path.suffix == ".lock" else path.name: mode for path, mode in found.items()}


@pytest.mark.usefixtures("open_umask")
def test_every_file_of_the_store_is_private_whatever_the_umask(tmp_path: Path) -> None:
    expected = {
        "metadata.db": 0o600,
        "metadata.db-wal": 0o600,
        "metadata.db-shm": 0o600,
        "metadata.db-sessions": 0o700,
        "a.lock": 0o600,
    }

    async def body() -> None:
        for _ in range(2):
            # SQLite removes its two files with the last session, and makes them again for the next.
            tree = await SqliteTree.open(str(tmp_path / "metadata.db"), real_host("test"))
            await tree.create("/some", b"thing", parents=True) if await tree.exists("/some") is None else None
            assert modes(tmp_path) == expected
            await tree.close()
            assert modes(tmp_path) == {"metadata.db": 0o600, "metadata.db-sessions": 0o700}

    run(body())


@pytest.mark.usefixtures("open_umask")
def test_a_file_that_its_owner_has_opened_to_others_is_left_as_it_is(tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "metadata.db"
        await (await SqliteTree.open(str(path), real_host("test"))).close()
        path.chmod(0o640)
        await (await SqliteTree.open(str(path), real_host("test"))).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640

    run(body())


@pytest.mark.parametrize(("version", "is_sound"), [("3.40.1", False), ("3.51.2", False), ("3.51.3", True), ("3.100.0", True)])
def test_a_library_that_can_lose_a_commit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, *, is_sound: bool
) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)

    async def body() -> None:
        opening = SqliteTree.open(str(tmp_path / "metadata.db"), real_host("test"))
        if is_sound:
            await (await opening).close()
        else:
            with pytest.raises(ConfigError, match=rf"SQLite {version}.*3\.51\.3 or later is needed: pip install"):
                await opening

    run(body())


def test_a_session_that_waits_for_a_writer_tries_as_often_at_the_end_as_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside writers without pause, the file is free for moments only."""
    path = str(tmp_path / "metadata.db")
    (tmp_path / "metadata.db-sessions").mkdir()
    store = SqliteStore(path, lambda: 0)
    blocker = apsw.Connection(path)
    blocker.execute("BEGIN IMMEDIATE")
    now, pauses = 100.0, []

    def pause(seconds: float) -> None:
        nonlocal now
        pauses.append(seconds)
        now += seconds

    monkeypatch.setattr(sqlite_store, "pause", pause)
    monkeypatch.setattr(sqlite_store, "boot_seconds", lambda: now)
    with pytest.raises(ConnectionLost, match="stayed locked by another process for 5 s"):
        store.open_session("a.lock")
    assert sum(pauses) == pytest.approx(5, abs=0.01)
    assert max(pauses) <= 0.001
    blocker.execute("ROLLBACK")
    store.open_session("a.lock")
    store.close()
    blocker.close()


def test_a_commit_that_fails_leaves_the_poll_able_to_see_the_next_one(tmp_path: Path) -> None:
    """Another session then makes the change, to just the version that the failed one would have made."""
    path = str(tmp_path / "metadata.db")
    (tmp_path / "metadata.db-sessions").mkdir()
    stores = [SqliteStore(path, lambda: 0) for _ in range(2)]
    for number, store in enumerate(stores):
        store.open_session(f"{number}.lock")
    failing, other = stores
    failing.write(lambda store: store.create("/a", b"", ephemeral=False, sequential=False, parents=False))
    failing.arm("/a")
    failing.changed_paths(["/a"])

    def fails() -> bool:
        return True  # A commit that this hook refuses is rolled back, as one on a full disk.

    failing._database.set_commit_hook(fails)
    with pytest.raises(Exception, match="metadata"):
        failing.write(lambda store: store.set("/a", b"mine", 0))
    failing._database.set_commit_hook(None)
    other.write(lambda store: store.set("/a", b"other's", 0))
    assert failing.changed_paths(["/a"]) == ["/a"]
    for store in stores:
        store.close()


def test_a_lock_taken_while_orphans_are_removed_is_kept_or_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remover finds a new session's file before its lock, and removes it: the session must not go on with a file that is gone."""
    directory, real, locked = str(tmp_path), sqlite_sessions.remove_lock, []

    def new_session_locks_first(folder: str, name: str) -> None:
        descriptor = os.open(os.path.join(folder, name), os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked.append(name)
        except BlockingIOError:  # The remover holds it: a session that locks it next finds the file removed.
            return
        finally:
            real(folder, name)
            os.close(descriptor)

    (tmp_path / "left.lock").touch()
    monkeypatch.setattr(sqlite_sessions, "remove_lock", new_session_locks_first)
    remove_orphans(directory, [])
    assert locked == []
    assert os.listdir(directory) == []
    lock = SessionLock.acquire(directory)
    remove_orphans(directory, [])
    assert os.listdir(directory) == [lock.name]
    lock.release()
