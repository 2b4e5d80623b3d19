"""The checks of a secured demonstration report open doors, logs without a key, and secrets that are shown."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import psycopg
import pytest

from triplicate.cli import ClusterFolder, ClusterMember
from triplicate.errors import BookieError
from triplicate.log import add_key
from triplicate_demo import security_audit

DSN = "host=127.0.0.1,127.0.0.1 port=1,2 dbname=flights user=administrator password=right sslmode=verify-full"
SECRET = "0123456789abcdefghijklmn"


class Intruder:
    """A client without credentials (connect, Client). `answers` are the errors of bookies; a bookie without one answers."""

    answers: ClassVar[dict[str, str]] = {}

    def __init__(self, uri: str) -> None:
        self.uri = uri

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def bookie_info(self, bookie_id: str) -> None:
        if bookie_id in self.answers:
            raise BookieError(self.answers[bookie_id])


def test_a_bookie_is_closed_only_if_it_refuses_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security_audit, "connect", Intruder)
    monkeypatch.setattr(Intruder, "answers", {"a": "bookie a answered UNAUTHORIZED", "b": "bookie b cannot be reached"})
    found = asyncio.run(security_audit.open_bookies("sqlite:///metadata.db", ["a", "b", "c"]))
    assert found == ["b: bookie b cannot be reached", "c: it answered"]


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ('FATAL: password authentication failed for user "administrator"', ""),
        ("FATAL: this node accepts connections with TLS only", ""),
        ("Connection refused", "Connection refused"),
        ("", "it let a client in"),
    ],
)
def test_every_node_is_tried_in_clear_and_by_a_wrong_password(monkeypatch: pytest.MonkeyPatch, answer: str, complaint: str) -> None:
    tried: list[dict[str, Any]] = []

    def connect(dsn: str, **_: Any) -> SimpleNamespace:
        tried.append(psycopg.conninfo.conninfo_to_dict(dsn))
        if answer:
            raise psycopg.OperationalError(answer)
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(psycopg, "connect", connect)
    found = security_audit.open_nodes(DSN, [1, 2])
    assert [(one["port"], one["sslmode"], one["password"]) for one in tried] == [
        ("1", "disable", "right"),
        ("1", "verify-full", "wrong"),
        ("2", "disable", "right"),
        ("2", "verify-full", "wrong"),
    ]
    assert [one.partition(": ")[2] for one in found] == [complaint] * 4 if complaint else found == []


def test_a_log_without_the_key_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"flights": "today", "database.flights": ""}

    async def head(name: str) -> SimpleNamespace:
        return SimpleNamespace(key_id=keys[name])

    monkeypatch.setattr(security_audit, "demo_logs", lambda _: SimpleNamespace(head=head))
    client: Any = None

    def found(key_id: str) -> list[str]:
        return asyncio.run(security_audit.plain_logs(client, list(keys), key_id))

    assert found("today") == ["log database.flights has the key '', not 'today'"]
    assert len(found("")) == 2, "a run without a key proves nothing"


def test_all_secrets_of_a_secured_folder_are_looked_for(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path / "c", "", (ClusterMember("bookie-1", "bookie", 20001, 20002),), is_secured=True)
    folder.write_configs()
    keys = str(tmp_path / "keys")
    add_key(keys, "today", "2026-11-26", lambda: b"k" * 32)
    found = security_audit.secrets_of(folder, keys)
    assert {"ca.key", "client.key", "bookie-1.key", "administrator.password", "operator.password", "the key today of logs"} <= set(found)
    assert sum(name.startswith("bookie-users.toml") for name in found) >= 6
    assert found["the key today of logs"] in Path(keys).read_text()
    assert found["administrator.password"] == folder.security.password("administrator")
    assert security_audit.shown_secrets(found, []) == []


def test_a_secret_in_a_log_or_on_a_command_line_is_reported_and_not_repeated(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"login as administrator with {SECRET}\n")
    command = [sys.executable, "-c", "input()", SECRET]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        found = security_audit.shown_secrets({"a.password": SECRET}, [log])
        process.kill()
    assert found == [f"a.password is in {log}", f"a.password is in the command line of process {process.pid}"]


def test_a_secret_that_is_read_wrongly_is_reported() -> None:
    assert security_audit.shown_secrets({"a.password": ""}, []) == ["a.password is too short to be a secret"]
