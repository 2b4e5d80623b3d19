"""One metadata store, two implementations: clusters made by either, Apache's tools and auto-recovery on ours, and a moved cluster."""

from __future__ import annotations

import pytest

from tests.interop.bookies import Cluster, OurBookie
from tests.interop.stand import Stand
from tests.interop.tools import AutoRecovery, Shell
from tests.process.moving import PASSWORD, make_cluster, move
from tests.waiting import wait_until
from triplicate.errors import ConfigError
from triplicate.metadata import ClusterMetadata, Cookie, PeriodicCheck, open_cluster
from triplicate.runtime import real_host

BOOKIE = "127.0.0.1:3999"
"""Apache's cookie commands accept ids of this form only."""


def on(stand: Stand, uri: str) -> ClusterMetadata:
    async def work() -> ClusterMetadata:
        return await open_cluster(uri, real_host("interop"))

    return stand.run(work())


def closed(stand: Stand, cluster: Cluster, payload: bytes) -> int:
    """The id of a closed ledger with one entry, on every bookie."""

    async def work() -> int:
        size = len(cluster.bookies)
        async with await client.create(ensemble_size=size, write_quorum=size, ack_quorum=size) as writer:
            await writer.append(payload)
        return writer.ledger_id

    client = stand.our_client(cluster, "v2")
    return stand.run(work())


def first_entry(stand: Stand, cluster: Cluster, ledger_id: int) -> bytes:
    async def work() -> bytes:
        reader = await client.open(ledger_id)
        try:
            (entry,) = await reader.read(0, 0)
        finally:
            await reader.aclose()
        return entry.payload

    client = stand.our_client(cluster, "v2")
    return stand.run(work())


@pytest.mark.parametrize("manager", ["hierarchical", "longhierarchical"])
def test_we_join_a_cluster_that_apaches_shell_made(stand: Stand, manager: str, java_release: str) -> None:
    root = f"joined-{manager}-{java_release}"
    stand.make_root(root)
    address = f"{stand.zookeeper.address}/{root}/ledgers"
    shell = Shell(f"zk+{manager}://{address}", stand.new_folder())
    shell("initnewcluster")
    metadata = on(stand, f"zk://{address}")
    assert metadata.paths.manager == manager
    assert shell.found("readInstanceId", "whatisinstanceid") == [metadata.instance_id]
    other = {"hierarchical": "longhierarchical", "longhierarchical": "hierarchical"}[manager]
    with pytest.raises(ConfigError, match=f"keeps its ledgers by {manager}, not {other}"):
        on(stand, f"zk+{other}://{address}")
    bookie = OurBookie(f"joined-{manager}", f"zk://{address}", stand.new_folder())
    bookie.start()
    cluster = Cluster(root, stand.servers(root), [bookie], f"zk://{address}")
    try:
        ids = [closed(stand, cluster, b"joined") for _ in range(3)]
        assert ids == [0, 1, 2]
        assert shell.found("ledgerId", "listledgers") == ["0", "1", "2"]
        assert shell.found("bookieAddr", "listbookies", "-rw") == [f"BookieID:{bookie.bookie_id}"]
        java = stand.driver(java_release).connect(f"zk+{manager}://{address}", wire="v3")
        try:
            assert [entry.payload for entry in java.open(ids[0]).read(0, 0)] == [b"joined"]
            theirs = java.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
            theirs.append(b"theirs")
            theirs.close()
            assert theirs.ledger_id == 3
            assert java.ledger_ids() == [*ids, 3]
        finally:
            java.close()
        assert first_entry(stand, cluster, theirs.ledger_id) == b"theirs"
    finally:
        bookie.stop()
        stand.run(metadata.aclose())


