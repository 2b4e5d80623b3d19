"""Embedded databases in real processes: a killed one loses nothing that was acknowledged, and the examples of the page run as printed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import triplicate
from tests.process.running import TIMEOUT_S, environment
from triplicate.errors import EnvironmentFault

PAGE = Path(__file__).resolve().parents[2] / "docs" / "embedded.md"
WRITER = """
import sys
import triplicate.dbapi

connection = triplicate.dbapi.connect(sys.argv[1])
connection.execute("create table t(a integer)")
number = 0
while True:
    with connection:
        connection.execute("insert into t values (?)", (number,))
        connection.execute("insert into t values (?)", (number + 1,))
    print(number + 1, flush=True)
    number += 2
"""


def test_a_killed_process_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "app"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True) as writer:
        try:
            assert writer.stdout is not None
            acknowledged = -1
            while acknowledged < 99:
                acknowledged = int(writer.stdout.readline())
            with pytest.raises(EnvironmentFault, match=f"in use by process {writer.pid}"):
                triplicate.blocking.database(folder)
        finally:
            os.kill(writer.pid, signal.SIGKILL)
        acknowledged = max([acknowledged, *map(int, writer.stdout.read().split())])
    with triplicate.blocking.database(folder) as database:
        found = [row[0] for row in database.stream("select a from t order by a")]
    assert found == list(range(len(found)))
    assert len(found) % 2 == 0, "a transaction is there in part"
    assert len(found) > acknowledged


def test_the_examples_of_the_page_run_as_printed(tmp_path: Path) -> None:
    blocks = re.findall(r"```(python|output|pytest)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    programs = [text for kind, text in blocks if kind == "python"]
    tests = "".join(text for kind, text in blocks if kind == "pytest")
    # One process, since each of them would spend most of its time with imports.
    script = "\n".join([*programs, "import sys, pytest", "sys.exit(pytest.main(sys.argv[1:]))"])
    (tmp_path / "page.py").write_text(script, encoding="utf-8")
    (tmp_path / "test_page.py").write_text(tests, encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "page.py", "-q", "-W", "error", "-p", "no:cacheprovider", "-p", "triplicate.testing.plugin", "test_page.py"],
        cwd=tmp_path,
        env=environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1"),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    wanted = "".join(text for kind, text in blocks if kind == "output")
    assert answer.stdout.startswith(wanted)
    assert f"{tests.count('def test_')} passed" in answer.stdout.removeprefix(wanted)
