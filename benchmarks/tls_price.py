"""Measure what TLS costs: appends and point reads on the same bookies, with and without it, alternately in one run.

    python -m benchmarks.tls_price [--seconds 3] [--rounds 4] [--folder DIR]

Three bookies, each a process with its own fsync, offer TLS (`bookie.tls = offered`); ensemble 3, write quorum 3, ack quorum 2. Each run of
a client is a process of its own, in clear or over TLS. Prints a table and writes ``build/bench/tls_price.json``.
The figures depend on machine and moment; only the ratios are comparable between runs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

import triplicate
from benchmarks.driving import WARM_UP_S, drive, percentile, run_loop
from triplicate import Client
from triplicate.bookie import Bookie
from triplicate.config import BookieSettings, ClientSettings, SecuritySettings
from triplicate.metadata import open_cluster
from triplicate.runtime import keep_freed_memory, real_host
from triplicate.security import Authority

ROOT = Path(__file__).resolve().parents[1]
BOOKIES = 3
ENTRIES = 2000
"""Entries that point reads choose from."""
HOSTS = ("localhost", "127.0.0.1")
WAYS = ("clear", "tls")
LIMIT_S = 60.0


class Case(NamedTuple):
    """One measured operation: appends with a window of `at_once`, or point reads with as many at a time."""

    operation: str
    payload_bytes: int
    at_once: int


CASES = (
    Case("append", 1024, 1),
    Case("append", 1024, 1000),
    Case("append", 65_536, 100),
    Case("read", 1024, 1),
    Case("read", 1024, 100),
    Case("read", 65_536, 20),
)


def security_in(folder: str) -> SecuritySettings:
    return SecuritySettings(ca_file=f"{folder}/ca.pem", certificate_file=f"{folder}/bookie.pem", key_file=f"{folder}/bookie.key")


def make_certificates(folder: Path) -> None:
    authority = Authority.create("the price of TLS", time.time(), 86_400)
    issued = authority.issue("bookie", HOSTS, time.time(), 86_400)
    (folder / "ca.pem").write_bytes(authority.pem.certificate_pem)
    (folder / "bookie.pem").write_bytes(issued.certificate_pem)
    (folder / "bookie.key").touch(mode=0o600)
    (folder / "bookie.key").write_bytes(issued.key_pem)


async def serve_bookie(folder: str, name: str) -> None:
    keep_freed_memory()
    host = real_host(name)
    metadata = await open_cluster(f"sqlite://{folder}/metadata.db", host, create=True)
    settings = BookieSettings(
        bookie_id=name,
        host="127.0.0.1",
        port=0,
        journal_directories=(f"{folder}/{name}/journal",),
        ledger_directories=(f"{folder}/{name}/ledgers",),
        tls="offered",
    )
    bookie = await Bookie.start(host, settings, metadata, security=security_in(folder))
    print(bookie.address[1], flush=True)
    await asyncio.Event().wait()


async def drive_client(folder: str, way: str, case: Case, seconds: float) -> None:
    settings = ClientSettings(window_entries=max(case.at_once, 1), bookie_tls="required" if way == "tls" else "off")
    security = SecuritySettings(ca_file=f"{folder}/ca.pem")
    async with triplicate.connect(f"sqlite://{folder}/metadata.db", settings=settings, security=security) as client:
        if case.operation == "append":
            async with await client.create() as writer:
                print(json.dumps(await drive(writer.append, case.payload_bytes, case.at_once, seconds)))
        else:
            print(json.dumps(await drive_reads(client, case, seconds)))


async def drive_reads(client: Client, case: Case, seconds: float) -> dict[str, float]:
    """Point reads of random entries, in the form of `drive`."""
    entries = min(ENTRIES, 32 * 1024 * 1024 // case.payload_bytes)
    async with await client.create() as writer:
        for _ in range(entries):
            await writer.append(os.urandom(case.payload_bytes))
    latencies: list[float] = []
    clock = time.perf_counter
    begin_at = clock() + WARM_UP_S
    stop_at = begin_at + seconds
    cpu: list[float] = []

    async with await client.open(writer.ledger_id) as reader:

        async def read() -> None:
            while (begun := clock()) < stop_at:
                entry_id = random.randrange(entries)
                await reader.read(entry_id, entry_id)
                if begun >= begin_at:
                    if not cpu:
                        cpu.append(time.process_time())
                    latencies.append(clock() - begun)

        await asyncio.gather(*(read() for _ in range(case.at_once)))
    used = time.process_time() - cpu[0]
    latencies.sort()
    return {
        "appends": len(latencies),
        "seconds": seconds,
        "appends_per_s": len(latencies) / seconds,
        "p50_ms": 1000 * percentile(latencies, 0.5),
        "p99_ms": 1000 * percentile(latencies, 0.99),
        "client_cpu_s": used,
    }


@contextmanager
def bookies(folder: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """The bookies; all are ended at the end."""
    servers: list[subprocess.Popen[str]] = []
    try:
        for number in range(BOOKIES):
            command = [sys.executable, "-m", "benchmarks.tls_price", "--folder", str(folder), "--bookie", f"bookie-{number}"]
            servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT))
            stdout = servers[-1].stdout
            assert stdout is not None
            if not stdout.readline().strip():
                raise SystemExit("a bookie did not start")
        yield servers
    finally:
        for server in servers:
            server.kill()
            server.wait()
            assert server.stdout is not None
            server.stdout.close()


def cpu_seconds(processes: list[subprocess.Popen[str]]) -> float:
    times = [psutil.Process(process.pid).cpu_times() for process in processes]
    return float(sum(one.user + one.system for one in times))


def measure(folder: Path, servers: list[subprocess.Popen[str]], way: str, case: Case, seconds: float) -> dict[str, float]:
    before = cpu_seconds(servers)
    command = [sys.executable, "-m", "benchmarks.tls_price", "--folder", str(folder), "--client", way, *map(str, case)]
    done = subprocess.run(
        [*command, "--seconds", str(seconds)], stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True, timeout=10 * seconds + LIMIT_S
    )
    figures: dict[str, float] = json.loads(done.stdout)
    figures["client_cpu_us"] = 1e6 * figures["client_cpu_s"] / figures["appends"]
    # With the preparation of the reads, and the warm-up.
    figures["bookies_cpu_us"] = 1e6 * (cpu_seconds(servers) - before) / figures["appends"]
    return figures


def compare(folder: Path, seconds: float, rounds: int) -> list[dict[str, Any]]:
    """One row for each case, the ways in turn; medians of the rounds."""
    rows: list[dict[str, Any]] = []
    with bookies(folder) as servers:
        for case in CASES:
            runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
            for turn in range(rounds):
                for way in WAYS if turn % 2 == 0 else reversed(WAYS):
                    runs[way].append(measure(folder, servers, way, case, seconds))
            row: dict[str, Any] = case._asdict()
            for way, measured in runs.items():
                row[way] = {key: statistics.median(run[key] for run in measured) for key in measured[0]}
            rows.append(row)
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    table = Table(title="the same bookies in clear and over TLS")
    for title in ("operation", "bytes", "at once", "clear/s", "TLS/s", "ratio", "p50 ms", "p99 ms", "client µs", "bookies µs"):
        table.add_column(title, justify="right")
    for row in rows:
        clear, tls = row["clear"], row["tls"]

        def both(name: str, form: str, clear: Mapping[str, float] = clear, tls: Mapping[str, float] = tls) -> str:
            return f"{clear[name]:{form}} → {tls[name]:{form}}"

        table.add_row(
            row["operation"],
            str(row["payload_bytes"]),
            str(row["at_once"]),
            f"{clear['appends_per_s']:,.0f}",
            f"{tls['appends_per_s']:,.0f}",
            f"{tls['appends_per_s'] / clear['appends_per_s']:.2f}",
            both("p50_ms", ".2f"),
            both("p99_ms", ".2f"),
            both("client_cpu_us", ".0f"),
            both("bookies_cpu_us", ".0f"),
        )
    Console(width=140).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--folder")
    parser.add_argument("--bookie", help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.bookie:
        run_loop(serve_bookie(given.folder, given.bookie))
        return
    if given.client:
        way, operation, payload_bytes, at_once = given.client
        run_loop(drive_client(given.folder, way, Case(operation, int(payload_bytes), int(at_once)), given.seconds))
        return
    folder = Path(given.folder or tempfile.mkdtemp(prefix="tls-price-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        make_certificates(folder)
        rows = compare(folder, given.seconds, given.rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(rows)
    target = ROOT / "build" / "bench" / "tls_price.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
