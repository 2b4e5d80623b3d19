"""Marks of ledgers that lack copies, their locks, and the auditor's election, on every driver.

Source: BookKeeper `ZkLedgerUnderreplicationManager`, `ZkLedgerAuditorManager`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.unit.metadata.stores import run as run_limited
from tests.unit.metadata.stores import sessions
from triplicate.errors import ArgumentError, ConnectionLost, FormatError, MetadataError
from triplicate.metadata import (
    AuditorElection,
    ClusterMetadata,
    InjectedFault,
    MemoryStore,
    MemoryTree,
    PeriodicCheck,
    ReplicationLock,
    Tree,
    UnderreplicationManager,
    retries,
)
from triplicate.metadata.core.repair_formats import decode_lock, decode_mark, decode_vote
from triplicate.runtime import real_host

ROOT = "/ledgers"
BASE = f"{ROOT}/underreplication"
MARK_7 = f"{BASE}/ledgers/0000/0000/0000/0007/urL0000000007"

Body = Callable[["Cluster"], Awaitable[None]]
Contract = Callable[[Body], None]


class Cluster:
    """One store, and members of the cluster with a session each."""

    def __init__(self, open_session: Callable[[], Awaitable[Tree]]) -> None:
        self._open_session = open_session
        self._count = 0

    async def member(self) -> tuple[Tree, UnderreplicationManager, AuditorElection]:
        self._count += 1
        host = real_host(f"member-{self._count}", seed=self._count)
        tree = await self._open_session()
        metadata = await ClusterMetadata.open(tree, host, create=True)
        return tree, metadata.under_replication, metadata.auditor


@asynccontextmanager
async def cluster(driver: str, folder: Path) -> AsyncIterator[Cluster]:
    async with sessions(driver, folder) as open_session:
        yield Cluster(open_session)


@pytest.fixture(params=["memory", "sqlite", "zookeeper"])
def contract(request: pytest.FixtureRequest, tmp_path: Path) -> Contract:
    def on_driver(body: Body) -> None:
        async def with_cluster() -> None:
            async with cluster(request.param, tmp_path) as one:
                await body(one)

        run_limited(with_cluster())

    return on_driver


def taken(lock: ReplicationLock | None) -> ReplicationLock:
    assert lock is not None
    return lock


def test_the_nodes_are_bookkeepers(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        tree, marks, auditor = await one.member()
        await marks.mark(7, ["bk1:3181", "bk-2"])
        assert await tree.get(f"{BASE}/LAYOUT") == (b'type: "BASIC"\nversion: 1\n', (await tree.get(f"{BASE}/LAYOUT"))[1])
        data, _ = await tree.get(MARK_7)
        mark = await marks.get(7)
        assert mark is not None
        assert data == b'replica: "bk1:3181"\nreplica: "bk-2"\nctime: %d\n' % (mark.ctime_ms or 0)
        taken(await marks.lock(7, "machine-1"))
        assert (await tree.get(f"{BASE}/locks/urL0000000007"))[0] == b'bookieId: "machine-1"\n'
        assert (await tree.exists(f"{BASE}/locks/urL0000000007")).ephemeral_owner == tree.session_id  # type: ignore[union-attr]
        await marks.disable()
        assert (await tree.get(f"{BASE}/disable"))[0] == b""
        await marks.set_lost_bookie_recovery_delay_s(60)
        assert (await tree.get(f"{BASE}/lostBookieRecoveryDelay"))[0] == b"60"
        for check in PeriodicCheck:
            await marks.set_check_time_ms(check, 1_700_000_000_000)
            assert (await tree.get(f"{BASE}/{check.value}"))[0].hex() == "0880d095ffbc31"
        await auditor.elected("bk1:3181")
        assert (await tree.children(f"{BASE}/auditorelection"))[0] == ["V_0000000000"]
        vote, stat = await tree.get(f"{BASE}/auditorelection/V_0000000000")
        assert vote == (await tree.get(f"{BASE}/auditorelection"))[0] == b'bookieId: "bk1:3181"\n'
        assert stat.ephemeral_owner == tree.session_id

    contract(body)


def test_marking_again_adds_the_bookies_that_are_new(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        _, marks, _ = await one.member()
        await marks.mark(7, ["b1"])
        first = await marks.get(7)
        await marks.mark(7, ["b1"])
        assert await marks.get(7) == first
        await asyncio.gather(*[marks.mark(7, [f"b{number}"]) for number in range(1, 6)])
        mark = await marks.get(7)
        assert mark is not None
        assert sorted(mark.missing) == ["b1", "b2", "b3", "b4", "b5"]
        assert mark.version == 4

    contract(body)


def test_marks_are_listed_in_order(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        _, marks, _ = await one.member()
        assert [mark async for mark in marks.marks()] == []
        ids = [0, 1, 65_536, 2**31 - 1, 2**40 + 7, 2**63 - 1]
        for ledger_id in reversed(ids):
            await marks.mark(ledger_id, ["b1"])
        assert [mark.ledger_id async for mark in marks.marks()] == ids

    contract(body)


def test_a_ledger_is_taken_by_one_worker(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        _, marks, _ = await one.member()
        _, others, _ = await one.member()
        assert await marks.lock_any("w1") is None
        for ledger_id in (7, 8):
            await marks.mark(ledger_id, ["b1"])
        locks = [taken(await marks.lock_any("w1")), taken(await others.lock_any("w2"))]
        assert sorted(lock.mark.ledger_id for lock in locks) == [7, 8]
        assert await marks.lock_any("w1") is None
        assert await others.lock_any("w2") is None
        assert await others.worker_of(locks[0].mark.ledger_id) == "w1"
        await marks.release(locks[0])
        assert await marks.worker_of(locks[0].mark.ledger_id) is None
        assert taken(await others.lock_any("w2")).mark.ledger_id == locks[0].mark.ledger_id

    contract(body)


def test_all_locks_are_listed_with_their_workers(contract: Contract) -> None:
    async def body(cluster: Cluster) -> None:
        tree, marks, _ = await cluster.member()
        _, others, _ = await cluster.member()
        assert await others.locks() == frozenset()
        for ledger_id in (7, 8):
            await marks.mark(ledger_id, ["b1"])
        locks = [await marks.lock(7, "worker-1"), await marks.lock(8, "worker-2")]
        found = await others.locks()
        assert {(lock.ledger_id, lock.worker, lock.session_id) for lock in found} == {
            (7, "worker-1", tree.session_id),
            (8, "worker-2", tree.session_id),
        }
        await tree.set(f"{BASE}/locks/urL0000000008", b"\xff")
        assert {lock.worker for lock in await others.locks()} == {"worker-1", ""}
        for lock in locks:
            assert lock is not None
            await marks.release(lock)
        assert await others.locks() == frozenset()

    contract(body)


def test_two_users_of_one_session_do_not_share_a_lock(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        _, marks, _ = await one.member()
        await marks.mark(7, ["b1"])
        locks = await asyncio.gather(*[marks.lock(7, f"w{number}") for number in range(4)])
        assert sum(lock is not None for lock in locks) == 1

    contract(body)


def test_a_mended_ledger_leaves_no_nodes_behind(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        tree, marks, _ = await one.member()
        await marks.mark(7, ["b1"])
        await marks.mark(8, ["b1"])
        assert await marks.complete(taken(await marks.lock(7, "w")))
        assert (await tree.children(f"{BASE}/ledgers/0000/0000/0000"))[0] == ["0008"]
        assert await marks.complete(taken(await marks.lock(8, "w")))
        assert (await tree.children(f"{BASE}/ledgers"))[0] == []
        assert (await tree.children(f"{BASE}/locks"))[0] == []

    contract(body)


def test_a_ledger_marked_again_while_it_was_mended_stays_marked(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        _, marks, _ = await one.member()
        await marks.mark(7, ["b1"])
        lock = taken(await marks.lock_any("w"))
        await marks.mark(7, ["b2"])
        assert not await marks.complete(lock)
        mark = await marks.get(7)
        assert mark is not None
        assert mark.missing == ("b1", "b2")
        assert await marks.worker_of(7) is None

    contract(body)


def test_who_lost_its_lock_does_not_delete_the_mark(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        tree, marks, _ = await one.member()
        _, others, _ = await one.member()
        await marks.mark(7, ["b1"])
        lock = taken(await marks.lock_any("w1"))
        await tree.delete(f"{BASE}/locks/urL0000000007")  # As the end of the session does.
        second = taken(await others.lock_any("w2"))
        assert not await marks.complete(lock)
        assert await others.worker_of(7) == "w2"
        assert await others.complete(second)
        assert await marks.get(7) is None

    contract(body)


def test_a_dead_workers_ledger_goes_to_a_waiting_worker(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        tree, marks, _ = await one.member()
        _, others, _ = await one.member()
        await marks.mark(7, ["b1"])
        taken(await marks.lock_any("w1"))
        waiting = asyncio.create_task(others.lock_next("w2"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await tree.close()
        assert (await waiting).mark.ledger_id == 7

    contract(body)


def test_a_waiting_worker_hears_of_a_new_mark_and_respects_the_stop(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        _, marks, _ = await one.member()
        _, others, _ = await one.member()
        assert await marks.is_enabled()
        assert await marks.disable()
        assert not await others.disable()
        await marks.mark(7, ["b1"])
        waiting = asyncio.create_task(others.lock_next("w2"))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        assert await marks.enable()
        assert not await marks.enable()
        assert (await waiting).mark.ledger_id == 7
        waiting = asyncio.create_task(others.lock_next("w2"))
        await asyncio.sleep(0.1)
        await marks.mark(8, ["b1"])  # Its directory is beside one that is there.
        assert (await waiting).mark.ledger_id == 8

    contract(body)


def test_delays_and_times_are_none_until_set(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        _, marks, _ = await one.member()
        assert await marks.lost_bookie_recovery_delay_s() is None
        assert await marks.check_time_ms(PeriodicCheck.REPLICAS) is None
        watch = marks.watch()
        assert await marks.initialise_lost_bookie_recovery_delay_s(30)
        await watch.changed()
        watch.close()
        assert not await marks.initialise_lost_bookie_recovery_delay_s(40)
        assert await marks.lost_bookie_recovery_delay_s() == 30
        await marks.set_check_time_ms(PeriodicCheck.REPLICAS, 5)
        await marks.set_check_time_ms(PeriodicCheck.REPLICAS, 6)
        assert await marks.check_time_ms(PeriodicCheck.REPLICAS) == 6
        assert await marks.check_time_ms(PeriodicCheck.ALL_LEDGERS) is None

    contract(body)


def test_the_oldest_vote_is_the_auditor_and_the_next_follows(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        trees, auditors = [], []
        for _ in range(3):
            tree, _, auditor = await one.member()
            trees.append(tree)
            auditors.append(auditor)
        assert await auditors[0].current() is None
        await auditors[0].elected("b0")
        waiting = []
        for number in (1, 2):
            waiting.append(asyncio.create_task(auditors[number].elected(f"b{number}")))
            while len(await auditors[0].candidates()) < number + 1:
                await asyncio.sleep(0.01)
        assert await auditors[2].current() == "b0"
        lost = asyncio.create_task(auditors[0].lost())
        await asyncio.sleep(0.05)
        assert not lost.done()
        assert not waiting[0].done()
        await auditors[0].withdraw()
        await asyncio.gather(lost, waiting[0])
        assert await auditors[2].current() == "b1"
        assert not waiting[1].done()
        await trees[1].close()
        await waiting[1]
        assert await auditors[2].current() == "b2"
        await auditors[2].elected("b2")
        assert len(await auditors[2].candidates()) == 1

    contract(body)


def test_a_candidate_behind_one_that_gives_up_still_waits(contract: Contract) -> None:
    async def body(one: Cluster) -> None:
        trees, auditors = [], []
        for _ in range(3):
            tree, _, auditor = await one.member()
            trees.append(tree)
            auditors.append(auditor)
        await auditors[0].elected("b0")
        second = asyncio.create_task(auditors[1].elected("b1"))
        while len(await auditors[0].candidates()) < 2:
            await asyncio.sleep(0.01)
        third = asyncio.create_task(auditors[2].elected("b2"))
        while len(await auditors[0].candidates()) < 3:
            await asyncio.sleep(0.01)
        second.cancel()
        await auditors[1].withdraw()
        await asyncio.sleep(0.1)
        assert not third.done()
        await auditors[0].withdraw()
        await third

    contract(body)


# Cases that only a store with faults shows.


class Faulty:
    def __init__(self) -> None:
        self.host = real_host("faulty", seed=1)
        self.store = MemoryStore(self.host.clock)

    async def member(self) -> ClusterMetadata:
        return await ClusterMetadata.open(MemoryTree(self.store), self.host, create=True)

    def lose(self, operation: str, *, at: str = "") -> None:
        """Apply the next such operation and lose its answer."""
        left = [1]

        def fault(session_id: int, name: str, path: str) -> InjectedFault | None:
            if name != operation or not path.startswith(at) or not left[0]:
                return None
            left[0] -= 1
            return InjectedFault(raise_after=ConnectionLost(path))

        self.store.fault = fault


def test_a_vote_whose_answer_was_lost_is_not_cast_twice() -> None:
    async def body() -> None:
        faulty = Faulty()
        member = await faulty.member()
        faulty.lose("create", at=f"{BASE}/auditorelection/")
        await member.auditor.elected("b1")
        assert await member.auditor.candidates() == ["V_0000000000"]

    run_limited(body())


def test_a_mark_whose_answer_was_lost_is_made_once() -> None:
    async def body() -> None:
        faulty = Faulty()
        member = await faulty.member()
        faulty.lose("create", at=f"{BASE}/ledgers/0000")
        await member.under_replication.mark(7, ["b1"])
        faulty.lose("set", at=MARK_7)
        await member.under_replication.mark(7, ["b2"])
        mark = await member.under_replication.get(7)
        assert mark is not None
        assert mark.missing == ("b1", "b2")
        assert mark.version == 1

    run_limited(body())


def test_a_lock_whose_answer_was_lost_is_held() -> None:
    async def body() -> None:
        faulty = Faulty()
        member = await faulty.member()
        await member.under_replication.mark(7, ["b1"])
        faulty.lose("create", at=f"{BASE}/locks/urL")
        assert (taken(await member.under_replication.lock_any("w"))).mark.ledger_id == 7

    run_limited(body())


async def locks_in(member: ClusterMetadata) -> list[str]:
    return (await member.tree.children(f"{BASE}/locks"))[0]


@pytest.mark.parametrize("is_applied", [False, True])
def test_an_attempt_to_lock_that_is_cancelled_leaves_no_lock(*, is_applied: bool) -> None:
    """Cancelled in each operation of the store, before or after it is applied."""

    async def body(number: int) -> bool:
        faulty = Faulty()
        member, other = await faulty.member(), await faulty.member()
        await member.under_replication.mark(7, ["b1"])
        seen, reached = [0], asyncio.Event()

        def fault(session_id: int, name: str, path: str) -> InjectedFault | None:
            seen[0] += 1
            if seen[0] != number or session_id != member.tree.session_id:
                return None
            reached.set()
            return InjectedFault(delay_after_s=60.0) if is_applied else InjectedFault(delay_before_s=60.0)

        faulty.store.fault = fault
        attempt = asyncio.create_task(member.under_replication.lock(7, "w"))
        waiting = asyncio.create_task(reached.wait())
        await asyncio.wait([attempt, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if attempt.done():
            taken(attempt.result())
            return False
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        assert await locks_in(other) == []
        assert taken(await other.under_replication.lock(7, "other")).mark.ledger_id == 7
        return True

    interrupted = 0
    while run_limited(body(interrupted + 1)):
        interrupted += 1
    assert interrupted >= 3, "the mark is read, the lock is created, and the mark is read again"


def test_an_attempt_to_lock_that_fails_leaves_no_lock() -> None:
    async def body() -> None:
        faulty = Faulty()
        member, other = await faulty.member(), await faulty.member()
        await member.under_replication.mark(7, ["b1"])
        reads = [0]

        def fault(session_id: int, name: str, path: str) -> InjectedFault | None:
            reads[0] += path == MARK_7
            return InjectedFault(raise_before=MetadataError("refused")) if path == MARK_7 and reads[0] == 2 else None

        faulty.store.fault = fault
        with pytest.raises(MetadataError, match="refused"):
            await member.under_replication.lock(7, "w")
        assert await locks_in(other) == []

    run_limited(body())


def test_a_lock_that_could_not_be_deleted_is_found_by_the_next_search() -> None:
    async def body() -> None:
        faulty = Faulty()
        member, other = await faulty.member(), await faulty.member()
        await member.under_replication.mark(7, ["b1"])
        creations = [0]

        def fault(session_id: int, name: str, path: str) -> InjectedFault | None:
            creations[0] += name == "create"
            return InjectedFault(raise_before=MetadataError("no store")) if creations[0] and name != "create" else None

        faulty.store.fault = fault
        with pytest.raises(MetadataError, match="no store"):
            await member.under_replication.lock(7, "w")
        faulty.store.fault = None
        assert await locks_in(other) == ["urL0000000007"]
        assert await other.under_replication.lock_any("other") is None
        lock = taken(await member.under_replication.lock_any("w"))
        await member.under_replication.release(lock)
        assert await locks_in(other) == []

    run_limited(body())


@pytest.mark.parametrize("end", ["release", "complete", "release unmarked", "release and list"])
def test_a_lock_whose_end_ran_out_of_attempts_is_deleted_by_the_next_search(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decommission that took no further lock, and so searched no more, waited for its own one (seeds 1189 and 2019)."""
    monkeypatch.setattr(retries, "FIRST_DELAY_S", 0.001)
    monkeypatch.setattr(retries, "LONGEST_DELAY_S", 0.001)

    async def body() -> None:
        host = real_host("worker", seed=1)
        store = MemoryStore(host.clock)
        ours, theirs = (UnderreplicationManager(MemoryTree(store), host, ROOT) for _ in range(2))
        if end == "release unmarked":
            lock = await ours.lock_unmarked(7, "ours")
        else:
            await ours.mark(7, ["bookie-1"])
            lock = await ours.lock_any("ours")
        assert lock is not None
        store.fault = lambda session, operation, path: InjectedFault(raise_before=ConnectionLost("the store does not answer"))
        with pytest.raises(ConnectionLost):
            await (ours.complete(lock) if end == "complete" else ours.release(lock))
        store.fault = None
        assert await theirs.worker_of(7) == "ours", "its session lives"
        if end == "release unmarked":
            assert await ours.lock_any("ours") is None
            assert await theirs.locks() == frozenset()
        elif end == "release and list":
            assert await ours.locks() == frozenset()
        else:
            again = await ours.lock_any("ours")
            assert again is not None
            assert await ours.complete(again)
            assert await theirs.get(7) is None

    run_limited(body())