def test_apaches_tools_read_our_metadata(stand: Stand) -> None:
    cluster = stand.cluster("ours")
    ledger_id = closed(stand, cluster, b"listed")
    shell = Shell(cluster.uri, stand.new_folder())
    metadata = on(stand, cluster.uri)
    try:
        assert str(ledger_id) in shell.found("ledgerId", "listledgers")
        seen = shell("ledgermetadata", "-ledgerid", str(ledger_id))
        for part in ("formatVersion=3", "state=CLOSED", "lastEntryId=0", "length=6", "digestType=CRC32C", cluster.bookies[0].bookie_id):
            assert part in seen
        stand.run(metadata.cookies.put(Cookie(BOOKIE, "/a/journal", ("/a/one", "/a/two"), metadata.instance_id)))
        seen = shell("cookie_get", BOOKIE)
        for part in (f'bookieHost: "{BOOKIE}"', 'journalDir: "/a/journal"', "/a/one", metadata.instance_id):
            assert part in seen
        stand.run(metadata.under_replication.mark(ledger_id, [BOOKIE, "bk-lost"]))
        # Writers of other tests may have left bookies of this cluster without entries, and have marked their ledgers.
        assert {BOOKIE, "bk-lost"} <= set(shell.found("missingReplica", "listunderreplicated", "-printmissingreplica"))
        stand.run(metadata.under_replication.set_lost_bookie_recovery_delay_s(77))
        assert shell.found("delay", "lostbookierecoverydelay", "-get") == ["77"]
        shell("autorecovery", "-disable")
        assert not stand.run(metadata.under_replication.is_enabled())
        shell("autorecovery", "-enable")
        assert stand.run(metadata.under_replication.is_enabled())
        stand.run(metadata.auditor.elected(BOOKIE))
        assert BOOKIE in shell("whoisauditor")
    finally:
        stand.run(leave(metadata, ledger_id))


async def leave(metadata: ClusterMetadata, ledger_id: int) -> None:
    """Undo changes that would disturb other tests."""
    lock = await metadata.under_replication.lock(ledger_id, "test")
    if lock is not None:
        await metadata.under_replication.complete(lock)
    await metadata.cookies.delete(BOOKIE)
    await metadata.aclose()


def test_apaches_auto_recovery_repairs_a_ledger_of_ours(stand: Stand) -> None:
    cluster = stand.new_cluster("mended", 3, 0)
    metadata = on(stand, cluster.uri)
    try:
        lost, ledger_id = cluster.bookies[2], closed(stand, cluster, b"copied")
        with AutoRecovery(cluster.uri, stand.new_folder(), lostBookieRecoveryDelay=0) as apache:
            wait_until(lambda: stand.run(metadata.auditor.current()) == apache.bookie_id, 60, "Apache's auditor is elected")
            wait_until(lambda: check_time(stand, metadata) is not None, 60, "it has looked at every ledger")
            # A bookie of Apache's receives the copies; ours stay, so the ledger is read from both.
            spare = stand.add_bookie(cluster, "apache")
            lost.kill()
            wait_until(lambda: spare.bookie_id in ensemble(stand, metadata, ledger_id), 60, "the ledger has a copy more")
            wait_until(lambda: stand.run(metadata.under_replication.get(ledger_id)) is None, 30, "the mark is gone")

        async def copy() -> bytes:
            reader = await stand.our_client(cluster, "v2").open(ledger_id)
            entry = await reader.read_from(spare.bookie_id, 0)
            await reader.aclose()
            assert entry is not None
            return entry.payload

        assert stand.run(copy()) == b"copied"
    finally:
        stand.run(metadata.aclose())
        cluster.stop()


def check_time(stand: Stand, metadata: ClusterMetadata) -> int | None:
    return stand.run(metadata.under_replication.check_time_ms(PeriodicCheck.ALL_LEDGERS))


def ensemble(stand: Stand, metadata: ClusterMetadata, ledger_id: int) -> tuple[str, ...]:
    return stand.run(metadata.ledgers.get(ledger_id)).value.last_segment.ensemble


def test_java_reads_a_cluster_that_moved_from_its_file(stand: Stand, java_release: str) -> None:
    moved = make_cluster(stand.new_folder() / "c")
    root = f"moved-{java_release}"
    stand.make_root(root)
    report = move(moved, stand.uri(root))
    with moved.bookies_on(stand.uri(root)):
        java = stand.driver(java_release).connect(stand.uri(root), wire="v3")
        try:
            assert java.ledger_ids() == sorted([*moved.closed, *moved.open])
            for ledger_id, payloads in moved.closed.items():
                digest_type = java.metadata_of(ledger_id).digest_type
                reading = java.open(ledger_id, digest_type=digest_type, password=PASSWORD)
                assert [entry.payload for entry in reading.read(0, len(payloads) - 1)] == payloads
            for ledger_id, payloads in moved.open.items():
                reading = java.open(ledger_id, password=PASSWORD, recovery=True)
                assert [entry.payload for entry in reading.read(0, len(payloads) - 1)] == payloads
            fresh = java.create(password=PASSWORD)
            fresh.append(b"new")
            fresh.close()
            assert fresh.ledger_id > report["next_ledger_id"]
        finally:
            java.close()
