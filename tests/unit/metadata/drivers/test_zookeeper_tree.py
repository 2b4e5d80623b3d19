"""ZooKeeper as the other drivers cannot be: BookKeeper's layout on the real thing, its sessions, its outages.

Source: BookKeeper `ZKRegistrationManager`, `ZkLedgerIdGenerator`, `AbstractZkLedgerManager`; ZooKeeper Programmer's Guide.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.unit.metadata.layout_rig import ELSEWHERE, INFO, new_metadata
from tests.unit.metadata.stores import Result, fresh_servers, run
from tests.zookeeper.server import ZooKeeperServer, shared_server
from triplicate.errors import (
    ArgumentError,
    BadVersion,
    ConfigError,
    ConnectionLost,
    LedgerExists,
    NodeExists,
    NoSuchLedger,
    SessionExpired,
    WrongCluster,
)
from triplicate.metadata import ClusterMetadata, CreateNode, SetData, Tree, open_cluster
from triplicate.metadata.drivers.renewing_tree import RenewingTree
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
from triplicate.runtime import real_host

HOST_NAME = "test"

LONG_S = 60.0
"""A session that outlasts a restart of the server, also on a machine that is slow today."""


async def session(servers: str, timeout_s: float = 10.0) -> ZooKeeperTree:
    return await ZooKeeperTree.open(servers, real_host(HOST_NAME), session_timeout_s=timeout_s)


async def patiently(operation: Callable[[], Awaitable[Result]]) -> Result:
    """Asked again until the connection is there: one that is made while a server starts may be answered late or never."""
    while True:
        try:
            return await operation()
        except ConnectionLost:
            await asyncio.sleep(0.1)


async def renewing(servers: str, timeout_s: float = 10.0) -> RenewingTree:
    async def open_session() -> Tree:
        return await session(servers, timeout_s)

    return RenewingTree(await open_session(), open_session, real_host(HOST_NAME))


def client_id(tree: ZooKeeperTree) -> tuple[int, bytes]:
    found: tuple[int, bytes] = tree._session._client.client_id
    return found


async def end_session(tree: ZooKeeperTree, servers: str) -> None:
    """End a session from outside: another client takes it up by its id and password, and closes it.

    Again, where the session's own client was quicker and has taken it back before it was closed.
    """

    def take_up_and_close() -> None:
        other = KazooClient(hosts=servers, client_id=client_id(tree))
        other.start(timeout=5)
        other.stop()
        other.close()

    while tree._over is None:
        await asyncio.to_thread(take_up_and_close)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                while tree._over is None:
                    await asyncio.sleep(0.01)


async def wakes(waiting: asyncio.Future[None]) -> bool:
    """Whether a watch woke, rather than being finished."""
    try:
        await waiting
    except SessionExpired:
        return False
    return True


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server of the test's own, to be stopped and paused."""
    own = ZooKeeperServer(tmp_path / "zookeeper")
    own.start()
    yield own
    own.stop()


async def fresh_root() -> str:
    """An address of the shared server with a root that nobody has."""
    return f"zk://{shared_server().address}/root-{uuid.uuid4().hex}/ledgers"


def test_a_new_cluster_looks_as_bookkeepers_tools_make_it() -> None:
    async def body() -> None:
        uri = await fresh_root()
        made = await open_cluster(uri, real_host(HOST_NAME), create=True)
        tree, root = made.tree, made.root
        assert (await tree.children(root))[0] == ["INSTANCEID", "LAYOUT", "available"]
        assert (await tree.children(f"{root}/available"))[0] == ["readonly"]
        layout, _ = await tree.get(f"{root}/LAYOUT")
        assert layout == b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
        instance_id, stat = await tree.get(f"{root}/INSTANCEID")
        assert instance_id.decode() == str(uuid.UUID(made.instance_id))
        # One transaction made them all.
        raw = KazooClient(hosts=shared_server().address)
        raw.start()
        numbers = {raw.exists(path).czxid for path in (root, f"{root}/available", f"{root}/available/readonly", f"{root}/INSTANCEID")}
        assert len(numbers) == 1
        assert {acl.perms for acl in raw.get_acls(root)[0]} == {31}
        raw.stop()
        raw.close()
        assert stat.ephemeral_owner == 0
        again = await open_cluster(uri, real_host(HOST_NAME))
        assert again.instance_id == made.instance_id
        await again.aclose()
        await made.aclose()

    run(body())