def test_an_end_whose_answer_was_lost_does_not_delete_the_next_mark() -> None:
    async def body() -> None:
        faulty = Faulty()
        member, other = await faulty.member(), await faulty.member()
        await member.under_replication.mark(7, ["b1"])
        lock = taken(await member.under_replication.lock_any("w"))

        def fault(session_id: int, name: str, path: str) -> InjectedFault | None:
            if name != "multi" or session_id != member.tree.session_id:
                return None
            faulty.store.fault = None
            marking.append(asyncio.create_task(other.under_replication.mark(7, ["b2"])))
            return InjectedFault(raise_after=ConnectionLost(path))

        marking: list[asyncio.Task[None]] = []
        faulty.store.fault = fault
        # The new mark has the version that the old one had.
        assert not await member.under_replication.complete(lock)
        await marking[0]
        mark = await member.under_replication.get(7)
        assert mark is not None
        assert mark.missing == ("b2",)
        assert mark.version == lock.mark.version

    run_limited(body())


def test_a_tree_of_another_layout_is_refused() -> None:
    async def body() -> None:
        member = await Faulty().member()
        await member.tree.create(f"{BASE}/LAYOUT", b'type: "FANCY"\nversion: 1\n', parents=True)
        with pytest.raises(FormatError, match="FANCY:1; known is BASIC:1"):
            await member.under_replication.mark(7, ["b1"])

    run_limited(body())


