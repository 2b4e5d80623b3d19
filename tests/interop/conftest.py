"""Fixtures of the tests against Apache BookKeeper, and the table of their results.

A test of the matrix uses the fixture `cell` and runs once per client, cluster, wire and digest. Any other test uses `stand` (see
``stand.py``) and parametrises its needs (`pytest.mark.parametrize` with readable ids). With a Java client it uses `java_release`: it then
runs with the newest release, and in ``make interop-full`` with the oldest as well. For example::

    @pytest.mark.parametrize("bookies", CLUSTERS)
    def test_java_reads_our_entries(stand: Stand, bookies: str, java_release: str) -> None:
        cluster = stand.cluster(bookies)
        writer = stand.run(stand.our_client(cluster, "v2").create(ensemble_size=cluster.ensemble_size))
        stand.run(writer.append(b"hello"))
        stand.run(writer.close())
        reading = stand.java_client(java_release, cluster, "v3").open(writer.ledger_id)
        assert [entry.payload for entry in reading.read(0, 0)] == [b"hello"]

Our client runs on a loop in another thread: `Stand.run` runs a coroutine there. All tests share clusters, drivers and clients. A test that
stops, kills or pauses one uses ``new_cluster``, ``add_bookie``, ``new_driver`` or ``new_client``, or restarts it before the test ends.
Every wait has a limit. No test is skipped: where the protocol rules an operation out, the test expects the refusal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.interop import table
from tests.interop.bookies import Cluster
from tests.interop.driver import NEWEST, OLDEST
from tests.interop.sides import Side, side
from tests.interop.stand import CLUSTERS, OURS, Stand
from triplicate import DigestType

WIRES = ("v2", "v3")
PASSWORD = b"pass \xff word"


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of a cell in the matrix."""

    client: str
    bookies: str
    wire: str
    digest_type: DigestType

    def __str__(self) -> str:
        return f"{self.client}-{self.bookies}-{self.wire}-{self.digest_type.name}"


@dataclass(frozen=True)
class Cell:
    """One cell of the matrix, ready to use."""

    cluster: Cluster
    side: Side
    """The client under test."""
    others: tuple[Side, ...]
    """The other implementation over the same wire, in every release that takes part."""
    wire: str
    digest_type: DigestType
    password: bytes = PASSWORD


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--interop-full", action="store_true", help="run the tests with the oldest Java client as well")


def releases(config: pytest.Config) -> tuple[str, ...]:
    return (NEWEST, OLDEST) if config.getoption("--interop-full") else (NEWEST,)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    java = releases(metafunc.config)
    if "java_release" in metafunc.fixturenames:
        metafunc.parametrize("java_release", java, ids=[f"java-{release}" for release in java])
    if "coordinates" in metafunc.fixturenames:
        clients = (OURS, *(f"java-{release}" for release in java))
        places = [
            Coordinates(client, bookies, wire, digest_type)
            for bookies in CLUSTERS
            for client in clients
            for wire in WIRES
            for digest_type in DigestType
        ]
        metafunc.parametrize("coordinates", places, ids=str)


@pytest.fixture(scope="session")
def stand() -> Iterator[Stand]:
    """All shared objects; closed at the end of the run."""
    stand = Stand()
    try:
        yield stand
    finally:
        stand.close()


@pytest.fixture
def cell(stand: Stand, coordinates: Coordinates, request: pytest.FixtureRequest) -> Cell:
    cluster = stand.cluster(coordinates.bookies)
    other_names = [f"java-{release}" for release in releases(request.config)] if coordinates.client == OURS else [OURS]
    return Cell(
        cluster,
        side(stand, coordinates.client, cluster, coordinates.wire),
        tuple(side(stand, name, cluster, coordinates.wire) for name in other_names),
        coordinates.wire,
        coordinates.digest_type,
    )


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Record the result of each test for the table."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.when == "call" or report.failed:
        callspec = getattr(item, "callspec", None)
        place = callspec.params.get("coordinates") if callspec is not None else None
        table.note(item.nodeid, None if place is None else (place.client, place.bookies, place.wire, place.digest_type.name), report.passed)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table, and save it for the document."""
    text = table.render(releases(config))
    if text:
        terminalreporter.section("interoperability")
        terminalreporter.write_line(text)
        table.keep(text)
