"""The compared sides: four bookies and the program that makes the copies of a lost one again. Our client loads both."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from benchmarks.ledger.ours import WINDOW, Ours, program
from benchmarks.ledger.processes import BUILD, Process, Side, free_port
from benchmarks.ledger.theirs import SHARED_SETTINGS, Shipped, java_command, write_settings

LOAD = [sys.executable, "-m", "benchmarks.repair.paced_load"]
AUTORECOVERY = "org.apache.bookkeeper.replication.AutoRecoveryMain"
BOOKIES = 4


class Repairer(ABC):
    """The program of one side that repairs, in a process of its own."""

    name: str
    settings: str
    """Settings that differ from the defaults, for the report."""

    @abstractmethod
    def side(self, zookeeper: str, turn: str) -> Side:
        """The side's bookies, not yet started."""

    @abstractmethod
    def start(self, side: Side) -> Process:
        """Start the daemon: an auditor, which notices the end of the registration by itself, and workers."""


class OurBookies(Ours):
    bookies_wanted = BOOKIES

    def client_command(self) -> list[str]:
        return LOAD


class TheirBookies(Shipped):
    """Apache's bookies with default settings. Our client loads them over version 2 of the protocol."""

    bookies_wanted = BOOKIES

    def bookie_command(self, name: str, folder: Path, port: int) -> list[str]:
        command = super().bookie_command(name, folder, port)
        path = folder / "bookie.conf"
        path.write_text(f"{path.read_text()}bookieId={name}\n")
        return command

    def client_command(self) -> list[str]:
        return LOAD

    def client_settings(self, *, explicit_lac_ms: int = 0) -> Mapping[str, object]:
        return WINDOW


class OurAutoRecovery(Repairer):
    """``triplicate autorecovery`` in a process of its own.

    Args:
        options: beside the delay before a lost bookie is audited, which is 0 as on the other side.
    """

    def __init__(self, name: str, *options: str) -> None:
        self.name = name
        self._options = ["--autorecovery-lost-bookie-delay-s", "0", *options]
        self.settings = " ".join(self._options)

    def side(self, zookeeper: str, turn: str) -> Side:
        return OurBookies(zookeeper, BUILD / turn, turn)

    def start(self, side: Side) -> Process:
        return Process("autorecovery", program("autorecovery", "--metadata", side.uri, *self._options), side.logs / "autorecovery.log")


class TheirAutoRecovery(Repairer):
    """Apache's auditor and replication worker in a process of their own."""

    name = "apache"
    settings = "lostBookieRecoveryDelay=0 (the default); no limit of the rate (the default)"

    def side(self, zookeeper: str, turn: str) -> Side:
        return TheirBookies(zookeeper, BUILD / turn, turn)

    def start(self, side: Side) -> Process:
        path = side.folder / "autorecovery.conf"
        write_settings(path, {**SHARED_SETTINGS, "metadataServiceUri": side.uri, "bookiePort": free_port(), "lostBookieRecoveryDelay": 0})
        return Process("autorecovery", [*java_command("-Xmx512m"), AUTORECOVERY, "--conf", str(path)], side.logs / "autorecovery.log")


REPAIRERS: tuple[Repairer, ...] = (
    OurAutoRecovery("ours"),
    OurAutoRecovery("ours_unlimited", "--autorecovery-bytes-per-s", "0", "--autorecovery-busy-share", "1"),
    TheirAutoRecovery(),
)
