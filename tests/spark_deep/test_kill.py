"""SIGKILL to a streaming job, driver and JVM, while it publishes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.spark.conftest import Bench, needs_limits
from tests.spark_deep.copy_job import copy
from triplicate.log import Logs

RECORDS = 240
WAIT_S = 90.0


def start(bench: Bench, source: str, target: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(Path(__file__).with_name("copy_job.py")), bench.uri, source, target, str(folder)]
    # A separate process group, so that the signal reaches the JVM as well.
    return subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL)


@pytest.mark.slow
@needs_limits
def test_a_job_killed_while_publishing_continues_exactly_once(bench: Bench, place: Path) -> None:
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(RECORDS))
    folder = place / "killed"
    job = start(bench, source, target, folder)
    try:
        deadline = time.monotonic() + WAIT_S
        while (end := bench.run(lambda client: Logs(client).end_offset(target))) == 0:
            assert job.poll() is None, "the job ended before it had published anything"
            assert time.monotonic() < deadline, "nothing was published in time"
            time.sleep(0.02)
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    assert end < RECORDS, "the job was killed in mid-stream"
    # This session stands for the restarted job; only the checkpoint matters.
    copy(bench.spark, bench.uri, source, target, folder)
    assert bench.values(target) == list(range(RECORDS))
