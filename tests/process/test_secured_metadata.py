"""Bookies, commands and clients on a ZooKeeper with TLS, SASL and ACLs, as separate processes.

Source: BookKeeper `zkEnableSecurity`; docs/security.md, the door of the metadata.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.process.running import TIMEOUT_S, command, environment
from tests.waiting import wait_until
from tests.zookeeper.secured import OTHER_PASSWORD, OTHER_USER, PASSWORD, USER, SecuredZooKeeper
from triplicate import connect
from triplicate.metadata import open_cluster
from triplicate.runtime import real_host

ROOT = "/ledgers"


def finished(variables: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*arguments),
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def bookie_arguments(folder: Path, name: str) -> list[str]:
    options = {"bookie-id": name, "host": "127.0.0.1", "port": str(free_port())}
    options |= {"journal-directories": f"{folder}/{name}/journal", "ledger-directories": f"{folder}/{name}/ledgers"}
    return ["bookie", *(part for option, value in options.items() for part in (f"--{option}", value))]


class Secured:
    """A cluster of two bookies on a secured ZooKeeper."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.zookeeper = SecuredZooKeeper(folder / "server")
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def variables(self) -> dict[str, str]:
        return dict(self.zookeeper.variables(ROOT))

    @property
    def uri(self) -> str:
        return self.variables["TRIPLICATE_METADATA"]

    def start(self) -> None:
        self.zookeeper.server.start()
        made = finished(self.variables, "cluster", "init", self.uri)
        assert made.returncode == 0, made.stderr
        with (self.folder / "bookies.log").open("wb") as log:
            for name in ("one", "two"):
                arguments = command(*bookie_arguments(self.folder, name))
                self.processes.append(
                    subprocess.Popen(arguments, env=environment(**self.variables), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                )
        wait_until(lambda: len(self.listed()) == 2, TIMEOUT_S, "two bookies are registered")

    def listed(self) -> list[str]:
        """The registered bookies."""

        async def body() -> list[str]:
            async with await open_cluster(self.uri, real_host("looks"), access=self.zookeeper.access()) as cluster:
                return list((await cluster.bookies.registered()).names)

        return asyncio.run(body())

    def stop(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self.zookeeper.server.stop()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    cluster = Secured(tmp_path_factory.mktemp("secured"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def test_entries_are_written_and_no_node_is_open(secured: Secured) -> None:
    async def body() -> list[bytes]:
        security, metadata = secured.zookeeper.client_security, secured.zookeeper.settings()
        async with connect(secured.uri, security=security, metadata=metadata) as client:
            async with await client.create(ensemble_size=2, write_quorum=2, ack_quorum=2) as writer:
                for number in range(10):
                    await writer.append(b"%d" % number)
            async with await client.open(writer.ledger_id) as reader:
                return [bytes(entry.payload) for entry in await reader.read(0, 9)]

    assert asyncio.run(body()) == [b"%d" % number for number in range(10)]
    looked = finished(secured.variables, "cluster", "secure-metadata", "--dry-run", "--json")
    report = json.loads(looked.stdout)
    assert (looked.returncode, report["open"], report["other"], report["refused"]) == (0, 0, 0, 0), report
    assert report["nodes"] > 15


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"TRIPLICATE_METADATA_USER": OTHER_USER}, f"ZooKeeper refuses user {OTHER_USER} (metadata.user, metadata.password_file"),
        ({"TRIPLICATE_METADATA_USER": "", "TRIPLICATE_METADATA_PASSWORD_FILE": ""}, "authenticated sessions only"),
    ],
    ids=["wrong password", "no user"],
)
def test_a_bookie_without_the_right_access_does_not_start(secured: Secured, changed: dict[str, str], expected: str, tmp_path: Path) -> None:
    variables = secured.variables | changed | {"TRIPLICATE_PROCESS_LOG_LEVEL": "error"}
    refused = finished(variables, *bookie_arguments(tmp_path, "intruder"))
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert expected in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert PASSWORD not in refused.stderr
    assert secured.listed() == ["one", "two"]


def test_another_user_of_zookeeper_is_told_whose_the_nodes_are_not(secured: Secured) -> None:
    path = secured.zookeeper.password_file("other", OTHER_PASSWORD)
    answer = finished(
        secured.variables | {"TRIPLICATE_METADATA_USER": OTHER_USER, "TRIPLICATE_METADATA_PASSWORD_FILE": path}, "ledger", "list"
    )
    assert answer.returncode == 1
    assert answer.stdout == ""
    assert f"{ROOT}/INSTANCEID: its ACL in ZooKeeper does not allow this to user {OTHER_USER}" in answer.stderr


def test_no_command_line_and_no_output_has_the_password(secured: Secured) -> None:
    lines = [Path(f"/proc/{process.pid}/cmdline").read_bytes() for process in secured.processes]
    lines.append(Path(f"/proc/{secured.zookeeper.server.pid}/cmdline").read_bytes())
    lines += [path.read_bytes() for path in secured.folder.rglob("*log")]
    assert all(lines[:3])
    assert not any(PASSWORD.encode() in line for line in lines)
    status = finished(secured.variables, "cluster", "status", "--json")
    assert PASSWORD not in status.stdout + status.stderr
    assert USER not in json.loads(status.stdout)["problems"]
