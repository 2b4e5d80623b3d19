"""Auto-recovery of both implementations on one cluster: auditors, workers, locks, votes and commands of each with the other's."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

import pytest

from tests.interop.bookies import free_port
from tests.interop.repairs import (
    APACHE,
    APACHE_DAEMON,
    ENTRIES,
    LIMIT_S,
    OURS,
    SIDES,
    RepairStand,
    StoredLedger,
    append,
    auditor_of,
    audits_of,
    worker_of,
)
from tests.interop.sides import CLOSED, FENCED, Refused
from tests.interop.stand import Stand
from tests.interop.tools import Shell
from tests.process.running import run, run_json
from tests.process.running import started as begun
from tests.waiting import wait_until
from triplicate import DigestType
from triplicate.autorecovery import Audit, LedgerRepair, RepairOutcome, ReplicationWorker, recover_bookies
from triplicate.config import AutorecoverySettings
from triplicate.errors import TriplicateError
from triplicate.ledger import LedgerState
from triplicate.log import Logs, has_living_writer

QUICK_S = 0.5
"""A grace period for ledgers whose writers do nothing."""
LONG_S = 600.0
"""A grace period that does not end within a test."""


@pytest.fixture(scope="module")
def shared(stand: Stand) -> Iterator[RepairStand]:
    """A cluster for the tests of this file."""
    shared = RepairStand(stand, "repaired")
    yield shared
    shared.cluster.stop()


@pytest.fixture
def repairs(shared: RepairStand) -> Iterator[RepairStand]:
    """The cluster. After the test its ledgers are deleted, and the bookies that it killed are restarted."""
    yield shared
    shared.clear()


@pytest.mark.parametrize("killed", SIDES, ids=[f"killed-{side}" for side in SIDES])
@pytest.mark.parametrize("worker", SIDES, ids=[f"worker-{side}" for side in SIDES])
@pytest.mark.parametrize("auditor", SIDES, ids=[f"auditor-{side}" for side in SIDES])
def test_either_auditor_and_either_worker_repair_the_ledgers_of_a_killed_bookie(
    repairs: RepairStand, auditor: str, worker: str, killed: str, java_release: str
) -> None:
    victim = repairs.victim(killed)
    ledgers = [
        repairs.write(client, java_release, victim, digest_type, write_quorum)
        for client, write_quorum in zip(SIDES, (3, 2), strict=True)
        for digest_type in DigestType
    ]
    with auditor_of(repairs, auditor, java_release), worker_of(repairs, worker, java_release):
        repairs.lose(victim)
        repairs.wait_repaired([ledger.ledger_id for ledger in ledgers], victim)
    for ledger in ledgers:
        repairs.check(ledger, java_release)


@pytest.mark.parametrize("worker", SIDES, ids=[f"worker-{side}" for side in SIDES])
def test_a_writer_that_replaces_its_bookie_is_not_fenced(repairs: RepairStand, worker: str, java_release: str) -> None:
    """The segment before the change lacks copies, and is repaired while the ledger is open."""
    victim = repairs.victim(APACHE)
    writers = [repairs.writer(client, java_release, victim) for client in SIDES]
    for writer in writers:
        append(writer, 0, ENTRIES)
    repairs.lose(victim)
    for writer in writers:
        append(writer, ENTRIES, ENTRIES)
    # The auditor is the other side's.
    with auditor_of(repairs, APACHE if worker == OURS else OURS, java_release), worker_of(repairs, worker, java_release):
        repairs.wait_repaired([writer.ledger_id for writer in writers], victim)
    for writer in writers:
        assert repairs.get(writer.ledger_id).state is LedgerState.OPEN
        append(writer, 2 * ENTRIES, ENTRIES)
        writer.close()
        repairs.check(StoredLedger(writer.ledger_id, DigestType.CRC32C, 3 * ENTRIES), java_release)


@pytest.mark.parametrize("worker", SIDES, ids=[f"worker-{side}" for side in SIDES])
def test_an_idle_writer_is_fenced_after_the_grace_period(repairs: RepairStand, worker: str, java_release: str) -> None:
    victim = repairs.victim(OURS)
    writers = [repairs.writer(client, java_release, victim) for client in SIDES]
    for writer in writers:
        append(writer, 0, ENTRIES)
        repairs.wait_stored(writer.ledger_id)
    repairs.lose(victim)
    with auditor_of(repairs, APACHE if worker == OURS else OURS, java_release), worker_of(repairs, worker, java_release, grace_s=QUICK_S):
        repairs.wait_repaired([writer.ledger_id for writer in writers], victim)
    for writer in writers:
        with pytest.raises(Refused) as refused:
            writer.append(b"too late")
        assert refused.value.kind in (FENCED, CLOSED)
        assert repairs.get(writer.ledger_id).state is LedgerState.CLOSED
        repairs.check(StoredLedger(writer.ledger_id, DigestType.CRC32C, ENTRIES), java_release)


def test_an_idle_log_is_fenced_by_apaches_worker_and_not_by_ours(repairs: RepairStand, java_release: str) -> None:
    stand, client = repairs.stand, repairs.client
    logs = Logs(client)
    stand.run(logs.create("idle"))
    writer = stand.run(logs.writer("idle", owner="first"))
    stand.run(writer.append(b"before"))
    ledger_id = stand.run(logs.segments("idle"))[-1].ledger_id
    repairs.wait_stored(ledger_id)
    # Three of four bookies are in the ensemble, so one of either kind is.
    victim = next(bookie for bookie in repairs.cluster.bookies if bookie.bookie_id in repairs.get(ledger_id).last_segment.ensemble)
    repairs.lose(victim)
    settings = AutorecoverySettings(open_ledger_grace_s=QUICK_S)
    report = stand.run(recover_bookies(client, settings=settings, has_living_writer=partial(has_living_writer, logs)))
    assert [(repair.ledger_id, repair.outcome) for repair in report.unrepaired] == [(ledger_id, RepairOutcome.HAS_WRITER)]
    assert repairs.get(ledger_id).state is LedgerState.OPEN
    # The mark of our pass is still there.
    with worker_of(repairs, APACHE, java_release, grace_s=QUICK_S):
        repairs.wait_repaired([ledger_id], victim)
    assert repairs.get(ledger_id).state is LedgerState.CLOSED
    with pytest.raises(TriplicateError):
        stand.run(writer.append(b"of the fenced writer"))
    stand.run(writer.abandon())

    async def take_over() -> list[bytes]:
        async with await logs.writer("idle", owner="second") as second:
            await second.append(b"after")
        values: list[bytes] = []
        async with await logs.reader("idle") as reader:
            while b"after" not in values:
                entry = await reader.next_entry(LIMIT_S)
                assert entry is not None, values
                values += [value for value in entry.values if value is not None]
        return values

    assert stand.run(take_over()) == [b"before", b"after"]
    repairs.check_copies(ledger_id)


def test_apaches_worker_leaves_a_ledger_that_ours_has_locked(repairs: RepairStand, java_release: str) -> None:
    stand, victim = repairs.stand, repairs.victim(APACHE)
    locked, free = [repairs.write(OURS, java_release, victim, DigestType.CRC32C) for _ in range(2)]
    repairs.lose(victim)
    for ledger in (locked, free):
        repairs.mark(ledger.ledger_id, victim)
    lock = stand.run(repairs.metadata.under_replication.lock(locked.ledger_id, "ours"))
    assert lock is not None
    with worker_of(repairs, APACHE, java_release):
        wait_until(lambda: free.ledger_id not in repairs.marks(), LIMIT_S, "the ledger without a lock is repaired")
        assert repairs.names(locked.ledger_id, victim.bookie_id)
        assert repairs.worker(locked.ledger_id) == "ours"
        stand.run(repairs.metadata.under_replication.release(lock))
        repairs.wait_repaired([locked.ledger_id, free.ledger_id], victim)
    for ledger in (locked, free):
        repairs.check(ledger, java_release)


def test_our_worker_leaves_a_ledger_that_apaches_has_locked(repairs: RepairStand, java_release: str) -> None:
    """Apache's worker keeps the lock of an open ledger during its grace period. Its death releases the ledger."""
    stand, victim = repairs.stand, repairs.victim(OURS)
    writer = repairs.writer(APACHE, java_release, victim)
    append(writer, 0, ENTRIES)
    repairs.wait_stored(writer.ledger_id)
    repairs.lose(victim)
    repairs.mark(writer.ledger_id, victim)
    driver = stand.new_driver(java_release)
    driver.start_worker(repairs.cluster.uri, {**APACHE_DAEMON, "openLedgerRereplicationGracePeriod": int(LONG_S * 1000)})
    wait_until(lambda: repairs.worker(writer.ledger_id) is not None, LIMIT_S, "Apache's worker has locked the ledger")
    assert repair_once(repairs, writer.ledger_id).outcome is RepairOutcome.LOCKED
    (listed,) = run_json("cluster", "under-replicated", uri=repairs.cluster.uri)
    assert (listed["ledger"], listed["missing"]) == (writer.ledger_id, [victim.bookie_id])
    assert listed["locked_by"] == repairs.worker(writer.ledger_id)
    driver.kill()
    with worker_of(repairs, OURS, java_release, grace_s=QUICK_S):
        repairs.wait_repaired([writer.ledger_id], victim)
    repairs.check(StoredLedger(writer.ledger_id, DigestType.CRC32C, ENTRIES), java_release)


