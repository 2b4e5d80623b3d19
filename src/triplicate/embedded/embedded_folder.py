"""The folder of an embedded database, which one process at a time uses.

DIR/embedded.json    format of the folder, written once
DIR/lock             locked while a process uses the folder; has its process id
DIR/metadata.db      the metadata, with locks beside it
DIR/bookie/          journal/ and ledgers/ of the one bookie
DIR/node/            the copies of the databases
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triplicate.errors import ConfigError, EnvironmentFault, FormatError
from triplicate.runtime import Disk

VERSION = 1
MARKER = "embedded.json"
CLUSTER = "cluster.json"
"""The file that `triplicate up` writes into its folders."""
LOCK = "lock"
_SIZE_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UpCluster:
    """The facts of a folder of `triplicate up` for a process that joins its cluster."""

    metadata_uri: str
    client_file: str
    """The settings of its clients; empty where it is not secured."""


class EmbeddedFolder:
    """One folder. Everything blocks."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.path = path
        self._disk = disk
        self._release: Callable[[], None] | None = None

    @property
    def metadata_uri(self) -> str:
        return f"sqlite://{os.path.join(self.path, 'metadata.db')}"

    def up_cluster(self) -> UpCluster | None:
        """The cluster of `triplicate up` in this folder; None where there is none.

        Raises:
            FormatError: its file cannot be read.
        """
        path = os.path.join(self.path, CLUSTER)
        if not self._disk.exists(path):
            return None
        content = self._json(path)
        try:
            store = next((member for member in content["members"] if member["kind"] == "zookeeper"), None)
            uri = self.metadata_uri if store is None else f"zk://127.0.0.1:{store['port']}/ledgers"
            is_secured = content["v"] >= 3
        except (KeyError, TypeError) as error:
            raise FormatError(f"{path} cannot be read ({error!r}): restore it") from None
        client_file = os.path.join(self.path, "security", "client.toml")
        return UpCluster(uri, client_file if is_secured else "")

    def open(self) -> None:
        """Lock the folder, which is made if it is missing.

        Raises:
            EnvironmentFault: another process uses it, or it cannot be used. ConfigError: it holds other files.
            FormatError: a later release has written it.
        """
        try:
            self._disk.mkdir(self.path)
            self._check_content()
            self._lock()
            self._mark()
        except OSError as error:
            self.close()
            reason = error.strerror or str(error)
            raise EnvironmentFault(f"{self.path}: cannot be used ({reason}): mount it, or make it writable for this user") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the lock. Idempotent."""
        release, self._release = self._release, None
        if release is not None:
            release()

    def _check_content(self) -> None:
        names = self._disk.names(self.path)
        if MARKER not in names and any(name not in (LOCK, MARKER + ".new") for name in names):
            raise ConfigError(f"{self.path} is not empty and holds no database of Triplicate: choose another folder")

    def _lock(self) -> None:
        path = os.path.join(self.path, LOCK)
        try:
            self._release = self._disk.lock(path)
        except BlockingIOError:
            raise EnvironmentFault(
                f"{self.path} is in use by {self._holder(path)}: an embedded database belongs to one process. Close it there, or have "
                "that process listen (port=…) and connect to it with PostgreSQL's protocol"
            ) from None
        file = self._disk.open(path, create=True)
        try:
            file.truncate(0)
            file.pwrite([b"%d\n" % os.getpid()], 0)
        finally:
            file.close()

    def _holder(self, path: str) -> str:
        file = self._disk.open(path, readonly=True)
        try:
            text = file.pread(32, 0).strip()
        finally:
            file.close()
        if not text.isdigit():
            return "another process"
        return "this process" if int(text) == os.getpid() else f"process {text.decode()}"

    def _mark(self) -> None:
        path = os.path.join(self.path, MARKER)
        if self._disk.exists(path):
            version = self._json(path).get("v")
            if version != VERSION:
                raise FormatError(f"{path}: of format {version}, this release knows {VERSION}: start the release that wrote it")
            return
        file = self._disk.open(path + ".new", create=True)
        try:
            file.truncate(0)
            file.pwrite([json.dumps({"v": VERSION}).encode() + b"\n"], 0)
            file.sync()
        finally:
            file.close()
        self._disk.rename(path + ".new", path)
        self._disk.sync_directory(self.path)

    def _json(self, path: str) -> dict[str, Any]:
        file = self._disk.open(path, readonly=True)
        try:
            content = json.loads(file.pread(_SIZE_MAX, 0))
        except ValueError as error:
            raise FormatError(f"{path} is damaged ({error}): restore it") from None
        finally:
            file.close()
        if not isinstance(content, dict):
            raise FormatError(f"{path} is damaged: it is no table. Restore it")
        return content
