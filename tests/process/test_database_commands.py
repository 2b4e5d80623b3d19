"""The database commands and the small prompt against a real cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import Up, run, run_json, started
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("database") / "c", "--bookies", "3", "--nodes", "2") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def uri(up: Up) -> str:
    return up.uri


@pytest.fixture(scope="module")
def shop(uri: str) -> str:
    made = run_json("database", "create", "shop", uri=uri)
    assert (made["database"], made["nodes"]) == ("shop", [])
    wait_until(lambda: led(uri, "shop"), 30.0, "a node leads the new database")
    return "shop"


def led(uri: str, name: str) -> bool:
    shown = json_at_once("database", "show", name, uri=uri)
    return shown["leader"] is not None and len(shown["nodes"]) == 2


def prompt(uri: str, *arguments: str) -> list[str]:
    """Words that the small prompt prints before it fails or ends."""
    return at_once("sql", "--small", *arguments, uri=uri, check=False).stdout.split()


def test_a_database_is_listed_and_shown_with_its_nodes(uri: str, shop: str) -> None:
    shown = run_json("database", "show", shop, uri=uri)
    assert [one["node"] for one in shown["nodes"]] == ["node-1", "node-2"]
    assert shown["leader"] in ("node-1", "node-2")
    listed = json_at_once("database", "list", uri=uri)
    assert [(one["database"], one["leader"], one["log"]) for one in listed] == [(shop, shown["leader"], shown["log"])]
    assert "leader" in at_once("database", "show", shop, uri=uri).stdout
    assert "shop" in at_once("database", "list", uri=uri).stdout


def test_mistakes_are_reported_in_one_line(uri: str, shop: str) -> None:
    for arguments, words in (
        (("database", "create", shop), 'database "shop" already exists'),
        (("database", "show", "nothing"), 'database "nothing" does not exist'),
        (("sql", "nothing", "-c", "SELECT 1"), 'database "nothing" does not exist'),
        (("database", "create", "a/b"), "a/b"),
    ):
        answer = at_once(*arguments, uri=uri, check=False)
        assert answer.returncode != 0
        assert words in answer.stderr
        assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr


def test_the_small_prompt_runs_statements_and_continues_after_errors(uri: str, shop: str) -> None:
    at_once(
        "sql",
        "--small",
        shop,
        "-c",
        "CREATE TABLE items (a INTEGER PRIMARY KEY, b TEXT)",
        "-c",
        "INSERT INTO items VALUES (1, 'one')",
        uri=uri,
    )
    script = "INSERT INTO items\nVALUES (2, 'two;');\nSELECT absent FROM items;\nSELECT b FROM items\n ORDER BY a DESC LIMIT 1"
    answer = run("sql", "--small", shop, uri=uri, text=script)
    assert "two;" in answer.stdout
    assert "42703" in answer.stderr
    assert "INSERT 0 1" in answer.stderr
    ask = ("--any-node", "-c", "SELECT b FROM items WHERE a = 2")
    wait_until(lambda: "two;" in prompt(uri, shop, *ask), 30.0, "whichever node answers has it")


def test_psql_is_opened_where_it_is_installed(uri: str, shop: str) -> None:
    answer = run("sql", shop, "-c", "SELECT 40 + 2 AS answer", "-c", "SHOW transaction_read_only", uri=uri)
    assert "answer" in answer.stdout
    assert "42" in answer.stdout
    assert "off" in answer.stdout


def test_sql_text_is_exported_and_imported_whole_or_not_at_all(
    uri: str, shop: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text, dump = tmp_path / "shop.sql", tmp_path / "dump.sql"
    at_once("sql", "--small", shop, "-c", "CREATE TABLE notes (a INTEGER PRIMARY KEY, b TEXT)", uri=uri)
    at_once("sql", "--small", shop, "-c", "INSERT INTO notes VALUES (1, 'it''s; ü'), (2, NULL)", uri=uri)
    at_once("database", "export", shop, str(text), "--format", "sql", uri=uri)
    at_once("database", "import", str(text), "loaded", uri=uri)
    assert "it's; ü" in at_once("sql", "--small", "loaded", "-c", "SELECT b FROM notes ORDER BY a", uri=uri).stdout
    dump.write_text("PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE t(a);\nINSERT INTO t VALUES(7;\nCOMMIT;\n")
    damaged = tmp_path / "damaged.sql"
    damaged.write_text(text.read_text(encoding="utf-8").replace("(2, NULL)", "(2, NOTHING)"), encoding="utf-8")
    cut = tmp_path / "cut.sql"
    cut.write_text(text.read_text(encoding="utf-8").rpartition("\n-- ")[0], encoding="utf-8")
    capfd.readouterr()
    for path, reason in ((dump, "line 4: near"), (damaged, "is dropped again"), (cut, "is not complete")):
        refused = at_once("database", "import", str(path), "refused", uri=uri, check=False)
        assert refused.returncode != 0
        assert reason in refused.stderr
    line = damaged.read_text(encoding="utf-8").partition("NOTHING")[0].count("\n") + 1
    assert f"psql:{damaged}:{line}: ERROR" in capfd.readouterr().err
    assert "refused" not in [one["database"] for one in json_at_once("database", "list", uri=uri)]


def test_an_empty_text_is_imported_only_if_it_is_the_export_of_an_empty_database(uri: str, tmp_path: Path) -> None:
    at_once("database", "create", "bare", uri=uri)
    exported = tmp_path / "bare.sql"
    at_once("database", "export", "bare", str(exported), "--format", "sql", uri=uri)
    at_once("database", "import", str(exported), "bare_again", uri=uri)
    for text in ("", " \n;", "-- create table t(a);\n/* create table t(a); */\n", exported.read_text().partition("\n")[0] + "\n"):
        path = tmp_path / "empty.sql"
        path.write_text(text)
        refused = at_once("database", "import", str(path), "refused", uri=uri, check=False)
        assert refused.returncode == 1
        assert f"{path} has no " in refused.stderr
    assert "refused" not in [one["database"] for one in json_at_once("database", "list", uri=uri)]


def test_a_dump_of_postgresql_is_imported_and_its_other_forms_are_named(uri: str, shop: str, tmp_path: Path) -> None:
    golden = Path(__file__).resolve().parents[1] / "golden" / "pg_dump"
    answer = at_once("database", "import", str(golden / "shop_copy.sql"), "moved", uri=uri)
    assert "left out: 13 OWNER TO, 1 SET STATISTICS, 2 COMMENT, 2 GRANT" in answer.stderr
    query = "SELECT c.name, t.lines, t.total FROM customers c JOIN totals t ON t.customer = c.id WHERE c.joined < '2025-01-01' ORDER BY 2"
    assert "Ann" in at_once("sql", "--small", "moved", "-c", query, uri=uri).stdout
    (tmp_path / "folder").mkdir()
    (tmp_path / "custom").write_bytes(b"PGDMP\x01\x0e\0")
    for path, reason in (
        (golden / "refused_dump.sql", "line 62: CREATE TYPE public.mood is not supported"),
        (tmp_path / "custom", "pg_dump --format=plain"),
        (tmp_path / "folder", "is a folder"),
    ):
        refused = at_once("database", "import", str(path), "refused", uri=uri, check=False)
        assert refused.returncode != 0
        assert reason in refused.stderr
    (tmp_path / "folder" / "toc.dat").touch()
    assert "directory format" in at_once("database", "import", str(tmp_path / "folder"), "refused", uri=uri, check=False).stderr
    assert "refused" not in [one["database"] for one in json_at_once("database", "list", uri=uri)]


def test_an_encrypted_backup_needs_its_key_file_and_one_in_clear_is_noted_beside_it(uri: str, shop: str, tmp_path: Path) -> None:
    keys, folder = str(tmp_path / "keys"), str(tmp_path / "backup")
    at_once("log", "key", "new", keys, "mine")
    made = json_at_once("database", "backup", shop, folder, "--key-file", keys, uri=uri)
    assert made["key"] == "mine"
    refused = at_once("database", "verify-backup", folder, check=False)
    assert "encrypted under key 'mine'" in refused.stderr
    assert at_once("database", "verify-backup", folder, TRIPLICATE_BACKUP_KEY_FILE=keys).returncode == 0
    restored = at_once("database", "restore", folder, "again", "--key-file", keys, uri=uri)
    clear, noted = str(tmp_path / "clear"), _unspaced(f"the backup at {tmp_path / 'clear'} is not encrypted")
    at_once("database", "backup", shop, clear, uri=uri)
    verify = "database", "verify-backup"
    silent = restored, at_once(*verify, folder, "--key-file", keys), at_once(*verify, clear)
    assert not any("notencrypted" in _unspaced(answer.stderr) for answer in silent)
    noting = (
        at_once(*verify, clear, "--key-file", keys),
        at_once("database", "restore", clear, "from-clear", "--key-file", keys, uri=uri),
    )
    assert all(noted in _unspaced(answer.stderr) for answer in noting)
    (tmp_path / "keys").chmod(0o644)
    assert "chmod 600" in at_once("database", "verify-backup", folder, "--key-file", keys, check=False).stderr


def _unspaced(text: str) -> str:
    """The width of the terminal decides where lines break."""
    return "".join(text.split())


def test_the_connection_string_is_printed_alone_or_at_the_start(uri: str, shop: str) -> None:
    import psycopg

    answer = run("sql", shop, "--dsn", uri=uri)
    assert answer.stderr == ""
    dsn = answer.stdout.strip()
    with psycopg.connect(dsn, connect_timeout=30) as connection:
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("off",)
    assert "target_session_attrs=any" in at_once("sql", shop, "--dsn", "--any-node", uri=uri).stdout
    assert f"connection string: {dsn}\n" in run("sql", shop, "-c", "SELECT 1", uri=uri).stderr
    assert f"connection string: {dsn}\n" in at_once("sql", shop, "--small", "-c", "SELECT 1", uri=uri).stderr
    assert at_once("sql", shop, "--dsn", "-c", "SELECT 1", uri=uri, check=False).returncode == 2


def test_a_failed_command_of_the_small_prompt_is_an_error(uri: str, shop: str) -> None:
    answer = at_once("sql", "--small", shop, "-c", "SELECT * FROM nowhere", "-c", "SELECT 'after'", uri=uri, check=False)
    assert answer.returncode == 1
    assert "42P01" in answer.stderr


def test_a_cluster_without_nodes_names_the_command_that_starts_one(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "0") as up:
        at_once("database", "create", "lonely", uri=up.uri)
        answer = at_once("sql", "lonely", "-c", "SELECT 1", uri=up.uri, check=False)
        assert answer.returncode != 0
        assert "triplicate node" in answer.stderr


def test_every_copy_is_shown_with_its_role_and_lag(uri: str, shop: str) -> None:
    def roles() -> list[str]:
        return sorted(one["role"] for one in json_at_once("database", "show", shop, uri=uri)["nodes"])

    wait_until(lambda: roles() == ["follower", "leader"], 30.0, "both copies say what they are")
    wait_until(lambda: all(one["lag"] == 0 for one in json_at_once("database", "show", shop, uri=uri)["nodes"]), 30.0, "no copy lags")
    shown = at_once("database", "show", shop, uri=uri).stdout
    assert "role" in shown
    assert "lag" in shown
    assert "reason" not in shown


def node_refused(uri: str, folder: Path, **options: str) -> str:
    """The one-line error of a node that is refused."""
    flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
    answer = run("node", "--directory", str(folder), *flags, uri=uri, check=False)
    assert answer.returncode == 1
    (line,) = [line for line in answer.stderr.splitlines() if line.startswith("triplicate: ")]
    return line


def test_a_second_node_on_a_directory_or_under_a_name_is_refused(up: Up, tmp_path: Path) -> None:
    directory = next(path.parent for path in (up.folder / "node-1").rglob("LOCK"))
    pid = up.members["node-1"]["pid"]
    line = node_refused(up.uri, directory, node_id="node-9")
    assert line.endswith(f"another node runs on this directory (process {pid}): stop it, or give this one its own node.directory")
    line = node_refused(up.uri, tmp_path / "own", node_id="node-1", name_wait_s="1")
    assert "a node named 'node-1' runs already, at 127.0.0.1:" in line
    assert line.endswith("give each node of the cluster its own node.node_id")


def test_a_node_waits_for_its_metadata_and_ends_on_sigterm(tmp_path: Path) -> None:
    options = ("--metadata", "zk://127.0.0.1:1/ledgers", "--node-id", "node-1", "--directory", str(tmp_path / "node"))
    with started("node", *options) as node:
        assert node.stderr is not None
        for line in node.stderr:
            if "node.waits_for_metadata" in line:
                break
        assert "ZooKeeper at 127.0.0.1:1 does not answer within 10 s" in line
        assert node.poll() is None
        node.terminate()
        assert node.wait(timeout=30) != 0


def test_a_database_is_renamed_dropped_and_undeleted(uri: str) -> None:
    at_once("database", "create", "books", uri=uri)
    wait_until(lambda: led(uri, "books"), 30.0, "a node leads the new database")
    at_once("sql", "--small", "books", "-c", "create table t(a)", "-c", "insert into t values(7)", uri=uri)
    at_once("database", "rename", "books", "library", uri=uri)
    # The prompt waits for the election and the take-over under the new name.
    assert "7" in at_once("sql", "--small", "library", "-c", "select a from t", uri=uri).stdout.split()
    assert run("database", "drop", "library", uri=uri, text="n\n", check=False).returncode == 130
    at_once("database", "drop", "library", "--yes", uri=uri)
    assert "does not exist" in at_once("database", "show", "library", uri=uri, check=False).stderr
    assert "library" not in at_once("database", "list", uri=uri).stdout
    assert "library" in at_once("database", "list", "--dropped", uri=uri).stdout
    (dropped,) = [one for one in json_at_once("database", "list", "--dropped", uri=uri) if one["database"] == "library"]
    assert (dropped["database"], dropped["state"]) == ("library", "dropped")
    at_once("database", "undelete", "library", uri=uri)
    wait_until(lambda: "7" in prompt(uri, "library", "-c", "select a from t"), 30.0, "it is back with its rows")
    assert "no database" in at_once("database", "undelete", "library", uri=uri, check=False).stderr
    at_once("database", "drop", "library", "--yes", uri=uri)
