"""``triplicate kv get|put|delete|scan|watch`` uses a store by the protocol of Redis, at whichever node serves it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.unit.kv.resp.resp_rig import Stand, serving
from tests.waiting import LIMIT_S
from triplicate.cli.data_commands import kv_data_commands
from triplicate.cli.data_commands.kv_command import kv
from triplicate.cli.data_commands.kv_data_commands import literal
from triplicate.errors import ArgumentError, ConfigError, EnvironmentFault
from triplicate.kv import StoreInfo
from triplicate.kv.resp.core.glob import Glob
from triplicate.replica.election import Candidate


@contextmanager
def served(folder: Path, *, follows: bool = False) -> Iterator[Stand]:
    """A server on a loop of its own."""
    opened: Future[Stand] = Future()
    ending = threading.Event()

    async def body() -> None:
        async with serving(folder, ("bank", "shop")) as stand:
            if follows:
                await stand.follow()
            opened.set_result(stand)
            await asyncio.get_running_loop().run_in_executor(None, ending.wait)

    thread = threading.Thread(target=lambda: asyncio.run(body()))
    thread.start()
    try:
        yield opened.result(LIMIT_S)
    finally:
        ending.set()
        thread.join(LIMIT_S)


def run(stand: Stand, *words: str) -> Result:
    return CliRunner().invoke(kv, [*words, "--nodes", f"127.0.0.1:{stand.port}"])


def test_keys_are_put_read_scanned_and_deleted(tmp_path: Path) -> None:
    with served(tmp_path) as stand:
        assert run(stand, "put", "shop", "user:1", "anna").exit_code == 0
        assert run(stand, "put", "shop", "user:2", "ben", "--expires-after", "100").exit_code == 0
        assert run(stand, "put", "shop", "user*", "x").exit_code == 0
        assert run(stand, "put", "bank", "user:1", "other").exit_code == 0
        assert isinstance(run(stand, "put", "shop", "user:1", "carl", "--if-absent").exception, ArgumentError)
        assert run(stand, "get", "shop", "user:1").stdout == "anna\n"
        assert run(stand, "get", "shop", "user:1", "--level", "bounded 5").stdout == "anna\n"
        assert run(stand, "scan", "shop", "user:").stdout == "user:1\nuser:2\n"
        assert run(stand, "scan", "shop", "user*", "--values").stdout == "user*\tx\n"
        assert run(stand, "delete", "shop", "user:1", "user:2", "missing").stdout == "2\n"
        assert isinstance(run(stand, "get", "shop", "user:1").exception, ArgumentError)
        refused = run(stand, "get", "nowhere", "a").exception
        assert "there is no store 'nowhere'" in str(refused)


def test_a_node_that_follows_is_passed_over_and_named_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_data_commands, "LEADER_LIMIT_S", 0.3)
    with served(tmp_path / "a", follows=True) as follower:
        failed = run(follower, "get", "bank", "a").exception
        assert isinstance(failed, EnvironmentFault)
        assert "READONLY" in str(failed)
        assert isinstance(run(follower, "get", "bank", "a", "--level", "any").exception, ArgumentError)
        with served(tmp_path / "b") as leader:
            nodes = f"127.0.0.1:1,127.0.0.1:{follower.port},127.0.0.1:{leader.port}"
            assert CliRunner().invoke(kv, ["put", "bank", "a", "1", "--nodes", nodes]).exit_code == 0
            assert run(leader, "get", "bank", "a").stdout == "1\n"


def test_the_leader_that_a_node_names_is_asked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kv_data_commands, "LEADER_LIMIT_S", 0.0)
    with served(tmp_path / "a", follows=True) as follower, served(tmp_path / "b") as leader:
        named = Candidate("n2", "127.0.0.1:2", 0, resp_address=f"127.0.0.1:{leader.port}")
        follower.store.find_leader = lambda: named
        assert run(follower, "put", "bank", "a", "1").exit_code == 0
        assert run(leader, "get", "bank", "a").stdout == "1\n"
    with served(tmp_path / "c", follows=True) as follower:
        follower.store.find_leader = lambda: named
        failed = str(run(follower, "put", "bank", "a", "1").exception)
        assert f"the leader of store bank is node n2 at {named.resp_address}" in failed, "it does not answer"


def test_without_addresses_the_nodes_are_found_in_the_metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("TRIPLICATE_METADATA", "TRIPLICATE_METADATA_URI", "TRIPLICATE_KV_NODES", "TRIPLICATE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    failed = CliRunner().invoke(kv, ["get", "shop", "a"]).exception
    assert isinstance(failed, ConfigError)
    for words in ("TRIPLICATE_KV_NODES", "`triplicate kv show shop`", "which cluster?"):
        assert words in str(failed)
    nodes: list[Candidate] = []

    async def info(_: object, name: str) -> StoreInfo:
        return StoreInfo(name, b"", "log", 0, 0, leader="n2", nodes=tuple(nodes))

    def with_client(uri: str, work: Callable[[object], Coroutine[object, object, None]]) -> None:
        assert uri == "memory:x"
        asyncio.run(work(object()))

    monkeypatch.setattr(kv_data_commands, "store_info", info)
    monkeypatch.setattr(kv_data_commands, "run_with_client", with_client)
    failed = CliRunner().invoke(kv, ["get", "shop", "a", "--metadata", "memory:x"]).exception
    assert isinstance(failed, ConfigError)
    assert "no node of store shop serves RESP now" in str(failed)
    with served(tmp_path / "b") as leader:
        nodes += [
            Candidate("n0", "127.0.0.1:1", 0),
            Candidate("n1", "127.0.0.1:1", 0, resp_address="127.0.0.1:1"),
            Candidate("n2", "127.0.0.1:2", 0, resp_address=f"127.0.0.1:{leader.port}"),
        ]
        door = {"nodes": None, "metadata": "memory:x"}
        assert kv_data_commands._addresses(door, "shop") == f"127.0.0.1:{leader.port},127.0.0.1:1"
        monkeypatch.setenv("TRIPLICATE_METADATA", "memory:x")
        assert CliRunner().invoke(kv, ["put", "bank", "a", "1"]).exit_code == 0


def test_options_that_lack_something_are_refused() -> None:
    for words, message in ((["--nodes", "x"], "is no HOST:PORT"), (["--nodes", "h:1", "--user", "anna"], "--user needs a password")):
        failed = CliRunner().invoke(kv, ["get", "shop", "a", *words]).exception
        assert isinstance(failed, ConfigError)
        assert message in str(failed)


def test_a_prefix_stands_for_itself() -> None:
    for text in ("a*b", "[x]", "\\?", "ä-^"):
        assert Glob(literal(text)).prefix == text.encode()
        assert Glob(literal(text)).matches(text.encode())
