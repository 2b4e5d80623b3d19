"""A file that others than its owner may use is reported with the command that closes it."""

from __future__ import annotations

from pathlib import Path

from triplicate.cli.server_commands.file_modes import file_mode_findings
from triplicate.config import BookieSettings


def found(settings: BookieSettings, uri: str = "zk://host/ledgers") -> list[str]:
    return list(file_mode_findings(settings, uri))


def directory(path: Path, mode: int, current: int) -> BookieSettings:
    (path / "current").mkdir(parents=True)
    (path / "current").chmod(current)
    path.chmod(mode)
    return BookieSettings(journal_directories=(str(path),), ledger_directories=(str(path),))


def test_a_bookies_directory_is_open_if_nothing_closes_its_data(tmp_path: Path) -> None:
    path = tmp_path / "a disk"
    (text,) = found(directory(path, 0o755, 0o755))
    assert text == f"others than its owner may use {path}/current (mode 0755); run chmod 700 '{path}/current'"
    (path / "current").chmod(0o700)
    assert found(BookieSettings(journal_directories=(str(path),), ledger_directories=(str(path),))) == []


def test_a_closed_directory_closes_what_is_in_it(tmp_path: Path) -> None:
    assert found(directory(tmp_path / "disk", 0o700, 0o755)) == []


def test_the_files_of_an_embedded_store_are_reported_with_the_cure(tmp_path: Path) -> None:
    path, settings = tmp_path / "metadata.db", BookieSettings(journal_directories=("/nowhere",), ledger_directories=("/nowhere",))
    uri = f"sqlite://{path}"
    assert found(settings, uri) == []
    sessions = tmp_path / "metadata.db-sessions"
    for name in ("metadata.db", "metadata.db-wal"):
        (tmp_path / name).touch()
        (tmp_path / name).chmod(0o640)
    sessions.mkdir()
    sessions.chmod(0o711)
    assert found(settings, uri) == [
        f"others than its owner may read the metadata in {path} (mode 0640); run chmod 600 {path} {path}-wal",
        f"others than its owner may use {sessions} (mode 0711); run chmod 700 {sessions}",
    ]
    for name in ("metadata.db", "metadata.db-wal"):
        (tmp_path / name).chmod(0o600)
    sessions.chmod(0o700)
    assert found(settings, uri) == []
