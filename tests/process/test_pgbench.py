"""PostgreSQL's pgbench makes its tables with its own defaults, and runs on them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.process.at_once import at_once, json_at_once
from tests.process.running import TIMEOUT_S, Up, run
from tests.waiting import LIMIT_S, wait_until

KEYS = "SELECT conname, contype, conkey, confkey FROM pg_constraint ORDER BY contype, conname"


@pytest.mark.deep
@pytest.mark.skipif(shutil.which("pgbench") is None, reason="pgbench is not installed")
def test_pgbench_makes_its_tables_with_their_keys_and_runs(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "1") as up:
        at_once("database", "create", "bench", uri=up.uri)
        wait_until(lambda: json_at_once("database", "show", "bench", uri=up.uri)["leader"] is not None, LIMIT_S, "the node leads")
        run("sql", "--small", "bench", "-c", "CREATE TABLE ready (a integer)", uri=up.uri)  # It waits for a leader that may write.
        host, _, port = up.members["node-1"]["address"].rpartition(":")
        for arguments in (["--initialize", "--foreign-keys"], ["--initialize"], ["--transactions", "5", "--client", "2"]):
            command = ["pgbench", *arguments, "--host", host, "--port", port, "--username", "bench", "bench"]
            answer = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
            assert answer.returncode == 0, answer.stderr
            assert "ERROR" not in answer.stderr
            if "--foreign-keys" in arguments:
                shown = run("sql", "--small", "bench", "-c", KEYS, uri=up.uri).stdout
                assert shown.count("_fkey") == 5, shown
                assert shown.count("_pkey") == 3, shown
        assert "number of transactions actually processed: 10/10" in answer.stdout
        assert "100000" in run("sql", "--small", "bench", "-c", "SELECT count(*) FROM pgbench_accounts", uri=up.uri).stdout
