"""How the connections to the local file of a copy are set up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from triplicate.errors import ConfigError
from triplicate.sql.storage.sqlite_file import mark_diverged, open_follower, open_store, open_writer, read_state

NORMAL, FULL = 1, 2


@pytest.mark.parametrize("open_connection", [open_writer, open_follower])
def test_a_commit_writes_the_write_ahead_log_and_does_not_sync_it(
    tmp_path: Path, open_connection: Callable[[str], apsw.Connection]
) -> None:
    path = str(tmp_path / "main.db")
    open_store(path, b"d" * 16)
    connection = open_connection(path)
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == NORMAL
    connection.close()


def test_the_mark_of_a_wrong_copy_is_synced(tmp_path: Path) -> None:
    path = str(tmp_path / "main.db")
    open_store(path, b"d" * 16)
    connection = open_follower(path)
    mark_diverged(connection, "a row was changed that is not there")
    assert connection.pragma("synchronous") == FULL
    assert read_state(connection).diverged == "a row was changed that is not there"
    connection.close()


def test_a_library_that_can_lose_a_commit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.46.0")
    with pytest.raises(ConfigError, match=r"SQLite 3\.46\.0"):
        open_store(str(tmp_path / "main.db"), b"d" * 16)
