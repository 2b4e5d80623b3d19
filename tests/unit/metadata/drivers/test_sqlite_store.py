"""The metadata file and everything beside it are their owner's alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.metadata.stores import run
from triplicate.metadata import SqliteTree
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
