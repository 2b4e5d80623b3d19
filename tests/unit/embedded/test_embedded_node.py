"""Nodes of applications that join a cluster of other processes, whose bookie has a port."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import triplicate
from tests.waiting import eventually
from triplicate.bookie import Bookie
from triplicate.client import Client
from triplicate.config import NodeSettings
from triplicate.embedded import SIZES_OF_TESTS
from triplicate.errors import EnvironmentFault, NoSuchStore, NotLeading, SqlError
from triplicate.kv import ANY, ChangeKind, create_store, session
from triplicate.log import LogSettings
from triplicate.metadata import open_cluster
from triplicate.runtime import UnsyncedDisk, real_host
from triplicate.sql import create_database, listed_nodes

ONE_COPY = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1)


@asynccontextmanager
async def up_folder(path: Path) -> AsyncIterator[str]:
    """A folder as `triplicate up` has it, with one bookie an empty database and an empty store `main`; the URI of its metadata."""
    path.mkdir()
    members = [{"name": "bookie-1", "kind": "bookie", "port": 1, "metrics_port": 2}]
    (path / "cluster.json").write_text(json.dumps({"v": 1, "instance_id": "", "members": members}))
    uri = f"sqlite://{path}/metadata.db"
    host = replace(real_host("bookie-1"), disk=UnsyncedDisk())
    metadata = await open_cluster(uri, host, create=True)
    settings = replace(SIZES_OF_TESTS.settings("bookie-1", str(path / "bookie-1")), host="127.0.0.1")
    bookie = await Bookie.start(host, settings, metadata)
    client = Client(host, metadata)
    try:
        await create_database(client, "main", ONE_COPY, lease_s=0.1)
        await create_store(client, "main", ONE_COPY, lease_s=0.1)
        yield uri
    finally:
        await client.aclose()
        await bookie.stop()
        await metadata.aclose()


def test_processes_join_the_cluster_of_a_folder_and_one_leads(tmp_path: Path) -> None:
    async def body() -> None:
        folder = tmp_path / "cluster"
        async with asyncio.timeout(60), up_folder(folder):
            first = triplicate.database(folder)
            leader = await first.__aenter__()
            await leader.execute("create table t(a)")
            await leader.execute("insert into t values (1)")
            async with triplicate.database(folder) as follower:
                assert (leader.is_leader, follower.is_leader) == (True, False)
                assert (await follower.execute("select a from t")).rows == [(1,)]
                with pytest.raises(SqlError) as failure:
                    await follower.execute("insert into t values (2)")
                assert leader.address is not None
                assert (failure.value.sqlstate, failure.value.hint) == ("25006", f"The leader is at 127.0.0.1:{leader.address[1]}.")
                dsn = await follower.dsn()
                assert follower.address is not None
                assert f"port={leader.address[1]},{follower.address[1]} " in dsn
                await first.__aexit__(None, None, None)
                await eventually(lambda: follower.is_leader)
                await follower.execute("insert into t values (2)")
                assert (await follower.execute("select a from t order by a")).rows == [(1,), (2,)]
                found = {one.name: (one.is_running, one.is_expected) for one in await listed_nodes(follower.node.client)}
                assert found == {"embedded-1": (False, False), "embedded-2": (True, True)}, "a guest that has ended is not expected back"
            assert sorted(path.name for path in folder.glob("embedded-?")) == ["embedded-1", "embedded-2"]

    asyncio.run(body())


def test_processes_have_copies_of_a_store_and_another_one_leads_when_the_leader_ends(tmp_path: Path) -> None:
    async def body() -> None:
        folder = tmp_path / "cluster"
        async with asyncio.timeout(60), up_folder(folder):
            first = triplicate.key_value(folder)
            leader = await first.__aenter__()
            _, position = await leader.put(b"a", b"1")
            async with triplicate.key_value(folder) as follower:
                assert (leader.is_leader, follower.is_leader) == (True, False)
                assert (await follower.get(b"a", session(position))).value == b"1"
                with pytest.raises(NotLeading) as failure:
                    await follower.put(b"a", b"2")
                with pytest.raises(NotLeading):
                    await follower.get(b"a")
                assert leader.node.address is not None
                assert failure.value.leader == follower.leader == f"127.0.0.1:{leader.node.address[1]}"
                async with await follower.watch(b"", position) as watch:
                    await leader.delete(b"a")
                    assert [change.kind for change in await anext(watch)] == [ChangeKind.DELETE]
                    await first.__aexit__(None, None, None)
                    await eventually(lambda: follower.is_leader)
                    await follower.put(b"a", b"3")
                    assert [change.value for change in await anext(watch)] == [b"3"]
                async with triplicate.database(folder, "main") as other, triplicate.key_value(other.node) as again:
                    assert (await again.get(b"a", ANY)).value == b"3"
                    assert not again.is_leader
                with pytest.raises(NoSuchStore):
                    async with triplicate.key_value(folder, "other"):
                        pass

    asyncio.run(body())


def test_a_process_joins_by_the_metadata_under_the_name_that_it_is_given(tmp_path: Path) -> None:
    async def body() -> None:
        async with asyncio.timeout(60), up_folder(tmp_path / "cluster") as uri:
            settings = NodeSettings(node_id="web", directory=str(tmp_path / "web"), name_wait_s=0.1)
            async with triplicate.database(uri, settings=settings) as database:
                assert database.is_leader
                with pytest.raises(EnvironmentFault, match="another node runs on this directory"):
                    async with triplicate.database(uri, settings=settings):
                        pass
            with pytest.raises(SqlError, match="does not exist"):
                async with triplicate.database(uri, "other", settings=settings):
                    pass

    asyncio.run(body())


def test_a_database_that_no_node_can_lead_is_not_waited_for_without_limit(tmp_path: Path) -> None:
    async def body() -> None:
        async with up_folder(tmp_path / "cluster"):
            pass  # Its bookie has stopped.
        with pytest.raises(EnvironmentFault, match=r"cannot be used after 0\.5 s: no node leads it; do its bookies run\?"):
            async with triplicate.database(tmp_path / "cluster", limit_s=0.5):
                pass

    asyncio.run(body())
