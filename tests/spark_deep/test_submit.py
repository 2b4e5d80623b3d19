"""``spark-submit`` with a packed environment, on a standalone cluster whose executors find no other Triplicate."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pyspark

from scripts.spark_versions import constraints
from tests.spark.conftest import DOCUMENT, Bench
from tests.spark_deep.standalone import standalone

ROOT = DOCUMENT.parents[1]
WITHIN_S = 400.0


def commands(words: dict[str, str]) -> str:
    """The page's commands with other words."""
    found = re.search(r"## Clusters\n.*?```sh\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    text = found[1]
    for word, other in words.items():
        assert text.count(word) == 1, word
        text = text.replace(word, other)
    return text


def test_the_commands_of_the_page_run_a_job_whose_executors_have_only_the_packed_environment(bench: Bench, place: Path) -> None:
    source, target = bench.new_log(), bench.new_log()
    folder = place / "submitted"
    folder.mkdir()
    job = f"{Path(__file__).with_name('submitted_job.py')} {bench.uri} {source} {target} {folder / 'checkpoint'}"
    with standalone(place / "bare", workers=2, python_path="") as running:
        words = {
            "pyarrow triplicate\n": f"--constraint {constraints()} pyarrow {ROOT}\n",
            "spark://master:7077": f"{running.url} --executor-memory 512m",
            "job.py": job,
        }
        own = [str(Path(sys.executable).parent), str(Path(pyspark.__file__).parent / "bin")]
        environment = {
            **os.environ,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PATH": os.pathsep.join([*own, os.environ["PATH"]]),
        }
        environment.pop("PYTHONPATH", None)
        script = ["sh", "-e", "-c", commands(words)]
        ended = subprocess.run(script, env=environment, cwd=folder, timeout=WITHIN_S, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = re.findall(r"'([^']*)'", ended.stdout.splitlines()[-1])
    assert len(found) == 2
    assert all(re.search(r"/bare/worker-\d/.*/environment/lib/.*/triplicate/__init__.py$", path) for path in found), found
    assert bench.values(source) == bench.values(target) == list(range(50))
