"""Our side: bookies as `triplicate bookie` starts them, our client; and the bare loop that is their floor."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.ledger.processes import ROOT, START_LIMIT_S, CaseFailed, Process, Side
from triplicate.bookie import memory_limits
from triplicate.config import BookieSettings, ClientSettings

MIB = 1 << 20
WINDOW: dict[str, object] = {"window_entries": 200_000, "window_bytes": 1 << 30}
"""Wider than any load here: on both sides the load itself limits concurrent appends."""


def bounds_mib() -> float:
    """The sum of a bookie's memory limits for the defaults, as in docs/operations.md."""
    return sum(bound.bytes for bound in memory_limits(BookieSettings())) / MIB


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "triplicate.cli.main", *arguments]


class Ours(Side):
    name = "ours"

    def __init__(self, zookeeper: str, folder: Path, turn: str) -> None:
        super().__init__(zookeeper, folder, turn)
        self.more: dict[str, object] = {}
        """Settings of later bookies, beside the defaults."""
        self.stalling: dict[str, Path] = {}
        """Bookie → the file that stalls its disk."""
        self.metrics_ports: dict[str, int] = {}
        """Metrics addresses of the bookies whose metrics are read."""

    def initialise(self) -> None:
        done = subprocess.run(program("cluster", "init", self.uri), capture_output=True, text=True, timeout=START_LIMIT_S, check=False)
        if done.returncode:
            raise CaseFailed(f"the cluster cannot be made: {done.stderr.strip()}")

    def bookie_command(self, name: str, folder: Path, port: int) -> list[str]:
        options: dict[str, object] = {
            "bookie_id": name,
            "host": "127.0.0.1",
            "port": port,
            "journal_directories": folder / "journal",
            "ledger_directories": folder / "ledgers",
            "metadata": self.uri,
            **self.more,
        }
        if name in self.metrics_ports:
            options["process_metrics_port"] = self.metrics_ports[name]
        command = program("bookie", *[part for key, value in options.items() for part in ("--" + key.replace("_", "-"), str(value))])
        if name in self.stalling:
            return [sys.executable, "-m", "benchmarks.ledger.stalling", str(self.stalling[name]), *command[3:]]
        return command

    def client_command(self) -> list[str]:
        return [sys.executable, "-m", "benchmarks.ledger.our_client"]

    def client_settings(self, *, explicit_lac_ms: int = 0) -> Mapping[str, object]:
        return {**WINDOW, "explicit_lac_interval_s": explicit_lac_ms / 1000}


class Floor(Side):
    """``benchmarks/floor.py``, which supports only appends, with its own load."""

    name = "floor"

    def initialise(self) -> None:
        pass

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, self.bookies_wanted + 1):
            name = f"bookie-{number}"
            command = [sys.executable, "benchmarks/floor.py", "server", str(self.folder / name)]
            process = Process(name, command, self.logs / f"{name}.log", stdout=subprocess.PIPE)
            self.bookies[name] = process
            assert process.popen.stdout is not None
            line = process.popen.stdout.readline()
            if not line:
                raise CaseFailed(f"{name} does not start: {process.last_words()}")
            self.ports[name] = int(line)

    def run(self, size: int, window: int, seconds: float) -> dict[str, float]:
        """The figures of `benchmarks.driving.drive`."""
        ports = ",".join(str(port) for port in self.ports.values())
        command = [sys.executable, "benchmarks/floor.py", "client", ports, str(size), str(window), str(seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=10 * seconds + START_LIMIT_S, check=False)
        if done.returncode:
            raise CaseFailed(f"the floor's client ended with {done.returncode}")
        figures: dict[str, float] = json.loads(done.stdout)
        return figures

    def bookie_command(self, name: str, folder: Path, port: int) -> list[str]:
        raise CaseFailed("the floor has no storage to start on")

    def client_command(self) -> list[str]:
        raise CaseFailed("the floor has no client that is driven")

    def client_settings(self, *, explicit_lac_ms: int = 0) -> Mapping[str, object]:
        raise CaseFailed("the floor has no client that is driven")


def settings() -> dict[str, Any]:
    """Settings for the report: defaults and deviations."""
    return {"bookie": dataclasses.asdict(BookieSettings()), "client": {**dataclasses.asdict(ClientSettings()), **WINDOW}}
