"""One cluster for all tests of this folder; one shared database for tests that only need tables, and a separate one on request."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.clients.foreign import JDBC_JAR
from tests.clients.stand import Db, Stand, set_limits, unique
from triplicate.cli import local_cluster


@pytest.fixture(scope="session")
def stand() -> Iterator[Stand]:
    place = Path(tempfile.mkdtemp(prefix="tc-"))
    try:
        with local_cluster(place / "c", bookies=3, nodes=3, begin=lambda folder: set_limits(folder.path)) as cluster:
            yield Stand(cluster)
    finally:
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def shared(stand: Stand) -> Db:
    """A shared database for tests that use their own table only."""
    return stand.create("shared")


@pytest.fixture
def database(stand: Stand) -> Db:
    """A separate database for tests that depend on its position or its leader."""
    return stand.create(unique("db"))


@pytest.fixture
def table(shared: Db) -> Iterator[str]:
    """The name of a table that does not exist yet in `shared`."""
    name = unique("t")
    yield name
    with shared.writable() as connection:
        connection.execute(f"DROP TABLE IF EXISTS {name}".encode())


@pytest.fixture(scope="module")
def java() -> Iterator[JavaGateway]:
    if not JDBC_JAR.exists():
        pytest.skip("pgjdbc is not installed: scripts/clients.py says why")
    port, process = launch_gateway(classpath=str(JDBC_JAR), die_on_exit=True, return_proc=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    yield gateway
    gateway.shutdown()
    process.stdin.close()
    process.wait(30)
