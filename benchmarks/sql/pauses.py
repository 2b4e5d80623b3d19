"""Times for which a client waits: for the next leader, for a follower, and for short reads beside a scan."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import threading
import time
from collections.abc import Iterator

import psycopg

from benchmarks.ledger.processes import CaseFailed
from benchmarks.sql.cases import Figures, SqlTurn
from benchmarks.sql.pgbench import Load
from benchmarks.sql.servers import RunningLeader, SqlServer

TAKE_OVERS = 2
"""Of three nodes, one is left after two."""
TAKE_OVER_LIMIT_S = 60.0
RETRY_S = 0.005
CALM_S = 2.0
"""Pause before each kill, in seconds, in which followers meet the leader."""
LAG_LIMIT_S = 60.0
LAG_POLL_S = 0.002
LAG_PAUSE_S = 0.05
SCAN = "SELECT count(*) FROM filled a JOIN filled b ON b.id <= 300 AND a.id % 1000 = b.id % 977"
SHORT_READERS = 4


def take_over(turn: SqlTurn) -> Figures:
    """From the leader's SIGKILL to the first accepted insert on another node; the median."""
    gaps = []
    for number in range(TAKE_OVERS):
        time.sleep(CALM_S)
        gaps.append(_gap(turn.server, turn.server.leader_of_cluster(), number))
    return {"take_over_s": statistics.median(gaps), "least_s": min(gaps), "most_s": max(gaps)}


def _gap(server: SqlServer, leader: RunningLeader, number: int) -> float:
    """Kill the leader and try each other node in turn until one accepts an insert; the seconds until its answer."""
    connections = {port: server.connect(port) for port in leader.others}
    key = -1 - number * 1_000_000
    killed_at = time.perf_counter()
    try:
        os.kill(leader.pid, signal.SIGKILL)
        while time.perf_counter() < killed_at + TAKE_OVER_LIMIT_S:
            for port in leader.others:
                try:
                    if port not in connections:
                        connections[port] = server.connect(port)
                    key -= 1
                    connections[port].execute("INSERT INTO probed VALUES (%s, 'after the take-over')", (key,))
                except psycopg.OperationalError:
                    connections.pop(port).close() if port in connections else None
                except psycopg.Error:  # It follows: 25006.
                    continue
                else:
                    return time.perf_counter() - killed_at
            time.sleep(RETRY_S)
    finally:
        for connection in connections.values():
            connection.close()
    raise CaseFailed(f"no node accepts an insert within {TAKE_OVER_LIMIT_S:.0f} s of the leader's end")


def lag(turn: SqlTurn) -> Figures:
    """From the answer to an insert on the leader until a follower shows the row, while 64 clients insert."""
    server = turn.server
    lags: list[float] = []
    key = 0
    bench = turn.start(Load("insert", 64), server.leader_port)
    try:
        with server.connect() as leader, server.connect(server.follower_port) as follower:
            while bench.is_running:
                key += 1
                leader.execute("INSERT INTO probed VALUES (%s, 'probe')", (key,))
                lags.append(_until_seen(follower, key))
                time.sleep(LAG_PAUSE_S)
        figures = bench.finish()
    finally:
        bench.stop()
    if not lags:
        raise CaseFailed("the load ended before the first probe")
    return {"p50_s": statistics.median(lags), "most_s": max(lags), "probes": len(lags), "per_s": figures["per_s"]}


def _until_seen(follower: psycopg.Connection[object], key: int) -> float:
    began = time.perf_counter()
    while time.perf_counter() - began < LAG_LIMIT_S:
        if follower.execute("SELECT id FROM probed WHERE id = %s", (key,), prepare=True).fetchone() is not None:
            return time.perf_counter() - began
        time.sleep(LAG_POLL_S)
    raise CaseFailed(f"the follower does not show a row within {LAG_LIMIT_S:.0f} s")


def scan(turn: SqlTurn) -> Figures:
    """p99 of short reads without and with a client that repeats a long scan on the same node."""
    load = Load("read", SHORT_READERS, has_latencies=True)
    alone = turn.run(load, turn.server.leader_port)
    with _scanning(turn.server) as scans:
        beside = turn.run(load, turn.server.leader_port)
    if not scans:
        raise CaseFailed("no scan ended beside the short reads")
    return {
        "alone_p99_ms": alone["p99_ms"],
        "beside_p99_ms": beside["p99_ms"],
        "alone_per_s": alone["per_s"],
        "beside_per_s": beside["per_s"],
        "scans": len(scans),
        "scan_s": statistics.median(scans),
    }


@contextlib.contextmanager
def _scanning(server: SqlServer) -> Iterator[list[float]]:
    """Repeat the scan in a thread; yields the durations of those that have ended."""
    durations: list[float] = []
    ended = threading.Event()
    failures: list[psycopg.Error] = []

    def repeat() -> None:
        try:
            with server.connect() as connection:
                while not ended.is_set():
                    began = time.perf_counter()
                    connection.execute(SCAN)
                    durations.append(time.perf_counter() - began)
        except psycopg.Error as error:
            failures.append(error)

    thread = threading.Thread(target=repeat, name="scan", daemon=True)
    thread.start()
    try:
        yield durations
    finally:
        ended.set()
        thread.join(LAG_LIMIT_S)
    if failures:
        raise CaseFailed(f"the scan failed: {failures[0]}")
