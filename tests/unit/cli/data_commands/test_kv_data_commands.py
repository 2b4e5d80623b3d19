"""``triplicate kv get|put|delete|scan|watch`` uses a store by the protocol of Redis, at whichever node serves it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
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
from triplicate.kv.resp.core.glob import Glob


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


def test_options_that_lack_something_are_refused() -> None:
    for words, message in ((["--nodes", "x"], "is no HOST:PORT"), (["--nodes", "h:1", "--user", "anna"], "--user needs a password")):
        failed = CliRunner().invoke(kv, ["get", "shop", "a", *words]).exception
        assert isinstance(failed, ConfigError)
        assert message in str(failed)


def test_a_prefix_stands_for_itself() -> None:
    for text in ("a*b", "[x]", "\\?", "ä-^"):
        assert Glob(literal(text)).prefix == text.encode()
        assert Glob(literal(text)).matches(text.encode())
