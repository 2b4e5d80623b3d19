"""An index is printed without a change to its files, also beside a running bookie."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.bookie.index_rig import CACHE, run_of
from tests.unit.bookie.offline.dump_rig import ReadingDisk, content_of, fact, kinds
from triplicate.bookie.core.ledger_data import LedgerData
from triplicate.bookie.offline import index_dump
from triplicate.bookie.offline.dump_lines import DumpChoice, DumpLine
from triplicate.bookie.offline.index_dump import copy_index, dump_index, is_in_use
from triplicate.bookie.storage.index import PAGE_OF_IDS, Index
from triplicate.bookie.storage.index_vfs import PAGE_BYTES
from triplicate.errors import CorruptionError, EnvironmentFault
from triplicate.runtime import Disk
from triplicate.runtime.real_disk import RealDisk

KEY = b"k" * 20


@pytest.fixture
def path(tmp_path: Path) -> str:
    """The index of a stopped bookie with ledgers 1 to 3; ledger 2 has more runs than a page."""
    path = str(tmp_path / "bookie" / "index.db")
    Path(path).parent.mkdir()
    index = Index(RealDisk(), path, CACHE)
    states = [(1, LedgerData(ledger_id, KEY, ledger_id == 1)) for ledger_id in (1, 2, 3)]
    runs = [(1, run_of(1, 0, 9)), *((2, run_of(2, at, at, offset=4096 + at)) for at in range(PAGE_OF_IDS + 10)), (2, run_of(3, 4, 5))]
    index.add(1, states, runs, [(1, 5000), (2, 9000)])
    index.note_missing(1234, [3])
    index.mark_complete()
    index.close()
    return path


def dumped(path: str, choice: DumpChoice | None = None) -> list[DumpLine]:
    return list(dump_index(ReadingDisk(), path, choice or DumpChoice()))


def test_every_row_is_printed_and_no_byte_changes(path: str) -> None:
    before = content_of(Path(path).parent)
    lines = dumped(path)
    assert content_of(Path(path).parent) == before
    assert kinds(lines)[:4] == ["fact", "log", "log", "ledger"]
    assert fact(lines, "ledger", "ledger") == [1, 2, 3]
    assert fact(lines, "run", "ledger").count(2) == PAGE_OF_IDS + 10
    assert fact(lines, "missing", "since_ms") == [1234]


def test_a_ledger_an_entry_or_a_log_narrows_the_rows(path: str) -> None:
    assert kinds(dumped(path, DumpChoice(ledger_id=1))) == ["ledger", "run"]
    found = dumped(path, DumpChoice(ledger_id=2, first_entry=7, last_entry=7))
    assert (kinds(found), fact(found, "run", "position")) == (["run"], [4103])
    assert kinds(dumped(path, DumpChoice(log=1))) == ["run"]
    assert dumped(path, DumpChoice(ledger_id=99)) == []


def test_a_damaged_page_is_reported(path: str) -> None:
    # The last commits are in the file of commits: a start copies them into the database file.
    Index(RealDisk(), path, CACHE).close()
    data = bytearray(Path(path).read_bytes())
    for page in range(len(data) // PAGE_BYTES - 6, len(data) // PAGE_BYTES):
        data[page * PAGE_BYTES + 100] ^= 1
    Path(path).write_bytes(data)
    assert "damage" in kinds(dumped(path))


@pytest.mark.parametrize("data", [b"", b"no database at all"])
def test_a_file_that_is_no_index_is_refused(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "index.db"
    file.write_bytes(data)
    with pytest.raises(CorruptionError, match="no index of a bookie"):
        dumped(str(file))


def test_a_running_bookies_index_is_copied_with_its_newest_commits(path: str, tmp_path: Path) -> None:
    running = Index(RealDisk(), path, CACHE)
    running.note_missing(99, [2])
    target = str(tmp_path / "copy.db")
    copy_index(RealDisk(), path, target)
    running.close()
    assert fact(dumped(target), "missing", "since_ms") == [99, 1234]


def test_a_copy_that_the_bookie_changed_meanwhile_is_made_again(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running = Index(RealDisk(), path, CACHE)
    original = index_dump._copy
    changed: list[str] = []

    def copy(disk: Disk, source: str, target: str) -> object:
        done = original(disk, source, target)
        if source == path and not changed:
            # The bookie empties its file of commits while the database file is copied.
            changed.append(source)
            running.note_missing(77, [1])
            running.close()
            Index(RealDisk(), path, CACHE).close()
        return done

    monkeypatch.setattr(index_dump, "_copy", copy)
    target = str(tmp_path / "copy.db")
    copy_index(RealDisk(), path, target)
    assert fact(dumped(target), "missing", "since_ms") == [77, 1234]


def test_an_index_that_never_rests_is_refused(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = index_dump._copy

    def copy(disk: Disk, source: str, target: str) -> object:
        done = original(disk, source, target)
        if source == path:
            with Path(path).open("ab") as file:
                file.write(bytes(PAGE_BYTES))
        return done

    monkeypatch.setattr(index_dump, "_copy", copy)
    Index(RealDisk(), path, CACHE).close()
    with pytest.raises(EnvironmentFault, match="changed during each of 5 copies"):
        copy_index(RealDisk(), path, str(tmp_path / "copy.db"))


def test_a_lock_says_whether_a_bookie_runs(path: str) -> None:
    assert not is_in_use(RealDisk(), path)
    assert not (Path(path).parent / "LOCK").exists()
    release = RealDisk().lock(str(Path(path).parent / "LOCK"))
    assert is_in_use(RealDisk(), path)
    release()
    assert not is_in_use(RealDisk(), path)


def test_a_directory_whose_lock_cannot_be_opened_counts_as_used(path: str) -> None:
    class ReadOnlyDisk(RealDisk):
        def lock(self, path: str) -> Callable[[], None]:
            raise PermissionError(errno.EACCES, "permission denied", path)

    (Path(path).parent / "LOCK").touch()
    assert is_in_use(ReadOnlyDisk(), path)