def test_an_address_that_insists_on_another_layout_is_refused() -> None:
    async def body() -> None:
        uri = await fresh_root()
        long = uri.replace("zk://", "zk+longhierarchical://")
        made = await open_cluster(long, real_host(HOST_NAME), create=True)
        await made.ledgers.create(7, new_metadata())
        assert await made.tree.exists(f"{made.root}/000/0000/0000/0000/L0007") is not None
        await made.aclose()
        for same in (uri, long, uri.replace("zk://", "zk+null://")):
            await (await open_cluster(same, real_host(HOST_NAME))).aclose()
        with pytest.raises(ConfigError, match="longhierarchical, not hierarchical"):
            await open_cluster(uri.replace("zk://", "zk+hierarchical://"), real_host(HOST_NAME))

    run(body())


def test_ids_and_ledgers_are_kept_where_bookkeeper_keeps_them() -> None:
    async def body() -> None:
        uri = await fresh_root()
        one, two = [await open_cluster(uri, real_host(HOST_NAME), create=True) for _ in range(2)]
        assert [await cluster.ledgers.new_id() for cluster in (one, two, one)] == [0, 1, 2]
        assert (await one.tree.children(f"{one.root}/idgen"))[0] == []
        created = await one.ledgers.create(12345, new_metadata())
        assert created.version == 0
        assert await one.tree.exists(f"{one.root}/00/0001/L2345") is not None
        with pytest.raises(LedgerExists):
            await two.ledgers.create(12345, new_metadata())
        watch = two.ledgers.watch(12345)
        await two.ledgers.get(12345)
        closed = await one.ledgers.update(12345, created.value.closed(9, 90), 0)
        await watch.changed()
        assert await two.ledgers.get(12345) == closed
        with pytest.raises(BadVersion):
            await two.ledgers.update(12345, created.value, 0)
        await one.ledgers.create(2**40, new_metadata())
        assert [ledger_id async for ledger_id in two.ledgers.ids()] == [12345, 2**40]
        await two.ledgers.delete(12345)
        assert await one.tree.exists(f"{one.root}/00") is None
        with pytest.raises(NoSuchLedger):
            await one.ledgers.get(12345)
        await one.tree.create(f"{one.root}/idgen-long")
        assert await two.ledgers.new_id() == 1 << 32
        await one.aclose()
        await two.aclose()

    run(body())


def test_a_bookie_waits_for_the_registration_of_its_previous_life() -> None:
    async def body() -> None:
        servers = await fresh_servers()
        host = real_host(HOST_NAME)
        dead = await ClusterMetadata.open(await session(servers), host, create=True)
        alive = await ClusterMetadata.open(await session(servers), host)
        await dead.bookies.register("b1", INFO)
        with pytest.raises(NodeExists, match="b1"):
            await alive.bookies.register("b1", ELSEWHERE, stale_wait_s=0.1)
        registering = asyncio.ensure_future(alive.bookies.register("b1", ELSEWHERE))
        await asyncio.sleep(0.1)
        assert not registering.done()
        await dead.aclose()
        await registering
        assert await alive.bookies.is_registered("b1")
        assert list(await alive.bookies.writable()) == ["b1"]
        # A life that begins at the same address waits for nothing.
        again = await ClusterMetadata.open(await session(servers), host)
        await again.bookies.register("b1", ELSEWHERE, stale_wait_s=0.0)
        assert await again.bookies.is_registered("b1")
        await again.aclose()
        await alive.aclose()

    run(body())


def test_a_session_that_is_over_finishes_the_tree_and_applies_nothing_more() -> None:
    async def body() -> None:
        servers = await fresh_servers()
        tree, other = await session(servers), await session(servers)
        await tree.create("/mine", ephemeral=True)
        watch = tree.watch("/mine")
        waiting = asyncio.ensure_future(watch.changed())
        await end_session(tree, servers)
        # The first wake-ups may be the loss of the connection and of the node; in the end there is the error.
        while await wakes(waiting):
            waiting = asyncio.ensure_future(watch.changed())
        for operation in (tree.create("/after"), tree.get("/"), tree.multi([])):
            with pytest.raises(SessionExpired):
                await operation
        with pytest.raises(SessionExpired):
            await tree.watch("/").changed()
        # kazoo by itself would have opened another session by now.
        await asyncio.sleep(0.3)
        assert (await other.children("/"))[0] == []
        await tree.close()
        await other.close()

    run(body())


