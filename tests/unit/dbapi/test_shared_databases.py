from __future__ import annotations

import threading
from pathlib import Path

import pytest

from triplicate import dbapi
from triplicate.dbapi import shared_databases
from triplicate.errors import SqlError


def names_of_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "triplicate-database"]


def test_connections_to_a_folder_share_one_node_until_the_last_is_closed(tmp_path: Path) -> None:
    first = dbapi.connect(tmp_path / "app")
    (tmp_path / "link").symlink_to(tmp_path / "app")
    second = dbapi.connect(tmp_path / "link")
    assert len(names_of_threads()) == 1
    first.execute("create table t(a)")
    first.close()
    assert second.execute("select count(*) from t").fetchone() == (0,)
    second.close()
    assert names_of_threads() == []
    again = dbapi.connect(str(tmp_path / "app"))
    assert again.execute("select count(*) from t").fetchone() == (0,)
    again.close()


def test_each_connection_to_memory_has_a_database_of_its_own() -> None:
    with_table, without = dbapi.connect("memory:"), dbapi.connect(":memory:")
    with_table.execute("create table t(a)")
    with pytest.raises(dbapi.ProgrammingError, match="no such table"):
        without.execute("select * from t")
    with_table.close()
    without.close()


def test_a_program_that_ends_without_closing_stops_its_nodes(tmp_path: Path) -> None:
    connection = dbapi.connect(tmp_path / "app")
    connection.execute("create table t(a)")
    shared_databases._close_all()
    assert names_of_threads() == []
    with pytest.raises(dbapi.ProgrammingError):
        connection.execute("select 1")
    with pytest.raises(dbapi.ProgrammingError):
        connection.close()
    again = dbapi.connect(tmp_path / "app")
    again.close()


def test_a_database_that_cannot_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(dbapi.ProgrammingError, match="does not exist") as failure:
        dbapi.connect(tmp_path / "app", name="other", create=False)
    assert isinstance(failure.value.__cause__, SqlError)
    assert names_of_threads() == []
    dbapi.connect(tmp_path / "app").close()
