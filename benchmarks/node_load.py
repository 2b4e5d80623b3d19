"""Shared parts of the benchmarks of database nodes: a writing client, a watched process, a client of the cluster, progress."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import psutil
import psycopg

from benchmarks.driving import percentile
from triplicate.cli import LocalCluster, run_loop
from triplicate.client import Client, connect

Result = TypeVar("Result")
STARTED = time.monotonic()
STOP_LIMIT_S = 120.0
POLL_S = 0.02


def say(text: str) -> None:
    """One line of progress."""
    print(f"{time.monotonic() - STARTED:7.1f} s  {text}", file=sys.stderr, flush=True)


def save(figures: dict[str, Any], name: str) -> None:
    """Print figures, and save them as build/bench/NAME.json."""
    text = json.dumps(figures, indent=2)
    path = Path("build") / "bench" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    print(text)


def load_average() -> list[float]:
    """Load averages of the last 1, 5 and 15 minutes."""
    return [round(one, 2) for one in os.getloadavg()]


def with_client(uri: str, body: Callable[[Client], Awaitable[Result]]) -> Result:
    """Run a coroutine with a client of the cluster on a new event loop."""

    async def main() -> Result:
        async with connect(uri) as client:
            return await body(client)

    return run_loop(main())


def summary(latencies: list[float]) -> dict[str, float]:
    """Percentiles of durations in seconds."""
    ordered = sorted(latencies)
    milliseconds = {f"p{share * 100:g}_ms": round(percentile(ordered, share) * 1000, 2) for share in (0.5, 0.99)}
    return {"count": len(ordered), **milliseconds, "longest_ms": round(ordered[-1] * 1000, 2)}


class Peak:
    """The peak resident memory of a process while this is open."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self.first = self._process.memory_info().rss
        self.bytes = self.first
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._ended.wait(0.02):
            with contextlib.suppress(psutil.NoSuchProcess):
                self.bytes = max(self.bytes, self._process.memory_info().rss)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


class Writer:
    """One client that inserts single rows into the table ``single`` as fast as they are acknowledged, in a thread."""

    def __init__(self, port: int, database: str) -> None:
        self._port = port
        self._database = database
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._failure: psycopg.Error | None = None
        self.latencies: list[float] = []

    def _write(self) -> None:
        try:
            with database_connection(self._port, self._database) as connection:
                while not self._ended.is_set():
                    begun = time.perf_counter()
                    connection.execute("INSERT INTO single(v) VALUES (%s)", ("x" * 100,))
                    self.latencies.append(time.perf_counter() - begun)
        except psycopg.Error as error:
            self._failure = error

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure


def single_writes(port: int, database: str, seconds: float) -> list[float]:
    """Durations of the single writes of one client."""
    with Writer(port, database) as writer:
        time.sleep(seconds)
    return writer.latencies


def database_connection(port: int, database: str) -> psycopg.Connection[Any]:
    return psycopg.connect(host="127.0.0.1", port=port, dbname=database, user="bench", autocommit=True, connect_timeout=30)


def stop(cluster: LocalCluster, name: str, *, kill: bool) -> float:
    """End one process, in order or by SIGKILL; return the duration in seconds."""
    process = cluster.running[name].process
    begun = time.perf_counter()
    if kill:
        process.kill()
    else:
        process.terminate()
    process.wait(STOP_LIMIT_S)
    cluster.ended()
    return time.perf_counter() - begun


def readiness(metrics_port: int) -> dict[str, Any]:
    """A process's answer to ``/ready``; None while it does not answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/ready", timeout=30) as answer:
            text = answer.read()
    except urllib.error.HTTPError as error:
        text = error.read()
    except OSError:
        return {}
    found: dict[str, Any] = json.loads(text)
    return found


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process in order, by SIGKILL if it takes too long."""
    process.terminate()
    try:
        process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
