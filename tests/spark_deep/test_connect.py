"""Spark Connect: the driver is in the server, the user's program only sends plans."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.spark.conftest import Bench

WITHIN_S = 240.0


def test_a_client_of_spark_connect_writes_reads_and_streams(bench: Bench, place: Path) -> None:
    source, target = bench.new_log(), bench.new_log()
    command = [sys.executable, str(Path(__file__).with_name("connect_job.py")), bench.uri, source, target, str(place / "connect")]
    folder = place / "connect"
    folder.mkdir()
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "SPARK_CONNECT_MODE": "1",
    }
    environment.pop("SPARK_REMOTE", None)
    ended = subprocess.run(command, env=environment, cwd=folder, timeout=WITHIN_S, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert bench.values(source) == list(range(50))
    assert bench.values(target) == list(range(50))
