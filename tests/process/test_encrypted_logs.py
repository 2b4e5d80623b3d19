"""Encrypted logs and databases through the commands: keys in files, what bookies store, rotation, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import Up, run, started
from tests.waiting import wait_until

SECRET = "nobody but the reader knows this"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("encrypted")


@pytest.fixture(scope="module")
def keys(folder: Path) -> str:
    path = folder / "keys"
    assert at_once("log", "key", "new", str(path), "first").stdout == "first\n"
    return str(path)


@pytest.fixture(scope="module")
def up(folder: Path, keys: str) -> Iterator[Up]:
    with Up(folder / "c", "--bookies", "3", "--nodes", "1", TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys) as running:
        yield running


def on_disks(up: Up) -> bytes:
    """The content of the disks of the bookies and the metadata store."""
    folders = [up.folder / name for name in up.members if name.startswith("bookie")]
    files = [*up.folder.glob("metadata.db*"), *(path for folder in folders for path in folder.rglob("*"))]
    return b"".join(path.read_bytes() for path in files if path.is_file())


def test_records_are_written_read_and_followed_with_the_key_and_not_without(up: Up, keys: str) -> None:
    uri = up.uri
    run("log", "create", "events", "--key", "first", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys)
    run("log", "append", "events", SECRET, "b", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys)
    assert run("log", "read", "events", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys).stdout == f"{SECRET}\nb\n"
    assert json_at_once("log", "show", "events", uri=uri)["key"] == "first"
    at_once("log", "create", "plain", uri=uri)
    at_once("log", "append", "plain", "what anybody may know", uri=uri)
    found = on_disks(up)
    assert SECRET.encode() not in found
    assert b"what anybody may know" in found
    for refused in (("log", "read", "events"), ("log", "append", "events", "in plain text")):
        answer = at_once(*refused, uri=uri, check=False)
        assert answer.returncode == 1
        assert answer.stderr.startswith("triplicate: log 'events' is encrypted with key 'first', which is not in")
        assert "log_client.keys_file (TRIPLICATE_LOG_CLIENT_KEYS_FILE)" in answer.stderr
        assert answer.stderr.count("\n") == 1
    assert at_once("log", "read", "events", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys).stdout == f"{SECRET}\nb\n", (
        "nothing was appended"
    )


def test_a_key_is_rotated_while_a_reader_follows(up: Up, keys: str) -> None:
    uri = up.uri
    at_once("log", "create", "rotated", "--key", "first", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys)
    at_once("log", "append", "rotated", "a", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys)
    with started("log", "tail", "rotated", "--from", "earliest", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys) as tail:
        assert tail.stdout is not None
        assert tail.stdout.readline() == "a\n"
        assert at_once("log", "key", "new", keys, "second").stdout == "second\n"
        assert "under key second" in run("log", "key", "rotate", "rotated", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys).stderr
        at_once("log", "append", "rotated", "b", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys)
        assert tail.stdout.readline() == "b\n", "the follower has read its key file again"
    assert at_once("log", "read", "rotated", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys).stdout == "a\nb\n"
    assert at_once("log", "key", "list", keys).stdout == "first\nsecond\n"


def test_an_encrypted_database_serves_and_its_rows_are_on_no_bookie(up: Up, keys: str) -> None:
    uri = up.uri
    at_once("database", "create", "shop", "--key", "first", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys)

    def prompt(*statements: str) -> str:
        chosen = [word for statement in statements for word in ("-c", statement)]
        return at_once("sql", "shop", "--small", *chosen, uri=uri, check=False).stdout

    wait_until(lambda: "1" in prompt("select 1"), 30.0, "the database is led")
    prompt("create table t(v text)", f"insert into t values('{SECRET}')")
    assert SECRET in prompt("select v from t")
    at_once("database", "snapshot", "shop", uri=uri, TRIPLICATE_LOG_CLIENT_KEYS_FILE=keys)
    assert SECRET.encode() not in on_disks(up)


def test_the_commands_never_print_a_key_and_refuse_a_file_that_others_may_read(up: Up, tmp_path: Path) -> None:
    path = tmp_path / "keys"
    made = run("log", "key", "new", str(path))
    secret = path.read_text().splitlines()[-1].partition("= ")[2]
    assert len(secret) == 44
    outputs = [made, at_once("log", "key", "new", str(path), "--json"), at_once("log", "key", "list", str(path))]
    assert not [output for output in outputs if secret in output.stdout + output.stderr]
    path.chmod(0o640)
    for refused in (("log", "key", "list", str(path)), ("log", "create", "refused", "--key", "first")):
        answer = at_once(*refused, uri=up.uri, check=False, TRIPLICATE_LOG_CLIENT_KEYS_FILE=str(path))
        assert answer.returncode == 1
        assert f"chmod 600 {path}" in answer.stderr
        assert secret not in answer.stderr