def repair_once(repairs: RepairStand, ledger_id: int) -> LedgerRepair:
    async def work() -> LedgerRepair:
        async with repairs.client.bookie_copies() as copies:
            return await ReplicationWorker(repairs.client, copies, AutorecoverySettings(), name="once").repair(ledger_id)

    return repairs.stand.run(work())


class Candidate(NamedTuple):
    """A process that has voted."""

    name: str
    kill: Callable[[], None]


@pytest.mark.parametrize("first", SIDES, ids=[f"first-{side}" for side in SIDES])
def test_the_older_vote_is_the_auditor_and_the_other_follows_its_death(repairs: RepairStand, first: str, java_release: str) -> None:
    """Both sides vote in one tree; a killed auditor's vote ends with its session."""
    shell = Shell(repairs.cluster.uri, repairs.stand.new_folder())
    driver = repairs.stand.new_driver(java_release)
    with ExitStack() as started:

        def vote(side: str) -> Candidate:
            """Let a process of this side vote."""
            if side == APACHE:
                name = f"127.0.0.1:{free_port()}"
                driver.start_auditor(repairs.cluster.uri, name, APACHE_DAEMON)
                return Candidate(name, driver.kill)
            process = started.enter_context(begun("autorecovery", "--metadata", repairs.cluster.uri))
            return Candidate(f"{socket.gethostname()}:{process.pid}", process.kill)

        elected = vote(first)
        wait_until(lambda: repairs.auditor() == elected.name, LIMIT_S, "the first vote is the auditor's")
        follower = vote(APACHE if first == OURS else OURS)
        wait_until(lambda: repairs.candidates() == 2, LIMIT_S, "both have voted")
        assert repairs.auditor() == elected.name
        assert elected.name in shell("whoisauditor")
        elected.kill()
        wait_until(lambda: repairs.auditor() == follower.name, LIMIT_S, "the other vote is the auditor's")
        assert repairs.candidates() == 1
        follower.kill()
    wait_until(lambda: repairs.candidates() == 0, LIMIT_S, "the votes of killed processes are gone")


