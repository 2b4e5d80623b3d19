"""Finds the process that listens on a port of this machine, as far as the system reports it."""

from __future__ import annotations

import os
import socket
import struct
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from triplicate.cli.process.serving import place_of
from triplicate.cli.supervision.cluster_folder import HOST, ZOOKEEPER, ClusterFolder, ClusterMember

LISTENS = "0A"
"""The state of a listening socket in the system's tables."""
COMMAND_LENGTH = 120


@dataclass(frozen=True)
class PortHolder:
    """A process that listens on a port."""

    pid: int | None
    """None if the process belongs to another user, because the system hides its id."""
    command: tuple[str, ...]
    folder: str
    """The working directory; empty if unknown."""

    def __str__(self) -> str:
        if self.pid is None:
            return "a process of another user"
        return f"process {self.pid} ({' '.join(self.command)[:COMMAND_LENGTH]})"

    def runs(self, config: Path) -> bool:
        """Whether its command line has ``--config`` with this file."""
        for flag, value in zip(self.command, self.command[1:], strict=False):
            if flag == "--config" and (Path(self.folder) / value).resolve() == config.resolve():
                return True
        return False


class ListeningSocket(NamedTuple):
    """A row of the system's table of sockets."""

    address: str
    port: int
    inode: str


class ConfiguredPort(NamedTuple):
    """A port that a process of a local cluster listens on; `key` is its setting."""

    address: str
    port: int
    key: str


def holder_of(address: str, port: int, listening: Sequence[ListeningSocket] | None = None) -> PortHolder | None:
    """The process that listens on this port of an address or of all addresses; None if there is none or the system does not report it.

    Args:
        listening: the result of `listening_sockets`, to read the system's table once for several ports.
    """
    sockets = listening_sockets() if listening is None else listening
    inodes = {socket.inode for socket in sockets if socket.port == port and socket.address in (address, "0.0.0.0", "::")}
    if not inodes:
        return None
    links = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and _holds(process, links):
            return _describe(process)
    return PortHolder(None, (), "")


def port_conflict(folder: ClusterFolder, member: ClusterMember, listening: Sequence[ListeningSocket] | None = None) -> str | None:
    """The reason why a process of a local cluster cannot listen, in one line with the remedy; None if its ports are free."""
    config = folder.config_of(member)
    for address, port, key in _places(folder, member):
        holder = holder_of(address, port, listening) if port else None
        if holder is None:
            continue
        if holder.runs(config):
            return (
                f"{member.name} did not start: it runs already as process {holder.pid}, which this `triplicate up` has not started; "
                f"end it (kill {holder.pid}), then try again"
            )
        return (
            f"{member.name} did not start: {place_of(address, port)} is held by {holder}; end that one, or choose another {key} in {config}"
        )
    return None


def _places(folder: ClusterFolder, member: ClusterMember) -> list[ConfiguredPort]:
    """The ports in a process's settings file."""
    if member.kind == ZOOKEEPER:
        return [ConfiguredPort(HOST, member.port, "clientPort")]
    tables = tomllib.loads(folder.config_of(member).read_text(encoding="utf-8"))
    own, process = tables.get(member.kind, {}), tables.get("process", {})
    return [
        ConfiguredPort(str(own.get("host", HOST)), int(own.get("port", 0)), f"{member.kind}.port"),
        ConfiguredPort(str(process.get("metrics_host", HOST)), int(process.get("metrics_port", 0)), "process.metrics_port"),
    ]


def listening_sockets() -> list[ListeningSocket]:
    """All listening TCP sockets of this machine."""
    return list(_read_tables())


def _read_tables() -> Iterator[ListeningSocket]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue  # Not Linux, or no IPv6.
        for line in lines:
            fields = line.split()
            if fields[3] == LISTENS:
                address, _, port = fields[1].partition(":")
                yield ListeningSocket(_address(address), int(port, 16), fields[9])


def _address(text: str) -> str:
    """Decode an address of the system's table: 32-bit words in hexadecimal, each in the machine's byte order."""
    words = [int(text[place : place + 8], 16) for place in range(0, len(text), 8)]
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, struct.pack(f"={len(words)}I", *words))


def _holds(process: Path, links: set[str]) -> bool:
    try:
        descriptors = list((process / "fd").iterdir())
    except OSError:
        return False  # The process belongs to another user, or has ended.
    return any(_link(descriptor) in links for descriptor in descriptors)


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _describe(process: Path) -> PortHolder:
    try:
        command = (process / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        command = []
    return PortHolder(int(process.name), tuple(os.fsdecode(word) for word in command), _link(process / "cwd"))
