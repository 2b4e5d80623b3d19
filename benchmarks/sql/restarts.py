"""Restarts of a node, and new copies of the database, beside a short log and beside one ten times as long."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import psycopg

from benchmarks.ledger.processes import CaseFailed, free_port
from benchmarks.sql.cases import MEGABYTE, Figures, SqlTurn, processor_s
from benchmarks.sql.servers import Nodes

PASSES_PER_S = 1.5
"""Updates of every account, in passes for each second of a load, that make the short log. The size of the database stays as it is."""
PASS = "UPDATE accounts SET filler = gen_random_uuid()::text"
"""Each pass has new values, which cannot be compressed."""
TIMES = 10
RESTARTS = 3
COPIES = 2
TAIL = 20
"""Transactions behind the newest snapshot, which the node lacks."""
LIMIT_S = 60.0
POLL_S = 0.01
TAIL_ROW = "INSERT INTO handed SELECT coalesce(max(id), 0) + 1, 'tail' FROM handed RETURNING id"


def restart(turn: SqlTurn) -> Figures:
    """Seconds from the start of a node until it shows the newest row: of a follower after SIGKILL, and of a node without files.

    Each log has a snapshot at its end, and the same number of transactions behind it.
    """
    server = turn.server
    if not isinstance(server, Nodes):
        raise CaseFailed(f"{server.name} has no nodes to restart")
    short = max(2, round(turn.seconds * PASSES_PER_S))
    figures: Figures = {}
    for length, passes in (("short", short), ("long", TIMES * short - short)):
        with server.connect() as connection:
            for _ in range(passes):
                connection.execute(PASS)
        server.snapshot()
        figures[f"{length}_log_mb"] = server.appended().bytes / MEGABYTE
        restarted = [_restarted(server) for _ in range(RESTARTS)]
        copied = [_copied(server, f"{length}-{number}") for number in range(COPIES)]
        for what, starts in (("", restarted), ("_copy", copied)):
            figures[f"{length}{what}_s"] = statistics.median(start.seconds for start in starts)
            figures[f"{length}{what}_cpu_s"] = statistics.median(start.processor_s for start in starts)
    return figures


class Start(NamedTuple):
    """Seconds until a node shows the newest row, and the processor time that it has used until then."""

    seconds: float
    processor_s: float


def _restarted(server: Nodes) -> Start:
    """Kill a follower, which misses some transactions, and start it again."""
    port = server.follower_port
    name = server.name_at(port)
    server.kill_node(name)
    return _shown_after(server, lambda: server.start_node(name), port)


def _copied(server: Nodes, name: str) -> Start:
    """Start a node without files. It ends afterwards."""
    port = free_port()
    try:
        return _shown_after(server, lambda: server.start_node(name, port), port)
    finally:
        server.kill_node(name)


def _shown_after(server: Nodes, start: Callable[[], int], port: int) -> Start:
    """Write rows, start a node, and wait until it shows the last of them."""
    with server.connect() as leader:
        for _ in range(TAIL):
            (newest,) = leader.execute(
                "INSERT INTO handed SELECT coalesce(max(id), 0) + 1, 'tail' FROM handed RETURNING id"
            ).fetchone() or (0,)
    began = time.perf_counter()
    pid = start()
    trouble = ""
    while time.perf_counter() - began < LIMIT_S:
        try:
            with server.connect(port) as connection:
                if connection.execute("SELECT max(id) FROM handed").fetchone() == (newest,):
                    return Start(time.perf_counter() - began, processor_s([pid]))
        except psycopg.Error as error:
            trouble = f": {error}"
        time.sleep(POLL_S)
    raise CaseFailed(f"the node does not show the newest row within {LIMIT_S:.0f} s of its start{trouble}")
