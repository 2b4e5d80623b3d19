"""Spark's own functions for Avro, where Maven has their package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tests.spark.conftest import Bench
from tests.spark.stored_values import AVRO, store

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy"
NEAR = "4.2.0"
"""A release that also works with the next ones, for registries that do not have the package of the newest Spark."""
WITHIN_S = 240.0


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    if shutil.which("mvn") is None:
        pytest.skip("the package spark-avro is fetched by Maven, and there is none")
    for release in (pyspark.__version__, NEAR):
        package = f"-Dartifact=org.apache.spark:spark-avro_2.13:{release}"
        command = ["mvn", "--batch-mode", "--quiet", "--no-transfer-progress", COPY, package, f"-DoutputDirectory={tmp_path}"]
        fetched = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=WITHIN_S, check=False)
        if fetched.returncode == 0:
            return tmp_path / f"spark-avro_2.13-{release}.jar"
    pytest.skip(f"Maven has no package spark-avro {pyspark.__version__} or {NEAR}")


def test_sparks_functions_read_and_write_avro(bench: Bench, place: Path, jar: Path) -> None:
    source, target = store(bench, *AVRO), bench.new_log()
    command = [sys.executable, str(Path(__file__).with_name("avro_job.py")), str(jar), bench.uri, source, target, str(place / "avro")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ended = subprocess.run(command, env=environment, timeout=WITHIN_S, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert "[{'id': 7, 'item': 'tea'}, {'id': 300, 'item': None}]" in ended.stdout
    assert [bytes(row["value"]) for row in bench.reader(target).load().orderBy("offset").collect()] == list(AVRO)
