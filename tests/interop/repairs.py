"""Auto-recovery of either implementation on one cluster: auditors, replication workers, ledgers that lose a bookie, and their copies.

`OURS` and `APACHE` name an implementation. Auditors and workers of Apache's run in drivers; ours run on the loop of our clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from kazoo.exceptions import NoNodeError

from tests.interop.bookies import APACHE_SETTINGS, ApacheBookie, BookieProcess, OurBookie, free_port
from tests.interop.driver import JavaClient, payload
from tests.interop.scenes import later, read_by_us, restart
from tests.interop.sides import JavaWriting, OurWriting, Writing
from tests.interop.stand import Stand, our_settings
from tests.waiting import wait_until
from triplicate import Client, DigestType
from triplicate.autorecovery import (
    Auditor,
    AuditorMetrics,
    CopyPace,
    LedgerAudits,
    LedgerChecker,
    ReplicationLoop,
    ReplicationWorker,
)
from triplicate.config import AutorecoverySettings
from triplicate.ledger import EntryCodec, LedgerMetadata
from triplicate.runtime import first_of, shielded

OURS = "ours"
APACHE = "apache"
SIDES = (OURS, APACHE)
KINDS: dict[str, type[BookieProcess]] = {OURS: OurBookie, APACHE: ApacheBookie}

PASSWORD = b"pass \xff word"
SIZE = 200
ENTRIES = 12
LIMIT_S = 60.0
RUN_LIMIT_S = 600.0
"""Longer than any test: the limit of work that a test stops."""
ANSWER_S = 20.0
"""Longest wait of a check for one answer of a bookie."""
GRACE_S = 30.0
"""Grace period of open ledgers, longer than a test of a living writer takes."""

OUR_AUDITOR = "our-auditor"
OUR_WORKER = "our-worker"

APACHE_DAEMON: dict[str, object] = {
    **APACHE_SETTINGS,
    "lostBookieRecoveryDelay": 0,
    "auditorPeriodicCheckInterval": 0,
    "rwRereplicateBackoffMs": 200,
}
"""Apache's auditor and worker without pauses. The check of all ledgers is off; that of lost bookies is not periodic."""


@dataclass(frozen=True)
class StoredLedger:
    """A closed ledger of a test, with the entries ``payload(ledger_id, index, SIZE)``."""

    ledger_id: int
    digest_type: DigestType
    entries: int

    def payloads(self) -> list[bytes]:
        return [payload(self.ledger_id, index, SIZE) for index in range(self.entries)]


def append(writer: Writing, first: int, count: int) -> None:
    """Append the entries of a `StoredLedger` in one burst."""
    assert writer.append_many(count, first=first, size=SIZE, seed=writer.ledger_id) == list(range(first, first + count))


