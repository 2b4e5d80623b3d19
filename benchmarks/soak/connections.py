"""The TCP connections of processes on this machine, from the tables in /proc. Only IPv4, which the soak uses."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

ESTABLISHED, LISTENING = "01", "0A"
TABLE = "/proc/net/tcp"

Address = str
"""Address and port as the table shows them, in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class TcpTable:
    """The sockets of this machine at one time.

    Args:
        remote: the other end of each established connection, by inode of the socket.
        servers: the addresses at which a process listens.
    """

    remote: Mapping[int, Address] = field(default_factory=dict)
    servers: Collection[Address] = frozenset()


@dataclass(frozen=True, slots=True)
class Descriptors:
    """The open descriptors of a process.

    Args:
        all: their number.
        connections: established TCP connections among them.
        most_to_one: the greatest number of connections that the process has opened to one server.
        again: descriptors of files that the process has open already.
        most_of_one: the greatest number of descriptors of one file.
    """

    all: int
    connections: int = 0
    most_to_one: int = 0
    again: int = 0
    most_of_one: int = 0

    @property
    def others(self) -> int:
        """Descriptors that are neither connections nor a further one of a file."""
        return self.all - self.connections - self.again


def parse_tcp(text: str) -> TcpTable:
    """The contents of /proc/net/tcp."""
    rows = [line.split() for line in text.splitlines()[1:]]
    rows = [row for row in rows if len(row) > 9]
    return TcpTable(
        {int(row[9]): row[2] for row in rows if row[3] == ESTABLISHED},
        frozenset(row[1] for row in rows if row[3] == LISTENING),
    )


def read_tcp() -> TcpTable:
    """The sockets now; none where there is no table."""
    with contextlib.suppress(OSError), open(TABLE) as file:
        return parse_tcp(file.read())
    return TcpTable()


def count(targets: Collection[str], table: TcpTable) -> Descriptors:
    """Count descriptors by the targets of their links. A socket that its other end has closed is no connection."""
    inodes = [int(target[len("socket:[") : -1]) for target in targets if target.startswith("socket:[")]
    remotes = [table.remote[inode] for inode in inodes if inode in table.remote]
    to_servers = Counter(remote for remote in remotes if remote in table.servers)
    of_files = Counter(target for target in targets if target.startswith("/") and not target.startswith("/dev/"))
    return Descriptors(
        len(targets),
        len(remotes),
        max(to_servers.values(), default=0),
        of_files.total() - len(of_files),
        max(of_files.values(), default=0),
    )


def targets_of(pid: int) -> list[str]:
    """The target of each open descriptor; none if the process has ended. One that is closed meanwhile is left out."""
    found = []
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"{folder}/{name}"))
    return found