def test_what_cannot_be_is_refused() -> None:
    async def body() -> None:
        marks = (await Faulty().member()).under_replication
        for ledger_id, bookie in ((-1, "b1"), (2**63, "b1"), (7, "no/bookie")):
            with pytest.raises(ArgumentError):
                await marks.mark(ledger_id, [bookie])
        with pytest.raises(ArgumentError):
            await marks.set_lost_bookie_recovery_delay_s(-1)

    run_limited(body())


def test_text_is_read_in_every_form_that_protobuf_writes() -> None:
    assert decode_mark(b"") == ((), None)
    assert decode_mark(b"ctime: 5\nreplica: 'a'\nreplica: \"\\142\"") == (("a", "b"), 5)
    assert decode_mark(b'replica: "a"  # seen by hand\nlater { depth: 1 }\nnewer: "x"\n') == (("a",), None)
    assert decode_lock(b"") == ""
    assert decode_lock('bookieId: "b\u00fccher"'.encode()) == "b\u00fccher"
    assert decode_lock(b'bookieId: "b\\303\\274cher"') == "b\u00fccher"
    assert decode_vote(b'bookieId: "b1:3181"\n') == "b1:3181"
    for bad in (b"replica", b"replica: 5", b"ctime: x", b"\xff", b'replica: "a'):
        with pytest.raises(FormatError):
            decode_mark(bad)