class RepairStand:
    """A cluster of two bookies of each kind, in which the ledgers of three bookies lose one of them."""

    def __init__(self, stand: Stand, name: str) -> None:
        self.stand = stand
        self.cluster = stand.new_cluster(name, 2, 2)
        # A bookie that was killed and restarted is chosen again at once.
        self.client: Client = stand.new_client(self.cluster, our_settings("v2", suspect_s=0.0, lost_bookie_limit_s=0.0))
        self.metadata = self.client.metadata
        stand.run(self.metadata.under_replication.set_lost_bookie_recovery_delay_s(0))

    def victim(self, kind: str) -> BookieProcess:
        """A bookie of this implementation."""
        return next(bookie for bookie in self.cluster.bookies if isinstance(bookie, KINDS[kind]))

    def java(self, release: str) -> JavaClient:
        return self.stand.java_client(release, self.cluster, "v3")

    def writer(
        self, client: str, release: str, on: BookieProcess, digest_type: DigestType = DigestType.CRC32C, write_quorum: int = 3
    ) -> Writing:
        """A writer of `client` (`OURS` or `APACHE`) whose ledger is on the given bookie and on two others."""

        def make() -> Writing:
            if client == APACHE:
                java = self.java(release)
                return JavaWriting(java.create(write_quorum=write_quorum, digest_type=digest_type, password=PASSWORD))
            creating = self.client.create(
                ensemble_size=3, write_quorum=write_quorum, ack_quorum=2, digest_type=digest_type, password=PASSWORD
            )
            return OurWriting(self.stand, self.stand.run(creating))

        chosen: list[Writing] = []

        def make_on_bookie() -> bool:
            """One ledger in four is on other bookies; a client learns of a restarted bookie a moment later."""
            writer = make()
            if self.names(writer.ledger_id, on.bookie_id):
                chosen.append(writer)
                return True
            writer.close()
            self.stand.run(self.client.delete(writer.ledger_id))
            return False

        wait_until(make_on_bookie, LIMIT_S, f"a ledger is on {on.bookie_id}")
        return chosen[0]

    def write(self, client: str, release: str, on: BookieProcess, digest_type: DigestType, write_quorum: int = 3) -> StoredLedger:
        """A closed ledger of `client`, on the given bookie and on two others."""
        writer = self.writer(client, release, on, digest_type, write_quorum)
        append(writer, 0, ENTRIES)
        writer.close()
        return StoredLedger(writer.ledger_id, digest_type, ENTRIES)

    def lose(self, bookie: BookieProcess) -> None:
        """SIGKILL, and the end of its session, which the server would notice some seconds later."""
        bookie.kill()
        with self.stand.kazoo() as client, suppress(NoNodeError):
            client.delete(f"/{self.cluster.name}/ledgers/available/{bookie.bookie_id}")

    def auditor(self) -> str | None:
        """The name of the elected auditor."""
        return self.stand.run(self.metadata.auditor.current())

    def candidates(self) -> int:
        """Number of votes for the auditor."""
        return len(self.stand.run(self.metadata.auditor.candidates()))

    def worker(self, ledger_id: int) -> str | None:
        """The name of the worker that has locked a ledger."""
        return self.stand.run(self.metadata.under_replication.worker_of(ledger_id))

    def mark(self, ledger_id: int, missing: BookieProcess) -> None:
        self.stand.run(self.metadata.under_replication.mark(ledger_id, [missing.bookie_id]))

    def get(self, ledger_id: int) -> LedgerMetadata:
        return self.stand.run(self.metadata.ledgers.get(ledger_id)).value

    def names(self, ledger_id: int, bookie_id: str) -> bool:
        """Whether any segment of the ledger is on the bookie."""
        return any(bookie_id in segment.ensemble for segment in self.get(ledger_id).segments)

    def marks(self) -> dict[int, tuple[str, ...]]:
        """The marked ledgers, with the bookies that lack copies."""

        async def listed() -> dict[int, tuple[str, ...]]:
            return {mark.ledger_id: mark.missing async for mark in self.metadata.under_replication.marks()}

        return self.stand.run(listed())

    def wait_stored(self, ledger_id: int) -> None:
        """Wait until every bookie of an open ledger with full copies has its last entry: nothing is in flight then."""
        metadata = self.get(ledger_id)
        codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password)

        async def last_entry_ids() -> set[int | None]:
            async with self.client.bookie_copies() as copies:
                return {await copies.last_entry_id(codec, bookie_id) for bookie_id in metadata.last_segment.ensemble}

        wait_until(lambda: len(self.stand.run(last_entry_ids())) == 1, LIMIT_S, f"ledger {ledger_id} is on all its bookies")

    def wait_repaired(self, ledger_ids: Sequence[int], lost: BookieProcess) -> None:
        """Wait until none of the ledgers names the bookie, and no ledger is marked."""
        wait_until(
            lambda: not any(self.names(ledger_id, lost.bookie_id) for ledger_id in ledger_ids) and not self.marks(),
            LIMIT_S,
            f"ledgers {ledger_ids} are repaired without {lost.bookie_id}",
        )

    def check_copies(self, ledger_id: int) -> None:
        """Every bookie of the metadata lists its entries, and every copy, read from that bookie, has its digest."""
        copies = self.stand.run(LedgerChecker(self.client, ledger_id, ANSWER_S, read=True).check())
        assert copies.is_complete, copies

    def check(self, ledger: StoredLedger, release: str) -> None:
        """All copies are good, and both clients read every entry."""
        self.check_copies(ledger.ledger_id)
        java = self.java(release).open(ledger.ledger_id, digest_type=ledger.digest_type, password=PASSWORD)
        assert [entry.payload for entry in java.read(0, ledger.entries - 1)] == ledger.payloads()
        java.close()
        seen = read_by_us(self.stand, self.client, ledger.ledger_id, ledger.entries - 1, password=PASSWORD)
        assert [entry.payload for entry in seen] == ledger.payloads()

    def clear(self) -> None:
        """Delete all ledgers, and start the killed bookies again. A killed worker's locks are on deleted ledgers then."""

        async def delete_ledgers() -> None:
            for ledger_id in [ledger_id async for ledger_id in self.client.ledger_ids()]:
                await self.client.delete(ledger_id)

        self.stand.run(delete_ledgers())
        for bookie in self.cluster.bookies:
            if bookie.process is None:
                restart(self.stand, self.cluster, bookie)


