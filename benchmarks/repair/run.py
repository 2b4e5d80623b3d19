"""The time until all copies of a lost bookie are there again, and the latency of appends meanwhile, beside Apache's auto-recovery.

Usage: python -m benchmarks.repair.run [--mib 1024] [--ledgers 300] [--entry-bytes 4096] [--only ours,apache]

Each repairer gets a fresh cluster of four bookies with the same data, written by our client: ledgers of three copies. A paced writer
appends before and during the repair. Then the bookie that most ledgers name is killed and does not come back. The time counts from the
end of its registration, which both sides notice by the same session timeout of ZooKeeper, until no ledger names it. Then the lists of
entries of all bookies are compared with the metadata.

Prints a table and writes build/bench/repair.json and repair.md. Exit code 1: a case failed, a ledger lacks copies, or a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from rich.console import Console

from benchmarks.ledger import machine, theirs
from benchmarks.ledger.processes import BUILD, FAILURES, ROOT, CaseFailed, Driver, Process, Side
from benchmarks.repair.figures import Repair, problems_of, table_of
from benchmarks.repair.repairers import REPAIRERS, Repairer
from triplicate.autorecovery import LedgerChecker
from triplicate.client import Client, connect
from triplicate.ledger import LedgerMetadata

Result = TypeVar("Result")

RATE = 200.0
"""Paced appends per second."""
PACED_BYTES = 1024
BEFORE_S = 20.0
SETTLE_S = 5.0
"""After the load, before the paced appends count."""
POLL_S = 0.25
GONE_LIMIT_S = 60.0
REPAIR_LIMIT_S = 1800.0
COMMAND_LIMIT_S = 600.0
WINDOW = 64
AT_ONCE_ANSWER_S = 30.0
SIZES = {"ensemble_size": 3, "write_quorum": 3, "ack_quorum": 2}


@dataclass(frozen=True, slots=True)
class Load:
    """The data of each cluster."""

    mib: int
    ledgers: int
    entry_bytes: int

    @property
    def entries(self) -> int:
        """Entries of each ledger."""
        return max(1, self.mib * machine.MIB // self.ledgers // self.entry_bytes)


def measure(repairer: Repairer, zookeeper: str, load: Load, console: Console) -> Repair:
    """One repair on a fresh cluster.

    Raises:
        CaseFailed: a process failed, or the copies are not there in time.
    """
    side = repairer.side(zookeeper, f"repair-{repairer.name}")
    with contextlib.ExitStack() as ending:
        ending.callback(side.stop)
        side.start()
        writer, ledgers = _fill(side, load)
        daemon = repairer.start(side)
        ending.callback(daemon.kill)
        paced = _begin_paced(writer)
        time.sleep(SETTLE_S)
        _latencies(writer, paced)
        time.sleep(BEFORE_S)
        before = _latencies(writer, paced)
        lost = _run(side, lambda client: _most_named(client, ledgers))
        console.print(f"{repairer.name}: {lost.bookie_id} is killed; {len(lost.ledgers)} ledgers name it", highlight=False)
        killed_s = time.monotonic()
        side.bookies[lost.bookie_id].kill()
        _run(side, lambda client: _await_gone(client, lost.bookie_id))
        gone_s = time.monotonic()
        _latencies(writer, paced)
        cpu_s = _run(side, lambda client: _await_repaired(client, lost, daemon))
        repaired_s = time.monotonic() - gone_s
        meanwhile = _latencies(writer, paced)
        writer.ask("rest", limit_s=COMMAND_LIMIT_S, ledger=paced)
        incomplete = _run(side, lambda client: _incomplete(client, ledgers))
        return Repair(
            repairer.name,
            repairer.settings,
            len(lost.ledgers),
            lost.size_bytes,
            gone_s - killed_s,
            repaired_s,
            cpu_s,
            before,
            meanwhile,
            incomplete,
        )


def _fill(side: Side, load: Load) -> tuple[Driver, list[int]]:
    writer = side.client("writer")
    ledgers: list[int] = writer.ask("create", limit_s=COMMAND_LIMIT_S, count=load.ledgers, **SIZES)["ledgers"]
    writer.ask("append_count", limit_s=COMMAND_LIMIT_S, ledgers=ledgers, size=load.entry_bytes, count=load.entries, window=WINDOW)
    writer.ask("close", limit_s=COMMAND_LIMIT_S)
    return writer, ledgers


def _begin_paced(writer: Driver) -> int:
    (ledger_id,) = writer.ask("create", limit_s=COMMAND_LIMIT_S, count=1, **SIZES)["ledgers"]
    writer.ask("pace", limit_s=COMMAND_LIMIT_S, ledger=ledger_id, size=PACED_BYTES, rate=RATE)
    return int(ledger_id)


def _latencies(writer: Driver, ledger_id: int) -> list[int]:
    latencies: list[int] = writer.ask("latencies", limit_s=COMMAND_LIMIT_S, ledger=ledger_id)["latencies_ns"]
    return latencies


def _run(side: Side, work: Callable[[Client], Awaitable[Result]]) -> Result:
    async def body() -> Result:
        async with connect(side.uri, name="repair") as client:
            return await work(client)

    return asyncio.run(body())


@dataclass(frozen=True, slots=True)
class LostBookie:
    """The bookie to lose.

    Args:
        ledgers: the ledgers that name it.
        size_bytes: payload bytes of its copies.
    """

    bookie_id: str
    ledgers: tuple[int, ...]
    size_bytes: int


def lost_bookie(ledgers: dict[int, LedgerMetadata]) -> LostBookie:
    """The bookie that most closed ledgers of one segment name; by name among equal ones."""
    named = Counter(bookie_id for metadata in ledgers.values() for bookie_id in metadata.last_segment.ensemble)
    bookie_id = min(named, key=lambda name: (-named[name], name))
    own = {ledger_id: metadata for ledger_id, metadata in ledgers.items() if bookie_id in metadata.last_segment.ensemble}
    return LostBookie(bookie_id, tuple(sorted(own)), sum(metadata.length for metadata in own.values()))


async def _most_named(client: Client, ledgers: list[int]) -> LostBookie:
    return lost_bookie({ledger_id: await client.metadata_of(ledger_id) for ledger_id in ledgers})


async def _await_gone(client: Client, bookie_id: str) -> None:
    deadline = time.monotonic() + GONE_LIMIT_S
    while bookie_id in await client.metadata.bookies.writable():
        if time.monotonic() > deadline:
            raise CaseFailed(f"{bookie_id} is still registered after {GONE_LIMIT_S:.0f} s")
        await asyncio.sleep(POLL_S)


async def _await_repaired(client: Client, lost: LostBookie, running: Process) -> float:
    """Wait until no ledger names the bookie. Returns the processor time of the repairing process since the call."""
    deadline = time.monotonic() + REPAIR_LIMIT_S
    began_cpu_s = cpu_s = _cpu_s(running, 0.0)
    left = list(lost.ledgers)
    while True:
        # The ledgers are repaired in about this order: the first that still names the bookie ends the look.
        while left and not await _names(client, left[-1], lost.bookie_id):
            left.pop()
        if not left:
            return cpu_s - began_cpu_s
        if time.monotonic() > deadline:
            raise CaseFailed(f"after {REPAIR_LIMIT_S:.0f} s ledger {left[-1]} still names {lost.bookie_id}: {running.last_words()}")
        cpu_s = _cpu_s(running, cpu_s)
        await asyncio.sleep(POLL_S)


def _cpu_s(process: Process, known_s: float) -> float:
    try:
        return machine.cpu_seconds({process.name: process.pid})
    except CaseFailed:
        return known_s  # It has ended since the last sample.


async def _names(client: Client, ledger_id: int, bookie_id: str) -> bool:
    metadata = await client.metadata_of(ledger_id)
    return any(bookie_id in segment.ensemble for segment in metadata.segments)


async def _incomplete(client: Client, ledgers: list[int]) -> int:
    """Ledgers that lack copies."""
    found = 0
    for ledger_id in ledgers:
        copies = await LedgerChecker(client, ledger_id, AT_ONCE_ANSWER_S).check()
        found += not copies.is_complete
    return found


def facts_of(repairs: list[Repair], load: Load, failures: dict[str, str]) -> dict[str, Any]:
    """The contents of repair.json."""
    return {
        "v": 1,
        "commit": machine.commit(ROOT),
        "machine": machine.facts(),
        "load": {**dataclasses.asdict(load), "entries": load.entries, "appends_per_s": RATE, **SIZES},
        "apache": theirs.RELEASE,
        "failures": failures,
        "repairs": [
            {
                "repairer": one.repairer,
                "settings": one.settings,
                "ledgers": one.ledgers,
                "size_bytes": one.size_bytes,
                "noticed_s": one.noticed_s,
                "repaired_s": one.repaired_s,
                "mb_per_s": one.mb_per_s,
                "cpu_s": one.cpu_s,
                "before": one.before,
                "meanwhile": one.meanwhile,
                "p99_ratio": one.p99_ratio,
                "incomplete": one.incomplete,
            }
            for one in repairs
        ],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024, help="payload of all ledgers, each stored three times")
    parser.add_argument("--ledgers", type=int, default=300, help="number of ledgers")
    parser.add_argument("--entry-bytes", type=int, default=4096, help="payload of each entry")
    parser.add_argument("--only", default="", help=f"some of {','.join(one.name for one in REPAIRERS)}")
    chosen = parser.parse_args()
    names = [name for name in chosen.only.split(",") if name] or [one.name for one in REPAIRERS]
    load = Load(chosen.mib, chosen.ledgers, chosen.entry_bytes)
    console = Console(width=140)
    theirs.install()
    folder = BUILD / "repair-zookeeper"
    shutil.rmtree(folder, ignore_errors=True)
    zookeeper = theirs.ZooKeeper(folder)
    repairs: list[Repair] = []
    failures: dict[str, str] = {}
    try:
        address = zookeeper.wait()
        for repairer in REPAIRERS:
            if repairer.name not in names:
                continue
            try:
                repairs.append(measure(repairer, address, load, console))
            except FAILURES as error:
                failures[repairer.name] = str(error)
    finally:
        zookeeper.kill()
        shutil.rmtree(folder, ignore_errors=True)
    problems = [*problems_of(repairs), *(f"{name} failed: {reason}" for name, reason in failures.items())]
    table = table_of(repairs)
    (BUILD / "repair.json").write_text(json.dumps(facts_of(repairs, load, failures), indent=2) + "\n")
    (BUILD / "repair.md").write_text(table)
    for line in (table, *problems):
        console.print(line, highlight=False, soft_wrap=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