def test_each_sides_commands_show_the_queue_of_the_other(repairs: RepairStand, java_release: str) -> None:
    """Apache's auditor marks, our commands list; our mark is listed by Apache's shell, whose `recover` makes the copies."""
    uri, victim = repairs.cluster.uri, repairs.victim(OURS)
    shell = Shell(uri, repairs.stand.new_folder())
    ledgers = [repairs.write(client, java_release, victim, DigestType.CRC32C) for client in SIDES]
    ledger_ids = [ledger.ledger_id for ledger in ledgers]
    with auditor_of(repairs, APACHE, java_release):
        repairs.lose(victim)
        wait_until(lambda: sorted(repairs.marks()) == sorted(ledger_ids), LIMIT_S, "Apache's auditor has marked the ledgers")
    listed = run_json("cluster", "under-replicated", uri=uri)
    assert {row["ledger"]: row["missing"] for row in listed} == {ledger_id: [victim.bookie_id] for ledger_id in ledger_ids}
    status = run("cluster", "status", "--json", uri=uri, check=False)
    assert status.returncode == 1
    assert not json.loads(status.stdout)["healthy"]
    checked = run("ledger", "check", str(ledger_ids[0]), "--json", uri=uri, check=False)
    assert (checked.returncode, victim.bookie_id in checked.stdout) == (1, True)
    assert shell.found("missingReplica", "listunderreplicated", "-printmissingreplica") == [victim.bookie_id] * len(ledgers)
    shell("recover", "-force", victim.bookie_id)
    for ledger in ledgers:
        assert not repairs.names(ledger.ledger_id, victim.bookie_id)
        repairs.check(ledger, java_release)
    # The shell leaves the marks to the workers. Ours finds nothing to copy.
    assert [repair_once(repairs, ledger_id).entries for ledger_id in ledger_ids] == [0, 0]
    assert repairs.marks() == {}
    assert "no ledger is marked" in run("cluster", "under-replicated", uri=uri).stderr
    for kind in (Audit.LEDGERS, Audit.REPLICAS):
        report = repairs.stand.run(audits_of(repairs.client).run(kind))
        assert (report.ledgers, report.found, report.problems) == (len(ledgers), 0, {})


def test_apaches_shell_decommissions_a_bookie_of_ours(repairs: RepairStand, java_release: str) -> None:
    """The command waits for the auditor and the worker, here Apache's and ours. It sleeps for half a minute in any case."""
    spare = repairs.stand.add_bookie(repairs.cluster, OURS)
    shell = Shell(repairs.cluster.uri, repairs.stand.new_folder())
    ledgers = [repairs.write(client, java_release, spare, DigestType.CRC32C) for client in SIDES]
    with auditor_of(repairs, APACHE, java_release), worker_of(repairs, OURS, java_release):
        repairs.lose(spare)
        repairs.cluster.bookies.remove(spare)
        shell("decommissionbookie", "-bookieid", spare.bookie_id)
    assert spare.bookie_id not in repairs.stand.run(repairs.metadata.cookies.bookie_ids())
    assert repairs.marks() == {}
    for ledger in ledgers:
        assert not repairs.names(ledger.ledger_id, spare.bookie_id)
        repairs.check(ledger, java_release)
