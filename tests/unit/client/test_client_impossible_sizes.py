"""Ledgers of sizes that cannot be are refused before anything is asked or written, and the argument is named."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.unit.client.cluster import fake_cluster, run
from triplicate import blocking
from triplicate.cli import main as command
from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, NotEnoughBookies
from triplicate.kv import create_store
from triplicate.log import Logs
from triplicate.metadata import ClusterMetadata, open_tree
from triplicate.runtime import real_host
from triplicate.sql import create_database, database_names

IMPOSSIBLE: dict[str, tuple[dict[str, Any], str]] = {
    "ack over write": ({"ack_quorum": 4}, r"ack_quorum is 4; .* at most write_quorum \(3\)"),
    "write over ensemble": ({"ensemble_size": 2}, r"write_quorum is 3; .* at most ensemble_size \(2\)"),
    "no bookie": ({"ensemble_size": 0}, "ensemble_size is 0; it must be at least 1"),
    "no copy": ({"write_quorum": 0}, "write_quorum is 0; it must be at least 1"),
    "no acknowledgement": ({"ack_quorum": 0}, "ack_quorum is 0; it must be at least 1"),
    "negative ensemble": ({"ensemble_size": -1}, "ensemble_size is -1"),
    "negative copies": ({"write_quorum": -3}, "write_quorum is -3"),
    "negative acknowledgements": ({"ack_quorum": -2}, "ack_quorum is -2"),
    "a fraction": ({"ensemble_size": 3.0}, "ensemble_size is 3.0; it must be a whole number"),
    "text": ({"write_quorum": "3"}, "write_quorum is '3'; it must be a whole number"),
    "a truth": ({"ack_quorum": True}, "ack_quorum is True; it must be a whole number"),
    "nothing": ({"ack_quorum": None}, "ack_quorum is None; it must be a whole number"),
    "more than the formats hold": ({"ensemble_size": 2**31}, "ensemble_size is 2147483648; .* at most 2147483647"),
}
CASES = pytest.mark.parametrize(("sizes", "message"), list(IMPOSSIBLE.values()), ids=list(IMPOSSIBLE))


@CASES
def test_a_ledger_of_impossible_sizes_is_refused_by_name(sizes: dict[str, Any], message: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            touched: list[str] = []
            cluster.store.fault = lambda session, name, path: touched.append(path)
            for create in (client.create, client.create_adv):
                with pytest.raises(ArgumentError, match=message):
                    await create(**sizes)
            assert touched == [], "the metadata was not asked"

    run(main())


@CASES
def test_a_log_of_impossible_sizes_is_refused_by_name(sizes: dict[str, Any], message: str) -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            logs = Logs(client)
            with pytest.raises(ArgumentError, match=message):
                await logs.create("impossible", LogSettings(**sizes))
            assert await logs.names() == []

    run(main())


def test_an_ensemble_that_the_cluster_has_not_is_another_matter() -> None:
    async def main() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            with pytest.raises(NotEnoughBookies, match="needs 1000000 writable bookies, there are 3"):
                await client.create(ensemble_size=1_000_000)

    run(main())


@pytest.fixture
def cluster_uri(tmp_path: Path) -> str:
    """A cluster without bookies: what gets so far as to look for them fails otherwise."""
    uri = f"sqlite://{tmp_path}/metadata.db"

    async def make() -> None:
        host = real_host("test")
        tree = await open_tree(uri, host)
        metadata = await ClusterMetadata.open(tree, host, create=True)
        await metadata.aclose()
        await tree.close()

    asyncio.run(make())
    return uri


def test_the_blocking_client_refuses_by_name_too(cluster_uri: str) -> None:
    with blocking.connect(cluster_uri) as client:
        for create in (client.create, client.create_adv):
            for sizes, message in IMPOSSIBLE.values():
                with pytest.raises(ArgumentError, match=message):
                    create(**sizes)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["ledger", "create", "--ack-quorum", "4"], 1, "ack_quorum is 4"),
        (["ledger", "create", "--ensemble", "2"], 1, "write_quorum is 3"),
        (["ledger", "create", "--ensemble", "0"], 2, "'--ensemble': 0 is not in the range x>=1"),
        (["ledger", "create", "--write-quorum", "-1"], 2, "'--write-quorum': -1"),
        (["ledger", "create", "--ack-quorum", "two"], 2, "'--ack-quorum': 'two'"),
        (["log", "create", "impossible", "--ack-quorum", "4"], 1, "ack_quorum is 4"),
        (["log", "create", "impossible", "--ensemble-size", "2"], 1, "write_quorum is 3"),
        (["log", "create", "impossible", "--write-quorum", "0"], 2, "'--write-quorum': 0"),
        (["log", "create", "impossible", "--ack-quorum", "1.5"], 2, "'--ack-quorum': '1.5'"),
    ],
)
def test_commands_refuse_by_name(arguments: list[str], code: int, words: str, cluster_uri: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main([*arguments, "--metadata", cluster_uri])
    assert ended.value.code == code
    assert words in capsys.readouterr().err


def test_too_few_writable_bookies_are_explained_by_those_that_only_read() -> None:
    """On a cluster with full disks "start more bookies" alone leads nowhere."""

    async def body() -> None:
        async with fake_cluster() as cluster, cluster.client() as client:
            for name in "bc":
                await cluster.set_readonly(name, True)
            words = r"there are 1 \(a\); .*; read-only for want of disk space or by request, see `triplicate bookie list`: b, c$"
            with pytest.raises(NotEnoughBookies, match=words):
                await client.create()
            for create in (create_database(client, "shop"), create_store(client, "basket")):
                with pytest.raises(NotEnoughBookies, match=r"needs 2 writable bookies, there are 1 \(a\).*: b, c$"):
                    await create
            assert await Logs(client).names() == []
            assert await database_names(client) == []

    run(body())
