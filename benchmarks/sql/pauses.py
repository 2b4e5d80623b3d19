"""Times for which a client waits: for the next leader, for a follower, and beside a scan or a snapshot."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator

import psycopg

from benchmarks.ledger.processes import CaseFailed
from benchmarks.sql import bulk
from benchmarks.sql.cases import Figures, SqlTurn
from benchmarks.sql.pgbench import Load, percentiles
from benchmarks.sql.servers import RunningLeader, SqlServer
from triplicate.errors import TriplicateError

TAKE_OVERS = 2
"""Of three nodes, one is left after two."""
TAKE_OVER_LIMIT_S = 60.0
RETRY_S = 0.005
CALM_S = 2.0
"""Pause before each kill, in seconds, in which followers meet the leader."""
LAG_LIMIT_S = 60.0
LAG_POLL_S = 0.002
LAG_PAUSE_S = 0.05
REPEATED_LIMIT_S = 60.0
"""For the last scan or snapshot beside a load to end."""
SCAN = "SELECT count(*) FROM filled a JOIN filled b ON b.id <= 300 AND a.id % 1000 = b.id % 977"
SHORT_READERS = 4
SNAPSHOT_WRITERS = 16
SNAPSHOT_WINDOWS = 2
"""Windows of writes without snapshots, and as many beside them, in turn."""
SNAPSHOT_ROWS_PER_S = 50_000
"""Rows of some 150 bytes that the database has for each second of a load, so that a snapshot lasts for a good part of a window."""
SNAPSHOT_FILL = """
    INSERT INTO copied SELECT n, 'item ' || n, n / 7.0, 'a note of some length that differs by ' || n * 7919 % 1000003 || ' for each row'
    FROM generate_series({first}, {last}) AS rows(n)
"""


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


def handover(turn: SqlTurn) -> Figures:
    """A row is written on the leader, and its position handed to a session on a follower, which reads it at level session.

    The time counts from the acknowledgement until the row is read, with the statements that ask for the position and set it.
    """
    server, times, key = turn.server, [], 0
    ends = time.perf_counter() + turn.seconds
    with server.connect() as leader, server.connect(server.follower_port) as follower:
        follower.execute("SET triplicate.read_level = 'session'")
        while time.perf_counter() < ends:
            key += 1
            leader.execute("INSERT INTO handed VALUES (%s, 'handed over')", (key,), prepare=True)
            began = time.perf_counter()
            (position,) = leader.execute("SELECT triplicate_position()", prepare=True).fetchone() or (0,)
            follower.execute(f"SET triplicate.read_position = {position}".encode())
            row = follower.execute("SELECT id FROM handed WHERE id = %s", (key,), prepare=True).fetchone()
            times.append((time.perf_counter() - began) * 1000)
            if row != (key,):
                raise CaseFailed(f"the session at position {position} does not see row {key}")
    return {**percentiles(sorted(times)), "count": len(times)}


def scan(turn: SqlTurn) -> Figures:
    """p99 of short reads without and with a client that repeats a long scan on the same node."""
    load = Load("read", SHORT_READERS, has_latencies=True)
    alone = turn.run(load, turn.server.leader_port)
    with turn.server.connect() as connection, repeated(lambda: connection.execute(SCAN), "scan") as scans:
        beside = turn.run(load, turn.server.leader_port)
    return {
        **_compared(alone["p99_ms"], beside["p99_ms"], alone["per_s"], beside["per_s"]),
        "scans": len(scans),
        "scan_s": statistics.median(scans),
    }


def snapshot(turn: SqlTurn) -> Figures:
    """p99 of inserts in windows without snapshots, and in windows in which one snapshot is made after another."""
    _fill_copied(turn)
    load = Load("insert", SNAPSHOT_WRITERS, has_latencies=True)
    alone, beside, made = [], [], []
    for _ in range(SNAPSHOT_WINDOWS):
        alone.append(turn.run(load, turn.server.leader_port))
        with repeated(turn.server.snapshot, "snapshot") as durations:
            beside.append(turn.run(load, turn.server.leader_port))
        made += durations
    middle = [statistics.median([window[figure] for window in windows]) for figure in ("p99_ms", "per_s") for windows in (alone, beside)]
    return {**_compared(*middle), "snapshots": len(made), "snapshot_s": statistics.median(made)}


def _fill_copied(turn: SqlTurn) -> None:
    """Rows for snapshots to copy."""
    rows = int(SNAPSHOT_ROWS_PER_S * turn.seconds)
    with turn.server.connect() as connection:
        for first in range(1, rows + 1, bulk.ROWS):
            connection.execute(SNAPSHOT_FILL.format(first=first, last=min(first + bulk.ROWS - 1, rows)).encode())


def _compared(alone_p99_ms: float, beside_p99_ms: float, alone_per_s: float, beside_per_s: float) -> Figures:
    return {"alone_p99_ms": alone_p99_ms, "beside_p99_ms": beside_p99_ms, "alone_per_s": alone_per_s, "beside_per_s": beside_per_s}


@contextlib.contextmanager
def repeated(action: Callable[[], object], name: str) -> Iterator[list[float]]:
    """Repeat an action in a thread; yields the durations of those that have ended, one at least in the end."""
    durations: list[float] = []
    ended = threading.Event()
    failures: list[Exception] = []

    def repeat() -> None:
        try:
            while not ended.is_set():
                began = time.perf_counter()
                action()
                durations.append(time.perf_counter() - began)
        except (psycopg.Error, TriplicateError, TimeoutError, CaseFailed) as error:
            failures.append(error)

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield durations
    finally:
        ended.set()
        thread.join(REPEATED_LIMIT_S)
    if failures:
        raise CaseFailed(f"the {name} failed: {failures[0] or repr(failures[0])}")
    if thread.is_alive() or not durations:
        raise CaseFailed(f"no {name} ended beside the load")