class OurTask:
    """Work on the loop of our clients, which is cancelled by `stop`."""

    def __init__(self, repairs: RepairStand, work: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
        self._repairs = repairs
        self._work = work
        self._stopping = repairs.stand.loop.run(asyncio.Event)
        self._done = later(lambda: repairs.stand.run(self._run(), RUN_LIMIT_S))

    async def _run(self) -> None:
        await first_of([self._work(self._repairs.client), self._stopping.wait()], name="auto-recovery")

    def stop(self) -> None:
        """Cancel the work and wait for its end. Raises the error with which it has ended by itself."""
        self._repairs.stand.loop.run(self._stopping.set)
        self._done.result(LIMIT_S)


async def audit(client: Client) -> None:
    """Our auditor: votes, and marks the ledgers of lost bookies when it is elected."""
    settings = AutorecoverySettings(ledgers_check_interval_s=0, replicas_check_interval_s=0, placement_check_interval_s=0)
    metrics = AuditorMetrics(client.metrics)
    await client.metadata.auditor.elected(OUR_AUDITOR)
    try:
        await Auditor(client, settings, audits_of(client), metrics).run()
    finally:
        await shielded(client.metadata.auditor.withdraw())


def audits_of(client: Client) -> LedgerAudits:
    """Our audits, without pauses."""
    return LedgerAudits(client, CopyPace(client.host.clock, 0, 1), AuditorMetrics(client.metrics), obeys_disable=True)


async def repair_marked(client: Client, grace_s: float) -> None:
    """Our replication worker: repairs marked ledgers."""
    settings = AutorecoverySettings(open_ledger_grace_s=grace_s)
    async with client.bookie_copies() as copies:
        worker = ReplicationWorker(client, copies, settings, name=OUR_WORKER)
        await ReplicationLoop(client, worker, settings, AuditorMetrics(client.metrics), OUR_WORKER).run()


@contextmanager
def auditor_of(repairs: RepairStand, side: str, release: str) -> Iterator[str]:
    """An auditor alone, elected within the block.

    Yields:
        Its name in the vote.
    """
    if side == OURS:
        name, stop = OUR_AUDITOR, OurTask(repairs, audit).stop
    else:
        name = f"127.0.0.1:{free_port()}"
        stop = repairs.stand.driver(release).start_auditor(repairs.cluster.uri, name, APACHE_DAEMON).stop
    try:
        wait_until(lambda: repairs.auditor() == name, LIMIT_S, f"{name} is the auditor")
        yield name
    finally:
        stop()


@contextmanager
def worker_of(repairs: RepairStand, side: str, release: str, *, grace_s: float = GRACE_S) -> Iterator[None]:
    """A replication worker alone, running within the block."""
    if side == OURS:
        stop = OurTask(repairs, partial(repair_marked, grace_s=grace_s)).stop
    else:
        # A process of its own, which is killed: Apache's worker may lose the interrupt of an orderly end, and then does not end.
        driver = repairs.stand.new_driver(release)
        driver.start_worker(repairs.cluster.uri, {**APACHE_DAEMON, "openLedgerRereplicationGracePeriod": int(grace_s * 1000)})
        stop = driver.kill
    try:
        yield
    finally:
        stop()
