"""`triplicate up --secure`: every door is protected, commands find their way in, nobody else does, and no secret is written anywhere."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import ssl
import stat
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.process.at_once import at_once
from tests.process.running import TIMEOUT_S, Up, run
from tests.waiting import wait_until
from triplicate.cli.supervision.cluster_folder import CLIENT_FILE, SECURITY

SMALL = ("--bookies", "3", "--nodes", "1")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("secured") / "c"
    with Up(folder, "--secure", *SMALL, TRIPLICATE_PROCESS_LOG_LEVEL="debug", TRIPLICATE_SECURITY_RELOAD_INTERVAL_S="0.2") as cluster:
        client(cluster, "log", "create", "events")
        client(cluster, "database", "create", "shop")
        yield cluster


def client(up: Up, *arguments: str, text: str | None = None, check: bool = True, **settings: str) -> str:
    """Run a command with the settings of the secured cluster; returns all that it prints."""
    answer = run(*arguments, text=text, check=check, TRIPLICATE_CONFIG=str(up.folder / CLIENT_FILE), **settings)
    return answer.stdout + answer.stderr


def secrets_of(folder: Path) -> dict[str, str]:
    """Every secret of a secured folder by its file: passwords, verifiers, hashes, and lines of private keys."""
    found: dict[str, str] = {}
    for path in sorted((folder / SECURITY).iterdir()):
        text = path.read_text()
        if path.suffix == ".password":
            found[path.name] = text.strip()
        elif path.suffix == ".key":
            found[path.name] = text.splitlines()[1]
        elif path.name == "bookie-users.toml":
            values = re.findall(r'= "([^"]{16,})"', text)
            assert len(values) >= 6
            found |= {f"{path.name} {number}": value for number, value in enumerate(values)}
    assert len(found) > 10
    return found


def test_commands_need_nothing_else_in_the_directory_of_a_secured_cluster(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    here = up.folder.parent
    # The default folder is in the present directory.
    (here / "triplicate-data").symlink_to(up.folder)
    monkeypatch.chdir(here)
    try:
        run("log", "append", "events", text="one\n")
        assert run("log", "read", "events").stdout == "one\n"
        run("ledger", "append", "new", "two")
        statements = ("create table t (a int)", "insert into t values (7)", "select a + 1 from t")
        assert " 8 " in run("sql", "shop", "--small", *(word for one in statements for word in ("-c", one))).stdout
        assert json.loads(run("cluster", "status", "--json").stdout)["healthy"]
    finally:
        (here / "triplicate-data").unlink()


def test_a_client_without_the_files_gets_in_nowhere(up: Up, tmp_path: Path) -> None:
    plain = at_once("ledger", "append", "new", "x", uri=up.uri, check=False)
    assert plain.returncode == 1
    assert "UNAUTHORIZED" in plain.stderr or "authentication" in plain.stderr
    sql = client(up, "sql", "shop", "--small", "-U", "mallory", "-c", "select 1", check=False, PGPASSWORD="a-wrong-password")
    assert "password authentication failed" in sql
    assert "a-wrong-password" not in sql
    copy = tmp_path / "client.toml"
    copy.write_text((up.folder / CLIENT_FILE).read_text().replace('bookie_tls = "required"', 'bookie_tls = "off"'))
    half = run("log", "read", "events", check=False, TRIPLICATE_CONFIG=str(copy))
    assert half.returncode == 1
    assert "security.required is set" in half.stderr
    assert "client.bookie_tls" in half.stderr


def test_a_renewed_certificate_is_shown_to_clients_without_a_restart(up: Up) -> None:
    def ends() -> dict[str, float]:
        shown = run("cluster", "status", "--json", check=False, TRIPLICATE_CONFIG=str(up.folder / CLIENT_FILE)).stdout
        return {one["place"]: one["expires_s"] for one in json.loads(shown)["certificates"]["items"]}

    before = ends()
    for name in ("bookie-1", "node-1"):
        at_once("security", "renew", str(up.folder / SECURITY), name, "--days", "300")
    wait_until(lambda: all(ends()[place] < before[place] for place in ("bookie bookie-1", "node node-1")), TIMEOUT_S, "both are in use")
    assert ends()["bookie bookie-2"] == before["bookie bookie-2"]


def test_every_file_with_a_secret_is_its_owners_alone(up: Up) -> None:
    folder = up.folder / SECURITY
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_no_secret_is_in_a_log_a_page_an_output_or_a_process_list(up: Up, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.password"
    wrong.touch(mode=0o600)
    wrong.write_text("a-wrong-password-of-a-bookie\n")
    typed = "a-role-password-that-is-typed"
    bookie = str(up.folder / "bookie-1" / "bookie.toml")
    client(up, "sql", "shop", "--small", "-c", "create table secret (a int)", "-c", "insert into secret values (1)")
    runs: list[Callable[[], str]] = [
        lambda: client(up, "log", "append", "events", text="a record\n"),
        lambda: client(up, "ledger", "append", "new", "an entry"),
        lambda: client(up, "sql", "shop", "--small", "-c", "select 1", check=False, PGPASSWORD=typed),
        lambda: client(up, "ledger", "append", "new", "x", check=False, TRIPLICATE_CLIENT_PASSWORD_FILE=str(wrong)),
        lambda: client(up, "cluster", "status", "--json", check=False),
        lambda: client(up, "database", "show", "shop", "--json"),
        lambda: client(up, "sql", "shop", "--dsn"),
        lambda: client(up, "bookie", "list", "--json"),
        lambda: client(up, "doctor", "--config", bookie, "--json", check=False),
        lambda: client(up, "bookie", "--config", bookie, "status", "--json", check=False),
    ]
    with ThreadPoolExecutor(4) as pool:
        outputs = [*pool.map(lambda one: one(), runs), json.dumps(up.facts)]
    shown = at_once("security", "show", str(up.folder / SECURITY), "--json")
    outputs.append(shown.stdout + shown.stderr)
    send_nonsense(up, "bookie-1")
    pages = [urllib.request.urlopen(one["metrics"], timeout=10).read().decode() for one in up.members.values() if one["metrics"]]
    assert all("triplicate_certificate_expires_seconds" in page for page in pages)
    secrets = secrets_of(up.folder) | {"wrong.password": "a-wrong-password-of-a-bookie", "typed": typed}
    seen = {f"output {number}": text for number, text in enumerate(outputs)}
    seen |= {f"page {number}": text for number, text in enumerate(pages)}
    seen |= {str(path): path.read_text(errors="replace") for path in sorted(up.folder.glob("*/*log")) if path.is_file()}
    seen |= {f"process {child.pid}": " ".join(child.cmdline()) for child in [psutil.Process(up.process.pid), *up.children]}
    assert any("bookie.login" in text for text in seen.values()), "the logs have the logins"
    found = [f"{name} is in {place}" for place, text in seen.items() for name, secret in secrets.items() if secret in text]
    assert found == []


def send_nonsense(up: Up, name: str) -> None:
    """Speak TLS where START_TLS is expected: the handshake is refused."""
    host, _, port = str(up.members[name]["address"]).rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as plain, contextlib.suppress(OSError):
        ssl.create_default_context().wrap_socket(plain, server_hostname="localhost").close()


@pytest.mark.deep
def test_a_secured_folder_stays_secured_and_an_open_one_stays_open(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--secure", "--bookies", "1", "--nodes", "0") as first:
        assert first.end(signal.SIGTERM) == 0
    content = json.loads((tmp_path / "c" / "cluster.json").read_text())
    assert content["v"] == 3
    (tmp_path / "c" / "bookie-1" / "bookie.toml").unlink()
    with Up(tmp_path / "c", "--bookies", "2") as second:
        for name in ("bookie-1", "bookie-2"):
            text = (tmp_path / "c" / name / "bookie.toml").read_text()
            assert 'tls = "required"' in text
            assert "required = true" in text
        assert second.end(signal.SIGTERM) == 0
    with Up(tmp_path / "open", "--bookies", "1", "--nodes", "0") as other:
        assert other.end(signal.SIGTERM) == 0
    refused = run("up", "--dir", str(tmp_path / "open"), "--secure", check=False)
    assert refused.returncode == 1
    assert "is not secured" in refused.stderr
    assert "docs/security.md" in refused.stderr
    assert not (tmp_path / "open" / SECURITY).exists()


@pytest.mark.deep
def test_a_converted_cluster_starts_secured_and_has_its_data(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Up(folder, *SMALL) as up:
        run("log", "create", "events", uri=up.uri)
        run("log", "append", "events", uri=up.uri, text="one\n")
        run("database", "create", "shop", uri=up.uri)
        run("sql", "shop", "--small", "-c", "create table t (a int)", "-c", "insert into t values (7)", uri=up.uri)
        assert up.end(signal.SIGTERM) == 0, up.errors
    next_steps = run("security", "convert", str(folder)).stdout
    password = folder / SECURITY / "administrator.password"
    assert f"database administrator NAME administrator --password-file {password}" in next_steps
    with Up(folder) as again:
        assert run("log", "read", "events", uri=again.uri, check=False).returncode == 1
        assert client(again, "log", "read", "events").endswith("one\n")
        client(again, "database", "administrator", "shop", "administrator", "--password-file", str(password))
        assert " 8 " in client(again, "sql", "shop", "--small", "-c", "select a + 1 from t")
        assert json.loads(run("cluster", "status", "--json", TRIPLICATE_CONFIG=str(folder / CLIENT_FILE)).stdout)["healthy"]
