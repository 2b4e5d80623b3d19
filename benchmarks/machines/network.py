"""Machines as network namespaces on one bridge, so that one of them can be cut off.

Needs the rights of root, or of a user namespace. Everything is made within a network and a mount namespace of the benchmark's own
(`inside_own_network`), and is gone with its processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

INSIDE = "TRIPLICATE_BENCH_NETWORK"
"""Variable of the environment that is set within the benchmark's own namespaces."""
_FOLDER = Path("/run/netns")
_BRIDGE = "machines"
_PREFIX = "10.77.0"
_NOBODY = "02:00:00:00:00:01"
"""A hardware address that no machine has: what is sent to it is lost without notice."""


def inside_own_network(module: str, arguments: Sequence[str]) -> bool:
    """Whether this process is within namespaces of its own. If they can be made, this process is replaced by one that is.

    Args:
        module, arguments: of the process that takes this one's place.
    """
    if os.environ.get(INSIDE):
        return True
    unshare = ["unshare", "--net", "--mount", "--propagation", "private"]
    if os.getuid() != 0:
        unshare += ["--user", "--map-root-user"]
    if _can_run(unshare):
        os.execvpe(unshare[0], [*unshare, sys.executable, "-m", module, *arguments], {**os.environ, INSIDE: "1"})
    return False


def _can_run(unshare: Sequence[str]) -> bool:
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    return subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0


class Network:
    """The network of some machines. The process is within namespaces of its own."""

    def __init__(self, machines: int) -> None:
        self._numbers = range(1, machines + 1)
        _FOLDER.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", str(_FOLDER)], check=True)
        _ip("link", "set", "lo", "up")
        _ip("link", "add", _BRIDGE, "type", "bridge")
        _ip("addr", "add", f"{_PREFIX}.1/24", "dev", _BRIDGE)
        _ip("link", "set", _BRIDGE, "up")
        for number in self._numbers:
            name = self._name(number)
            _ip("netns", "add", name)
            _ip("link", "add", self._port(number), "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "eth0", "up")
            _ip("link", "set", self._port(number), "up")
            self.join(number)

    def address(self, number: int) -> str:
        return f"{_PREFIX}.{10 + number}"

    def command(self, number: int, command: Sequence[str]) -> list[str]:
        """A command as it is run on a machine. The process keeps its id."""
        return ["ip", "netns", "exec", self._name(number), *command]

    def cut(self, number: int) -> None:
        """Cut a machine off: nothing goes to it or from it, and no connection is reset."""
        _ip("link", "set", self._port(number), "nomaster")

    def join(self, number: int) -> None:
        """Connect a machine again."""
        _ip("link", "set", self._port(number), "master", _BRIDGE)

    def part(self, number: int) -> None:
        """Cut a machine off from the other machines only: clients outside of the machines still reach all of them."""
        for one, other in self._pairs(number):
            _ip("-n", self._name(one), "neigh", "replace", self.address(other), "lladdr", _NOBODY, "dev", "eth0", "nud", "permanent")

    def reunite(self, number: int) -> None:
        """Undo `part`."""
        for one, other in self._pairs(number):
            _ip("-n", self._name(one), "neigh", "del", self.address(other), "dev", "eth0")

    def _pairs(self, number: int) -> Iterator[tuple[int, int]]:
        """The machine and each other one, in both directions."""
        for other in self._numbers:
            if other != number:
                yield number, other
                yield other, number

    @staticmethod
    def _name(number: int) -> str:
        return f"machine-{number}"

    @staticmethod
    def _port(number: int) -> str:
        return f"port-{number}"


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)