def test_a_bookie_whose_session_is_lost_registers_again() -> None:
    async def body() -> None:
        servers = await fresh_servers()
        tree = await renewing(servers)
        cluster = await ClusterMetadata.open(tree, real_host(HOST_NAME), create=True)
        await cluster.bookies.register("b1", INFO)
        reader = await ClusterMetadata.open(await session(servers), real_host(HOST_NAME))
        watch = reader.bookies.watch()
        while "b1" not in await reader.bookies.writable():
            await watch.changed()
        first = tree.session_id
        assert isinstance(tree._tree, ZooKeeperTree)
        await end_session(tree._tree, servers)
        while await cluster.bookies.is_registered("b1"):
            await asyncio.sleep(0.01)
        await cluster.bookies.register("b1", INFO)
        while True:
            stat = await reader.tree.exists("/ledgers/available/b1")
            if stat is not None and stat.ephemeral_owner != first:
                break
            await watch.changed()
        assert tree.session_id == stat.ephemeral_owner != first
        await cluster.aclose()
        await reader.aclose()

    run(body())


def test_a_restart_of_zookeeper_keeps_sessions_nodes_and_watches(server: ZooKeeperServer) -> None:
    async def body() -> None:
        tree, other = await session(server.address, LONG_S), await session(server.address, LONG_S)
        await tree.create("/mine", b"one", ephemeral=True)
        await tree.create("/stays", b"one")
        watch = tree.watch("/stays")
        await tree.get("/stays")
        first = tree.session_id
        server.kill()
        await watch.changed()  # The connection is lost: somebody must look again.
        waiting = asyncio.ensure_future(tree.get("/stays"))
        await asyncio.sleep(0.2)
        assert not waiting.done(), "it waits for the connection"
        await asyncio.to_thread(server.start)
        with contextlib.suppress(ConnectionLost):
            assert (await waiting)[0] == b"one"
        assert (await patiently(lambda: tree.get("/stays")))[0] == b"one"
        await watch.changed()
        assert tree.session_id == first
        assert (await tree.get("/mine"))[1].ephemeral_owner == first
        await patiently(lambda: other.set("/stays", b"two"))
        while (await tree.get("/stays"))[0] != b"two":
            await watch.changed()
        # Quiet again, and then armed again.
        await asyncio.sleep(0.2)
        if watch._happened:
            await watch.changed()
        await other.set("/stays", b"three")
        await watch.changed()
        await tree.close()
        await other.close()

    run(body(), limit_s=2 * LONG_S)


class Gate:
    """A way to a server that forwards the connections that a test allows, and accepts the others without an answer."""

    def __init__(self, address: str) -> None:
        host, port = address.split(":")
        self._server = host, int(port)
        self._writers: list[asyncio.StreamWriter] = []
        self.silent = 0
        """Further connections that are accepted and not served."""
        self.broken = 0
        """Further connections, before those, that are accepted and closed."""

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if self.broken > 0:
            self.broken -= 1
            writer.close()
            return
        if self.silent > 0:
            self.silent -= 1
            await reader.read()
            writer.close()
            return
        back, forth = await asyncio.open_connection(*self._server)
        self._writers.append(forth)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(self._forward(reader, forth), self._forward(back, writer))

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()


