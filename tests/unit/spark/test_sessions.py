"""The settings of a session, and the command that its processes start with; no JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest

import triplicate
from triplicate.spark import sessions
from triplicate.spark.sessions import interpreter

ARCHIVES = sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))
ASK = "import sys, pyspark.serializers as s, py4j; print(sys.executable, s.__file__, s.__cached__, py4j.__file__, sys.argv[1:], sep='|')"


def ask(command: str, *path: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((*map(str, ARCHIVES), *path))}
    return subprocess.run([command, "-c", ASK, "a b"], env=environment, capture_output=True, text=True, check=True).stdout.split("|")


def test_processes_of_spark_load_what_is_installed_and_compiled(tmp_path: Path) -> None:
    assert ARCHIVES, "PySpark brings its own sources as an archive"
    assert "pyspark.zip" in ask(sys.executable)[1], "without more, Spark's path has the archive first"
    executable, module, cached, py4j, arguments = ask(interpreter(tmp_path / "with space"))
    assert executable == sys.executable
    assert (".zip" in module, ".zip" in py4j) == (False, False)
    assert cached.endswith(".pyc")
    assert arguments == "['a b']\n"


def test_the_path_of_the_job_stays(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "ours.py").write_text("HERE = 1")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path / "own"), str(Path(triplicate.__file__).parents[1])))}
    for _ in range(2):
        subprocess.run([interpreter(tmp_path), "-c", "import ours, triplicate"], env=environment, check=True)


def test_a_folder_where_nothing_can_be_executed_gets_the_bare_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert interpreter(tmp_path) == sys.executable


@pytest.mark.parametrize("kind", [str, Path])
def test_a_run_folder_is_a_text_or_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Callable[[str], str | Path]) -> None:
    class Reached(Exception):
        pass

    def reached(folder: Path) -> str:
        raise Reached(folder)

    monkeypatch.setattr(sessions, "interpreter", reached)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Reached) as found:
        sessions.session("test", run_folder=kind("rf"))
    assert found.value.args == (tmp_path / "rf",)
    assert (tmp_path / "rf" / "warehouse").is_dir()


def test_questions_about_columns_need_no_client() -> None:
    """Spark starts processes that only ask which columns there are; each would pay for what it does not use."""
    ask = (
        "import sys, pyspark_triplicate as p; s = p.DefaultSource({'metadataserviceuri': 'u', 'log': 'l'}); s.schema(); print(*sys.modules)"
    )
    path = os.pathsep.join(sys.path)
    loaded = subprocess.run([sys.executable, "-c", ask], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    ours = {name.split(".")[1] for name in loaded.stdout.split() if name.startswith("triplicate.")}
    assert ours == {"spark", "errors"}
    assert not {"apsw", "numpy", "pyarrow", "zstandard", "prometheus_client"} & set(loaded.stdout.split())
