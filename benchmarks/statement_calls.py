"""Count the Python calls, thread hops and turns of the event loop of one-row INSERTs and SELECTs, from the client's message to the answer.

One database node runs in this process over ledgers in memory, and psycopg talks to its PostgreSQL server from a thread. Only calls of
functions in `triplicate` count. Resumptions of coroutines and generators are counted apart. A hop is a function handed to a worker thread,
a turn one pass of the loop through its ready callbacks. The no-op that follows an acknowledged entry by 0.5 ms is counted where it comes
before the answer.

    python -m benchmarks.statement_calls [--rows 20] [--detail]

Four cases are printed, each as the median of its statements:

- ``parsed``: the text is the same each time, and the client sends Parse, Bind, Describe, Execute and Sync.
- ``prepared``: the client has prepared the statement and sends Bind, Describe, Execute and Sync.
- ``new text``: each statement has a text of its own, as clients send that write values into it.
- ``read``: a prepared SELECT of one row by its key.
"""

from __future__ import annotations

import argparse
import asyncio
import dis
import inspect
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import psycopg

import triplicate
from tests.unit.sql.cluster import Cluster
from triplicate.runtime import real
from triplicate.sql import PostgresServer

_PACKAGE = str(Path(triplicate.__file__).parent)
_TURN = asyncio.BaseEventLoop._run_once.__code__  # type: ignore[attr-defined]
_QUIET_S = 0.05
"""Pause between statements, so that remaining work of one does not count for the next."""


@cache
def _first_instruction(code: CodeType) -> int:
    """Instruction offset of a frame at its first entry; the size of the code for a plain function."""
    if not code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return len(code.co_code)
    return next(one.offset for one in dis.get_instructions(code) if one.opname == "RESUME")


class CallCounter:
    """Counts calls by file and function on every thread while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.calls: Counter[tuple[str, str]] = Counter()
        self.hops: list[str] = []
        self.resumed = 0
        self.turns = 0

    def begin(self) -> None:
        """Count from zero."""
        self.calls, self.hops, self.resumed, self.turns, self.is_on = Counter(), [], 0, 0, True

    def end(self) -> Measured:
        """Stop counting; what was counted."""
        self.is_on = False
        return Measured(self.calls, self.hops, self.resumed, self.turns)

    def install(self) -> None:
        """Profile this thread and all threads started later."""
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    def remove(self) -> None:
        threading.setprofile(None)
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or not self.is_on:
            return
        code = frame.f_code
        self.turns += code is _TURN
        if not code.co_filename.startswith(_PACKAGE):
            return
        if frame.f_lasti > _first_instruction(code):
            self.resumed += 1
        else:
            self.calls[code.co_filename[len(_PACKAGE) + 1 :], code.co_qualname] += 1
        if code.co_qualname == "RealWorker.run":
            function = frame.f_locals["function"]
            self.hops.append(getattr(function, "__qualname__", repr(function)))


class Measured(NamedTuple):
    """One statement: calls by file and function, functions handed to threads, resumptions, and turns of the loop."""

    calls: Counter[tuple[str, str]]
    hops: list[str]
    resumed: int
    turns: int


def _measured(counter: CallCounter, count: int, statement: Callable[[int], object]) -> list[Measured]:
    found = []
    for index in range(count):
        time.sleep(_QUIET_S)
        counter.begin()
        statement(index)
        found.append(counter.end())
    return found


def _report(name: str, found: list[Measured], *, detail: bool) -> None:
    ordered = sorted(found, key=lambda one: one.calls.total())
    middle = ordered[len(ordered) // 2]
    by_file: Counter[str] = Counter()
    for (file, _), count in middle.calls.items():
        by_file[file] += count
    span = f"{ordered[0].calls.total()}-{ordered[-1].calls.total()}"
    print(f"{name:9} {middle.calls.total():5} calls ({span}), {middle.resumed} resumptions, {len(by_file)} files", end="")
    print(f", {statistics.median(one.turns for one in found):.0f} turns of the loop", end="")
    print(f", {len(middle.hops)} hops: {', '.join(middle.hops)}")
    for file, count in by_file.most_common() if detail else ():
        print(f"    {count:5} {file}")
        for (where, function), calls in middle.calls.most_common():
            if where == file:
                print(f"          {calls:5} {function}")


def run_cases(counter: CallCounter, dsn: str, rows: int, *, detail: bool) -> None:
    """Run the four cases on one connection and print them. Blocks."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table t(id integer primary key, name text)")
        text = "insert into t values (%s, %s)"
        for case, prepare in (("parsed", False), ("prepared", True)):
            first = 0 if not prepare else rows + 3

            def insert(index: int, first: int = first, prepare: bool = prepare) -> None:
                connection.execute(text, (first + index, "anvil"), prepare=prepare)

            for index in range(3):
                insert(rows + index)
            _report(case, _measured(counter, rows, insert), detail=detail)

        def insert_new(index: int) -> None:
            connection.execute(f"insert into t values ({1000 + index}, 'anvil')".encode())

        _report("new text", _measured(counter, rows, insert_new), detail=detail)

        def read(index: int) -> None:
            connection.execute("select name from t where id = %s", (index,), prepare=True)

        for index in range(3):
            read(index)
        _report("read", _measured(counter, rows, read), detail=detail)


async def measure(folder: Path, rows: int, *, detail: bool) -> None:
    """Start a node, and run the cases from another thread."""
    counter = CallCounter()
    counter.install()
    cluster = Cluster(folder)
    await cluster.create()
    node = await cluster.start("n1")
    server = await PostgresServer.open(cluster.stage.host, node.databases, ("127.0.0.1", 0))
    try:
        await cluster.leader()
        host, port = server.address
        await asyncio.to_thread(run_cases, counter, f"host={host} port={port} dbname=db user=me", rows, detail=detail)
    finally:
        counter.remove()
        await server.stop()
        await cluster.stop()


def main() -> None:
    assert real.RealWorker.run.__qualname__ == "RealWorker.run", "hops are counted by this name"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=20, help="statements of each case")
    parser.add_argument("--detail", action="store_true", help="list the calls of the median statement by file and function")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(Path(folder), arguments.rows, detail=arguments.detail))


if __name__ == "__main__":
    main()
