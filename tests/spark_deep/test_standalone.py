"""Jobs on a standalone cluster with two workers: executors and Python workers are killed, tasks run twice, drivers come back."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.spark.conftest import Bench
from tests.spark.databases import Shop, connected
from tests.spark_deep.cluster_job import Job
from tests.spark_deep.standalone import EXECUTOR, PYTHON_WORKER, Standalone, standalone
from triplicate.sql import create_database

RECORDS = 200
RUNS_LIMIT = 6
RUN_WITHIN_S = 240.0


@pytest.fixture(scope="module")
def workers(place: Path) -> Iterator[Standalone]:
    with standalone(place / "standalone", workers=2) as running:
        yield running


def start(job: Job) -> subprocess.Popen[bytes]:
    # A separate process group, so that a signal reaches the JVM as well.
    return subprocess.Popen(job.command(), start_new_session=True, stdin=subprocess.DEVNULL)


def run_to_the_end(job: Job, victims: Iterator[list[psutil.Process]]) -> tuple[int, int]:
    """Run the job until it ends without an error, and kill one process of each list when it appears. Returns runs and kills."""
    kills = 0
    for runs in range(1, RUNS_LIMIT + 1):
        process = start(job)
        try:
            deadline = time.monotonic() + RUN_WITHIN_S
            while process.poll() is None:
                assert time.monotonic() < deadline, "the job does not end"
                time.sleep(0.3)
                for victim in next(victims, [])[:1]:
                    victim.send_signal(signal.SIGKILL)
                    kills += 1
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode == 0:
            return runs, kills
    raise AssertionError(f"the job failed {RUNS_LIMIT} times")


def victims(workers: Standalone, chances: random.Random) -> Iterator[list[psutil.Process]]:
    """Every third turn a Python worker, or every twelfth an executor."""
    turn = 0
    while turn < 40:
        found = workers.victims(EXECUTOR if turn % 12 == 11 else PYTHON_WORKER)
        yield [chances.choice(found)] if found and turn % 3 == 2 else []
        # The start of the job, without such a process, does not count.
        turn += bool(found)


@pytest.mark.parametrize("speculation", [False, True], ids=["plain", "speculation"])
def test_a_stream_on_two_workers_is_exactly_once_after_any_kill(bench: Bench, workers: Standalone, place: Path, speculation: bool) -> None:
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(RECORDS))
    folder = place / f"cluster-{speculation}"
    job = Job(workers.url, bench.uri, source, target, str(folder), 20, speculation)
    runs, kills = run_to_the_end(job, victims(workers, random.Random(speculation)))
    assert bench.values(target) == list(range(RECORDS))
    print(f"{runs} runs, {kills} processes killed")
    assert kills >= 3


def test_rows_that_are_routed_are_exactly_once_in_each_log_after_any_kill(bench: Bench, workers: Standalone, place: Path) -> None:
    source = bench.new_log()
    bench.write(source, range(RECORDS))
    for number in range(3):
        bench.create_log(f"{source}-{number}")
    job = Job(workers.url, bench.uri, source, source, str(place / "routed"), 8, False, routed=True)
    _, kills = run_to_the_end(job, victims(workers, random.Random(2)))
    for number in range(3):
        assert bench.values(f"{source}-{number}") == list(range(number, RECORDS, 3))
    assert kills >= 3


def test_a_table_that_follows_another_equals_it_after_any_kill(bench: Bench, workers: Standalone, place: Path) -> None:
    """First by its content, then by its changes: inserts, updates, deletes and changed keys."""
    bench.run(lambda client: create_database(client, "followed"))
    chances = random.Random(3)
    job = Job(workers.url, bench.uri, "source", "target", str(place / "followed"), 8, False, database="followed")
    with connected(bench, "followed") as connection:
        shop = Shop(bench, "followed", connection)
        for name in ("source", "target"):
            shop.execute(f"CREATE TABLE {name} (id BIGINT PRIMARY KEY, v TEXT, n INT)")
        shop.execute("INSERT INTO source SELECT value, 'v' || value, 0 FROM generate_series(1, 500) g(value)")
        kills = 0
        for _ in range(2):
            kills += run_to_the_end(job, victims(workers, chances))[1]
            rows = [connection.execute(f"SELECT * FROM {name} ORDER BY id").fetchall() for name in ("source", "target")]
            assert rows[0] == rows[1]
            for _ in range(60):
                low = chances.randrange(1, 600)
                shop.execute(
                    f"UPDATE source SET n = n + 1 WHERE id BETWEEN {low} AND {low + 20}",
                    f"DELETE FROM source WHERE id = {low}",
                    f"INSERT INTO source VALUES ({low}, 'again', 7)",
                    f"UPDATE source SET id = id + 1000 WHERE id = {low + 5}",
                )
                shop.execute(f"DELETE FROM source WHERE id = {low + 1005}")
        assert kills >= 3


def test_a_driver_that_resumes_beside_its_successor_duplicates_nothing(bench: Bench, workers: Standalone, place: Path) -> None:
    source, target = bench.new_log(), bench.new_log()
    bench.write(source, range(RECORDS))
    job = Job(workers.url, bench.uri, source, target, str(place / "zombie"), 20, False)
    first = start(job)
    try:
        deadline = time.monotonic() + RUN_WITHIN_S
        while len(bench.values(target)) < 20:
            assert first.poll() is None, "the job ended before it had published anything"
            assert time.monotonic() < deadline, "nothing was published in time"
        os.killpg(first.pid, signal.SIGSTOP)
        # The executors of the stopped driver occupy both cores, so the cluster could not start the second driver's.
        local = Job("local[2,3]", bench.uri, source, target, job.folder, 20, False)
        second = start(local)
        try:
            assert second.wait(RUN_WITHIN_S) == 0
        finally:
            if second.poll() is None:
                os.killpg(second.pid, signal.SIGKILL)
            second.wait()
        os.killpg(first.pid, signal.SIGCONT)
        first.wait(RUN_WITHIN_S)
    finally:
        if first.poll() is None:
            os.killpg(first.pid, signal.SIGKILL)
        first.wait()
    assert bench.values(target) == list(range(RECORDS))
