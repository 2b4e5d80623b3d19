"""Appends per second, latency and CPU per entry: ours and the bare loop, alternately in one run.

Three bookies, each a process with its own fsync, ensemble 3, write quorum 3, ack quorum 2; one client process. Prints a table and
writes ``build/bench/append.json``. The figures depend on machine and moment; only the ratios are comparable between runs.

    append.py [--seconds 2.0] [--rounds 2] [--folder DIR]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from rich.console import Console
from rich.table import Table

import triplicate
from triplicate.bookie import Bookie
from triplicate.config import BookieSettings, ClientSettings
from triplicate.metadata import ClusterMetadata, open_tree
from triplicate.runtime import keep_freed_memory, real_host

if TYPE_CHECKING:
    from benchmarks.driving import drive, run_loop
else:  # If this file runs as a program, its own folder is on the path.
    from driving import drive, run_loop

ROOT = Path(__file__).resolve().parents[1]
BOOKIES = 3
CASES = [(100, 1), (100, 1000), (1024, 1), (1024, 1000)]
START_LIMIT_S = 30.0


@dataclass
class Side:
    """One of the two compared sides: its server processes and the command that drives them."""

    name: str
    servers: list[subprocess.Popen[str]]
    client: list[str]


async def serve_bookie(uri: str, folder: str, bookie_id: str) -> None:
    keep_freed_memory()
    host = real_host(bookie_id)
    tree = await open_tree(uri, host)
    metadata = await ClusterMetadata.open(tree, host, create=True)
    settings = BookieSettings(
        bookie_id=bookie_id, port=0, journal_directories=(f"{folder}/journal",), ledger_directories=(f"{folder}/ledgers",)
    )
    bookie = await Bookie.start(host, settings, metadata)
    print(bookie.address[1], flush=True)
    await asyncio.Event().wait()


async def append(uri: str, size: int, window: int, seconds: float) -> None:
    settings = ClientSettings(window_entries=window)
    async with triplicate.connect(uri, settings=settings) as client, await client.create() as writer:
        print(json.dumps(await drive(writer.append, size, window, seconds)))


def start(arguments: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT)


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line:
        raise SystemExit(f"a server did not start: {process.args!r}")
    return line


def start_floor(folder: Path) -> Side:
    program = str(Path(__file__).with_name("floor.py"))
    servers = [start([program, "server", str(folder / f"floor-{number}")]) for number in range(BOOKIES)]
    ports = ",".join(first_line(server) for server in servers)
    return Side("floor", servers, [program, "client", ports])


def start_ours(folder: Path) -> Side:
    uri = f"sqlite://{folder}/metadata.db"
    servers = []
    for number in range(BOOKIES):
        servers.append(start([__file__, "--bookie", uri, str(folder / f"bookie-{number}"), f"bookie-{number}"]))
        first_line(servers[-1])
    return Side("ours", servers, [__file__, "--client", uri])


def cpu_seconds(processes: list[subprocess.Popen[str]]) -> float:
    times = [psutil.Process(process.pid).cpu_times() for process in processes]
    return float(sum(t.user + t.system for t in times))


def measure(side: Side, size: int, window: int, seconds: float) -> dict[str, float]:
    before = cpu_seconds(side.servers)
    done = subprocess.run(
        [sys.executable, *side.client, str(size), str(window), str(seconds)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=True,
        timeout=10 * seconds + START_LIMIT_S,
    )
    figures: dict[str, float] = json.loads(done.stdout)
    # The servers' share includes the warm-up, in proportion.
    share = figures["seconds"] / (figures["seconds"] + 0.5)
    servers = (cpu_seconds(side.servers) - before) * share
    figures["cpu_us_per_entry"] = 1e6 * (figures["client_cpu_s"] + servers) / figures["appends"]
    figures["client_cpu_us_per_entry"] = 1e6 * figures["client_cpu_s"] / figures["appends"]
    return figures


def compare(sides: list[Side], seconds: float, rounds: int) -> list[dict[str, Any]]:
    rows = []
    for size, window in CASES:
        runs: dict[str, list[dict[str, float]]] = {side.name: [] for side in sides}
        for _ in range(rounds):
            for side in sides:
                runs[side.name].append(measure(side, size, window, seconds))
        row: dict[str, Any] = {"payload_bytes": size, "window": window}
        for name, measured in runs.items():
            row[name] = {key: statistics.mean(run[key] for run in measured) for key in measured[0]}
        row["ratio"] = row["ours"]["appends_per_s"] / row["floor"]["appends_per_s"]
        rows.append(row)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title="appends: 3 bookies, 3/3/2, fsync", title_justify="left")
    for heading in ("payload", "window", "", "appends/s", "p50 ms", "p99 ms", "CPU us/entry", "client CPU us", "of the floor"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for row in rows:
        for name in ("floor", "ours"):
            figures = row[name]
            table.add_row(
                f"{row['payload_bytes']} B" if name == "floor" else "",
                f"{row['window']}" if name == "floor" else "",
                name,
                f"{figures['appends_per_s']:,.0f}",
                f"{figures['p50_ms']:.2f}",
                f"{figures['p99_ms']:.2f}",
                f"{figures['cpu_us_per_entry']:.1f}",
                f"{figures['client_cpu_us_per_entry']:.1f}",
                f"{row['ratio']:.2f}" if name == "ours" else "",
                end_section=name == "ours",
            )
    Console(width=120).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="measured time of each run")
    parser.add_argument("--rounds", type=int, default=2, help="runs of each side for each case, alternately")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "bench" / "data", help="where the data goes; emptied first")
    parser.add_argument("--bookie", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.bookie:
        run_loop(serve_bookie(*arguments.bookie))
        return
    if arguments.client:
        uri, size, window, seconds = arguments.client
        run_loop(append(uri, int(size), int(window), float(seconds)))
        return
    folder: Path = arguments.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sides: list[Side] = []
    try:
        sides.append(start_floor(folder))
        sides.append(start_ours(folder))
        rows = compare(sides, arguments.seconds, arguments.rounds)
    finally:
        for side in sides:
            for server in side.servers:
                server.terminate()
                server.wait()
        shutil.rmtree(folder, ignore_errors=True)
    show(rows)
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
    target = ROOT / "build" / "bench" / "append.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps({"v": 1, "machine": machine, "cases": rows}, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    print(f"written to {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
