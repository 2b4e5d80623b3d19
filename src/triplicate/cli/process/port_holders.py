"""Finds the process that listens on a port of this machine, as far as the system reports it."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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


def reason_of(error: OSError, address: str, port: int) -> str:
    """Why an address cannot be opened: the process that holds it, which may be the same server, started before; or the system's words."""
    holder = holder_of(address, port) if error.errno == errno.EADDRINUSE else None
    return f"held by {holder}" if holder is not None else str(error.strerror)


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
