"""The administrator of a database, as its nodes know it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster, play, state_of
from tests.waiting import eventually
from triplicate.errors import ArgumentError, BadVersion, ConnectionLost
from triplicate.metadata import InjectedFault, own_paths
from triplicate.security import ScramVerifier
from triplicate.sql import Administrator, database_info, rename_database, set_administrator
from triplicate.sql.core.role_login import RoleLogin


async def everywhere(cluster: Cluster, role: str, password: str, name: str = "db") -> None:
    """Wait until every node lets the role in with this password."""

    async def login(node: str) -> RoleLogin | None:
        return await cluster.database(node, name).role_login(role)

    for node in cluster.nodes:
        while (found := await login(node)) is None or not ScramVerifier.parse(found.verifier or "").matches(password):
            await asyncio.sleep(0.005)
        assert found.is_administrator
        assert found.can_login


def test_nodes_know_the_administrator_as_soon_as_it_is_set_or_replaced(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        admin = cluster.client("admin")
        await cluster.leader()
        for node in cluster.nodes:
            assert await cluster.database(node).role_login("anna") is None
        await set_administrator(admin, "db", Administrator.of_password(admin, "anna", "first"))
        await everywhere(cluster, "anna", "first")
        await set_administrator(admin, "db", Administrator.of_password(admin, "anna", "second"))
        await everywhere(cluster, "anna", "second")
        await set_administrator(admin, "db", Administrator.of_password(admin, "berta", "third"))
        await everywhere(cluster, "berta", "third")
        for node in cluster.nodes:
            assert await cluster.database(node).role_login("anna") is None
        info = await database_info(admin, "db")
        assert info.administrator is not None
        assert info.administrator.name == "berta"

    play(tmp_path, scene, nodes=2)


def test_the_last_administrator_serves_while_the_metadata_are_away(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        admin = cluster.client("admin")
        await cluster.leader()
        await set_administrator(admin, "db", Administrator.of_password(admin, "anna", "first"))
        await everywhere(cluster, "anna", "first")
        lost = InjectedFault(raise_before=ConnectionLost("the connection broke before the answer came"))
        cluster.stage.store.fault = lambda session_id, operation, path: lost if session_id != admin.metadata.tree.session_id else None
        cluster.wake_watches()
        await set_administrator(admin, "db", Administrator.of_password(admin, "anna", "second"))
        await everywhere(cluster, "anna", "first")
        cluster.stage.store.fault = None
        await everywhere(cluster, "anna", "second")

    play(tmp_path, scene, nodes=2)


def test_a_renamed_database_keeps_its_administrator(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        admin = cluster.client("admin")
        await cluster.leader()
        await set_administrator(admin, "db", Administrator.of_password(admin, "anna", "first"))
        await rename_database(admin, "db", "shop")
        await eventually(lambda: all(node.databases.get("shop") is not None for node in cluster.nodes.values()))
        await everywhere(cluster, "anna", "first", "shop")

    play(tmp_path, scene)


def test_an_administrator_is_set_by_compare_and_set(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        admin = cluster.client("admin")
        await cluster.leader()
        path, refusals = own_paths.database_path(admin.metadata.own_root, "db"), 3

        def meanwhile(session_id: int, operation: str, touched: str) -> InjectedFault | None:
            nonlocal refusals
            if operation == "multi" and touched.startswith(path) and refusals:
                refusals -= 1
                return InjectedFault(raise_before=BadVersion(path))
            return None

        cluster.stage.store.fault = meanwhile
        await set_administrator(admin, "db", Administrator.of_password(admin, "anna", "first"))
        assert refusals == 0
        await everywhere(cluster, "anna", "first")
        refusals = 1000
        assert await state_of(set_administrator(admin, "db", Administrator.of_password(admin, "anna", "second"))) == "40001"
        cluster.stage.store.fault = None
        assert await state_of(set_administrator(admin, "none", Administrator.of_password(admin, "anna", "first"))) == "3D000"

    play(tmp_path, scene)


@pytest.mark.parametrize(("name", "password"), [("", "x"), (64 * "a", "x"), ("a\nb", "x"), ("a", ""), ("a", 1025 * "x"), ("a", "x\0")])
def test_names_and_passwords_that_no_client_could_send_are_refused(tmp_path: Path, name: str, password: str) -> None:
    async def scene(cluster: Cluster) -> None:
        with pytest.raises(ArgumentError) as refused:
            Administrator.of_password(cluster.client("admin"), name, password)
        assert len(password) < 2 or password not in str(refused.value)

    play(tmp_path, scene)
