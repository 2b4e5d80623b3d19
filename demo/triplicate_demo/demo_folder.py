"""The demonstration's folder: the files of a run, and those that the next run may delete.

DIR/demo.json       marks the folder as the demonstration's, with an identity drawn when it was made
DIR/lock            held by the run in progress
DIR/input/          the unpacked input; kept from run to run
DIR/work            deleted by the next run: demo.json with the same identity, cluster/, spark/, checkpoint/, changes/,
                    and with --secure keys.toml, which has the key of the encrypted logs
DIR/summary.json, flights.png, acknowledged.jsonl    results; written by every run
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path

from triplicate.cli import wait_for_orphans, write_json
from triplicate.errors import ConfigError

VERSION = 1
KIND = "triplicate demo"
MARKER = "demo.json"
LOCK = "lock"
UNFINISHED = MARKER + ".new"
"""Name of a marker until it is durable."""


class DemoFolder:
    """A folder that belongs to the demonstration. No file in it is touched before `check` has returned.

    Args:
        path: absolute.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._identity = ""

    @property
    def work(self) -> Path:
        """Folder of a run's cluster, Spark's files, checkpoint and changes."""
        return self.path / "work"

    @property
    def input(self) -> Path:
        return self.path / "input"

    def check(self) -> None:
        """Check that the folder is new, empty, or made by an earlier demonstration. Changes nothing.

        Raises:
            ConfigError: it is something else, and stays as it is.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ConfigError(f"{self.path} is a file; choose another --dir")
        if not self.path.exists() or _holds_only(self.path, LOCK, UNFINISHED):
            return
        self._identity = read_marker(self.path)
        if not self._identity:
            raise ConfigError(
                f"{self.path} is not empty and was not made by the demonstration, which deletes files there: choose another --dir, "
                "or empty it"
            )
        if self.work.exists() and not self._made_work():
            raise ConfigError(f"{self.work} was not made by the demonstration in {self.path}: move it elsewhere, or choose another --dir")

    def prepare(self) -> None:
        """Mark the folder, delete the work of an earlier run once its processes are gone, and make an empty folder for this run's.

        The caller holds the folder's lock and has called `check`.

        Raises:
            EnvironmentFault: a process of the earlier run does not end.
        """
        if not self._identity:
            self._identity = secrets.token_hex(16)
            write_marker(self.path, self._identity)
        if self.work.exists():
            wait_for_orphans(self.work / "cluster")
            self._delete_work()
        self.work.mkdir()
        write_marker(self.work, self._identity)

    def _made_work(self) -> bool:
        # A folder without a marker is left by a run that was killed as it made the folder.
        return not self.work.is_symlink() and (read_marker(self.work) == self._identity or _holds_only(self.work, UNFINISHED))

    def _delete_work(self) -> None:
        """Delete the marker last: after an interruption the next run still recognises the rest as the demonstration's."""
        for entry in sorted(self.work.iterdir()):
            if entry.name == MARKER:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        (self.work / MARKER).unlink(missing_ok=True)
        self.work.rmdir()


def write_marker(folder: Path, identity: str) -> None:
    write_json(folder / MARKER, {"v": VERSION, "kind": KIND, "id": identity})


def read_marker(folder: Path) -> str:
    """The identity in a folder's marker; empty where the folder has no marker that this release understands."""
    try:
        content = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    if not isinstance(content, dict) or content.get("v") != VERSION or content.get("kind") != KIND:
        return ""
    return str(content.get("id", ""))


def _holds_only(folder: Path, *names: str) -> bool:
    return all(name in names for name in os.listdir(folder))