@pytest.mark.parametrize("broken_before", [0, 7], ids=["at once", "after refusals"])
def test_a_server_that_accepts_a_connection_and_does_not_answer_costs_no_session(broken_before: int) -> None:
    """As one does that starts or hangs. kazoo alone waits for its answer until the session is over."""

    async def body() -> None:
        gate = Gate(shared_server().address)
        listening = await asyncio.start_server(gate.serve, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        tree = await session(f"127.0.0.1:{port}", 16.0)
        first = tree.session_id
        gate.broken, gate.silent = broken_before, 1
        gate.cut()
        assert (await patiently(lambda: tree.get("/")))[1].version == 0
        assert gate.silent == 0
        assert tree.session_id == first
        await tree.close()
        gate.cut()
        listening.close()

    run(body(), limit_s=LONG_S)


def test_a_store_that_comes_back_as_another_cluster_is_refused(server: ZooKeeperServer, tmp_path: Path) -> None:
    """Its disk was lost, and somebody made a new cluster: a bookie that went on there would collect all its ledgers as garbage."""

    async def body() -> None:
        uri = f"zk://{server.address}/ledgers"
        cluster = await open_cluster(uri, real_host(HOST_NAME), create=True)
        await cluster.bookies.register("b1", INFO)
        await cluster.ledgers.create(7, new_metadata())
        watch = cluster.bookies.watch()
        server.kill()
        (tmp_path / "zookeeper" / "data").rename(tmp_path / "lost")
        await asyncio.to_thread(server.start)
        # A server turns away who has seen later changes than it has made, so it must have made a few.
        stranger = await session(server.address)
        for number in range(40):
            await stranger.create(f"/{number}")
        with pytest.raises(WrongCluster, match=f"was cluster {cluster.instance_id} and is no cluster any more now"):
            await cluster.ledgers.exists(7)
        other = await open_cluster(uri, real_host(HOST_NAME), create=True)
        with pytest.raises(WrongCluster, match=f"was cluster {cluster.instance_id} and is {other.instance_id} now"):
            await cluster.bookies.register("b1", INFO)
        await watch.changed()
        assert await other.bookies.writable() == {}
        # As when the right metadata is brought back.
        await stranger.set("/ledgers/INSTANCEID", cluster.instance_id.encode())
        await cluster.bookies.register("b1", INFO)
        assert list(await other.bookies.writable()) == ["b1"]
        await cluster.aclose()
        await other.aclose()
        await stranger.close()

    run(body(), limit_s=60)


def test_a_request_that_does_not_get_through_is_reported_with_its_time_limit(
    server: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        cluster = await open_cluster(f"zk://{server.address}/ledgers", real_host(HOST_NAME), create=True)
        server.kill()
        monkeypatch.setattr("triplicate.metadata.drivers.zookeeper_tree.ANSWER_LIMIT_S", 0.2)
        monkeypatch.setattr("triplicate.metadata.retries.LONGEST_DELAY_S", 0.05)
        with pytest.raises(
            ConnectionLost,
            match=rf"idgen-long: ZooKeeper at {server.address} does not answer within 0.2 s; tried 8 times in ([2-9]|\d\d) s",
        ):
            await cluster.ledgers.new_id()
        await cluster.aclose()

    run(body())


def test_a_zookeeper_that_does_not_answer_leaves_the_outcome_unknown(server: ZooKeeperServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.metadata.drivers.zookeeper_tree.ANSWER_LIMIT_S", 0.5)

    async def body() -> None:
        tree = await session(server.address)
        await tree.create("/a", b"one")
        server.pause()
        with pytest.raises(ConnectionLost, match=r"/a: ZooKeeper at 127\.0\.0\.1:\d+ does not answer within 0\.5 s"):
            await tree.set("/a", b"two", 0)
        server.resume()
        while (await tree.get("/a"))[1].version == 0:
            await asyncio.sleep(0.02)
        assert (await tree.get("/a"))[0] == b"two", "applied although its answer was lost"
        await tree.close()

    run(body())


def test_a_write_whose_connection_breaks_is_not_sent_again(server: ZooKeeperServer) -> None:
    async def body() -> None:
        tree = await session(server.address, LONG_S)
        await tree.create("/q")
        server.pause()
        writing = [asyncio.ensure_future(tree.create("/q/n-", sequential=True)) for _ in range(3)]
        while len(tree._session._client._pending) < 3:
            await asyncio.sleep(0.01)  # Not on their way yet: what was never sent may be sent on the next connection.
        server.kill()
        await asyncio.to_thread(server.start)
        for write in writing:
            with pytest.raises(ConnectionLost):
                await write
        # Where the server takes longer to come back than a session lasts, there is nothing left to send on.
        with contextlib.suppress(SessionExpired):
            assert (await patiently(lambda: tree.children("/q")))[0] == []
        await tree.close()
        later = await session(server.address)
        assert (await later.children("/q"))[0] == []
        await later.close()

    run(body(), limit_s=2 * LONG_S)


def test_what_would_make_zookeeper_drop_the_connection_is_refused_here() -> None:
    async def body() -> None:
        tree = await session(await fresh_servers())
        await tree.create("/a")
        half = b"x" * 600_000
        with pytest.raises(ArgumentError, match="/a and 1 more"):
            await tree.multi([SetData("/a", half), CreateNode("/b", half)])
        with pytest.raises(ArgumentError, match="Unicode"):
            await tree.create("/\ud800")
        with pytest.raises(ArgumentError, match="/bell"):
            await tree.create("/bell\x07")
        await tree.create("/" + "long" * 10_000, b"x" * 1_000_000)
        assert await tree.exists("/b") is None
        await tree.close()

    run(body())


def test_more_requests_than_fit_at_once_are_sent_in_order() -> None:
    async def body() -> None:
        tree = await session(await fresh_servers())
        await tree.create("/a")
        sets = [asyncio.ensure_future(tree.set("/a", b"%d" % number, number)) for number in range(2500)]
        await asyncio.gather(*sets)
        assert (await tree.get("/a"))[0] == b"2499"
        await tree.close()

    run(body())
