"""Every command that destroys, tried on what is in use: it is refused with the reason, nothing is lost, and everything goes on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click
import psycopg
import pytest

import triplicate.blocking
from tests.process.running import TIMEOUT_S, Up, run, run_json, started
from tests.waiting import wait_until
from triplicate.cli.main import cli

NOT_IN_USE = {
    "bookie gc": "what nothing names goes, and --force only compacts more",
    "database drop": "ends the sessions, and can be undone: tests/process/test_database_commands.py",
    "kv drop": "a store is dropped with its watchers: tests/process/test_key_value.py",
}
"""Commands with --yes or --force that have no row below, and why."""


@dataclass(frozen=True)
class Used:
    """A cluster whose log is written and consumed, whose database has a session, and the names of what they use."""

    up: Up
    session: psycopg.Connection[tuple[object, ...]]
    names: dict[str, str]

    def run(self, words: str) -> tuple[int, str]:
        """The exit code of a command with the names in it, and all that it prints."""
        done = run(*words.format(**self.names).split(), uri=self.up.uri, check=False)
        return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Used]:
    folder = tmp_path_factory.mktemp("used")
    with Up(folder / "c", "--bookies", "3", "--nodes", "1") as up, triplicate.blocking.connect(up.uri) as client:
        run("database", "create", "shop", uri=up.uri)
        run("kv", "create", "store", uri=up.uri)
        run("log", "create", "events", uri=up.uri)
        dsn = run("sql", "shop", "--dsn", uri=up.uri).stdout.strip()
        cookie = folder / "cookie"
        cookie.write_text(run("cookie", "show", "bookie-2", uri=up.uri).stdout)
        names = {"uri": up.uri, "cookie": str(cookie), "bookie": f"{up.folder}/bookie-1/bookie.toml", "folder": str(up.folder)}
        with started("log", "append", "events", "--file", "-", uri=up.uri) as writer:
            assert writer.stdin is not None
            writer.stdin.write("first\n")
            writer.stdin.flush()
            wait_until(lambda: len(_ledgers(up)) == 3, TIMEOUT_S, "the log has a ledger")
            names |= _ledgers(up) | {f"{log['log'].split('.')[0]}_log": log["log"] for log in run_json("log", "list", uri=up.uri)}
            with psycopg.connect(dsn, autocommit=True) as session, client.logs().consumer("events", "reader"):
                session.execute("CREATE TABLE t(a int)")
                yield Used(up, session, names)
            writer.stdin.write("last\n")
            writer.stdin.close()
            assert writer.wait(TIMEOUT_S) == 0
        assert run("log", "read", "events", uri=up.uri).stdout.split() == ["first", "last"]
        assert "HEALTHY" in run("cluster", "status", uri=up.uri).stdout


def _ledgers(up: Up) -> dict[str, str]:
    """Maps ``database``, ``store`` and ``events`` to the open ledger of its log."""
    rows = run_json("ledger", "list", uri=up.uri)
    return {found[1]: str(row["ledger_id"]) for row in rows if (found := re.search(r"log '(\w+)", row["belongs_to"])) is not None}


REFUSED = [
    ("ledger delete {database} --yes", "`triplicate database drop shop` deletes it"),
    ("ledger delete {store} --yes", "`triplicate kv drop store` deletes it"),
    ("ledger delete {events} --yes", "open segment of log 'events'"),
    ("ledger recover {events}", "whose writer lives"),
    ("ledger recover {database}", "whose writer lives"),
    ("log delete events --yes", "is written by 'triplicate log append'"),
    ("log delete {database_log} --yes", "belongs to database 'shop'"),
    ("log delete {store_log} --force --yes", "belongs to key-value 'store'"),
    ("log truncate {database_log} latest --yes", "belongs to database 'shop'"),
    ("log alter {store_log} --retain-age-s 1", "belongs to key-value 'store'"),
    ("log append {database_log} word", "belongs to database 'shop'"),
    ("log consumer delete events reader", "is used by"),
    ("log consumer reset events reader --to latest", "is used by"),
    ("bookie format --config {bookie} --replace --yes", "is registered, so it runs"),
    ("bookie rebuild-index --config {bookie}", "another bookie runs on this directory"),
    ("bookie decommission bookie-1", "refused, and nothing was changed"),
    ("cookie delete bookie-1", "it is registered"),
    ("cookie update bookie-1 {cookie}", "the cookie of bookie bookie-2, not of bookie-1"),
    ("cluster recover bookie-1", "its copies are not lost"),
    ("cluster init {uri}", "there is a cluster at"),
    ("cluster copy-metadata {uri} sqlite://{folder}/copy.db", "stop the cluster first"),
    ("node remove node-1 --yes", "runs, at"),
    ("node drain node-1", "too few"),
    ("database create shop", "already exists"),
    ("kv create store", "exists already"),
    ("log create events", "exists already"),
    ("security convert {folder}", "is run by another triplicate"),
    ("up --dir {folder}", "is run by another triplicate"),
]


ROWS = [pytest.param(*row, id=row[0], marks=[pytest.mark.deep] if place % 4 else []) for place, row in enumerate(REFUSED)]


@pytest.mark.parametrize(("words", "reason"), ROWS)
def test_what_is_in_use_stays(used: Used, words: str, reason: str) -> None:
    code, printed = used.run(words)
    assert code == 1
    assert reason in printed
    used.session.execute("INSERT INTO t VALUES (1)")


def _destroying(command: click.Command, path: Sequence[str] = ()) -> Iterator[str]:
    """The commands that ask before they begin, or that can be forced."""
    if any(option in ("--yes", "--force") for parameter in command.params for option in parameter.opts):
        yield " ".join(path)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _destroying(below, (*path, name))


def test_every_command_that_asks_or_can_be_forced_is_tried() -> None:
    tried = {command for command in _destroying(cli) if any(row.startswith(f"{command} ") for row, _ in REFUSED)}
    assert set(_destroying(cli)) == tried | NOT_IN_USE.keys()
