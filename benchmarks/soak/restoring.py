"""Restores lost copies during a soak run, and checks every ledger at its end.

After a bookie is gone for good, the auto-recovery in the other bookies makes its copies again by itself. A bookie that leaves is
decommissioned by the command.

At the end the entry lists of all ledgers are compared with the metadata: an entry that was acknowledged by two of three bookies may lack
its third copy without any lost bookie. Such ledgers are marked, and auto-recovery repairs them as well.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from benchmarks.ledger.processes import CaseFailed
from benchmarks.soak.soaked_cluster import SoakedCluster
from benchmarks.soak.verdicts import CheckedLedger
from triplicate.autorecovery import LedgerChecker, LedgerCopies, mark_copies
from triplicate.client import Client, connect
from triplicate.errors import BookieError, NoSuchLedger, NoSuchLog
from triplicate.log import Logs

AGAIN_S = 2.0
RESTORE_LIMIT_S = 180.0
ANSWER_LIMIT_S = 10.0
ROUNDS_MAX = 6
MB = 1_000_000


@dataclass
class Restored:
    """The figures of the restorations so far."""

    size_bytes: int = 0
    entries: int = 0
    passes: int = 0
    seconds: list[float] = field(default_factory=list)
    """Time of each restoration, from its begin to the pass that repaired everything."""
    refusals: list[str] = field(default_factory=list)
    """The last answer of each command that had to be repeated."""
    failures: list[str] = field(default_factory=list)
    """Restorations that did not end in time, with the last answer."""

    def count(self, facts: dict[str, Any]) -> None:
        """Add the JSON of a command: the totals of a decommission."""
        self.size_bytes += facts["size_bytes"]
        self.entries += facts["entries"]


class Restorer:
    """Restores the copies of one bookie after the other, in a thread."""

    def __init__(self, cluster: SoakedCluster) -> None:
        self._cluster = cluster
        self._thread: threading.Thread | None = None
        self.restored = Restored()

    def await_healed(self, bookie_id: str) -> None:
        """Begin to wait until auto-recovery has replaced a lost bookie in all ledgers."""
        self._thread = threading.Thread(target=self._watch, args=(bookie_id,), name=f"watch of {bookie_id}", daemon=True)
        self._thread.start()

    def _watch(self, bookie_id: str) -> None:
        began = time.monotonic()
        left: list[int] = []
        while time.monotonic() < began + RESTORE_LIMIT_S:
            left = asyncio.run(ledgers_with(self._cluster.uri, bookie_id))
            if not left:
                self.restored.seconds.append(time.monotonic() - began)
                return
            time.sleep(AGAIN_S)
        self.restored.failures.append(f"after {RESTORE_LIMIT_S:.0f} s {bookie_id} is not replaced in ledgers {left}")

    def restore(self, bookie_id: str, *command: str) -> None:
        """Begin to run a command about a bookie that leaves, until its exit code is 0."""
        self._thread = threading.Thread(
            target=self._run, args=(bookie_id, [*command, bookie_id]), name=f"restoration of {bookie_id}", daemon=True
        )
        self._thread.start()

    @property
    def is_busy(self) -> bool:
        """Whether a restoration is in progress."""
        return self._thread is not None and self._thread.is_alive()

    def _run(self, bookie_id: str, command: list[str]) -> None:
        began = time.monotonic()
        answer = ""
        while time.monotonic() < began + RESTORE_LIMIT_S:
            try:
                self.run_command(*command)
            except CaseFailed as error:
                answer = str(error)
                time.sleep(AGAIN_S)
            else:
                self.restored.seconds.append(time.monotonic() - began)
                if answer:
                    self.restored.refusals.append(answer)
                return
        self.restored.failures.append(f"{' '.join(command)} did not succeed within {RESTORE_LIMIT_S:.0f} s: {answer}")

    def run_command(self, *command: str) -> None:
        """Run a command that makes copies, once.

        Raises:
            CaseFailed: a ledger was not repaired.
        """
        self.restored.passes += 1
        self.restored.count(json.loads(self._cluster.command(*command, "--json")))


@dataclass(frozen=True, slots=True)
class FinalState:
    """The ledgers and logs after the last repair."""

    ledgers: list[CheckedLedger]
    marked: list[int]
    reduced: list[str]
    records: dict[str, list[tuple[int, int]]]
    """Of each log, offset and number of each record."""


async def ledgers_with(uri: str, bookie_id: str) -> list[int]:
    """The ledgers that name a bookie."""
    async with connect(uri, name="soak") as client:
        found = []
        for ledger_id in [ledger_id async for ledger_id in client.ledger_ids()]:
            try:
                metadata = await client.metadata_of(ledger_id)
            except NoSuchLedger:
                continue  # Deleted meanwhile.
            if any(bookie_id in segment.ensemble for segment in metadata.segments):
                found.append(ledger_id)
        return found


async def marked_ledgers(client: Client) -> list[int]:
    """The ledgers that are marked as under-replicated."""
    return [mark.ledger_id async for mark in client.metadata.under_replication.marks()]


async def await_unmarked(uri: str, limit_s: float) -> list[int]:
    """Wait until no ledger is marked, within a limit. Returns those that still are."""
    deadline = time.monotonic() + limit_s
    async with connect(uri, name="soak") as client:
        while True:
            marked = await marked_ledgers(client)
            if not marked or time.monotonic() > deadline:
                return marked
            await asyncio.sleep(AGAIN_S)


async def raise_copies(uri: str) -> None:
    """Rewrite the segments of all logs that were created with fewer copies."""
    async with connect(uri, name="soak") as client:
        logs = Logs(client)
        for name in await logs.names():
            head = await logs.head(name)
            await logs.acting_for(head.purpose).raise_copies(name)


async def lacking_ledgers(uri: str) -> list[int]:
    """Compare the entry lists of all ledgers with the metadata, and mark those that lack copies. Returns them."""
    async with connect(uri, name="soak") as client:
        lacking = []
        for ledger_id in [ledger_id async for ledger_id in client.ledger_ids()]:
            try:
                copies = await LedgerChecker(client, ledger_id, ANSWER_LIMIT_S).check()
                if not copies.is_complete:
                    await mark_copies(client, copies)
                    lacking.append(ledger_id)
            except NoSuchLedger:
                continue  # Deleted meanwhile.
        return lacking


async def check_ledgers(client: Client) -> list[CheckedLedger]:
    """Read every copy of every ledger."""
    checked = []
    for ledger_id in [ledger_id async for ledger_id in client.ledger_ids()]:
        try:
            metadata = await client.metadata_of(ledger_id)
            copies = await LedgerChecker(client, ledger_id, ANSWER_LIMIT_S, read=True).check()
        except NoSuchLedger:
            continue
        except BookieError as error:
            checked.append(CheckedLedger(ledger_id, (str(error),), metadata.write_quorum, ()))
            continue
        segments = tuple(segment.ensemble for segment in metadata.segments)
        checked.append(CheckedLedger(ledger_id, problems_of(copies), metadata.write_quorum, segments))
    return checked


def problems_of(copies: LedgerCopies) -> tuple[str, ...]:
    """Missing, damaged and unknown copies, by bookie."""
    return tuple(
        f"{one.bookie_id} lacks {one.lacks} copies, {len(one.bad)} are damaged {one.silence}".rstrip()
        for one in copies.bookies
        if one.needs_repair or (one.silence and one.expected)
    )


async def reduced_segments(logs: Logs) -> list[str]:
    """Segments with fewer copies than their log asks for."""
    found = []
    for name in await logs.names():
        try:
            segments = await logs.segments(name)
        except NoSuchLog:
            continue
        found += [f"ledger {segment.ledger_id} of log {name}" for segment in segments if segment.reduced is not None]
    return found
