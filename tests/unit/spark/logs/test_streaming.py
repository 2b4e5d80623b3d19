"""Streams over two logs whose world changes between any two steps, against what was written: nothing is skipped or doubled in silence."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.spark.micro_batches import VALUES
from tests.unit.spark.stand import Stand, stand
from triplicate.errors import TriplicateError
from triplicate.log import LogSettings
from triplicate.spark.logs import streaming
from triplicate.spark.logs.log_source import TriplicateDataSource
from triplicate.spark.logs.streaming import LogStreamReader

LOGS = ("a", "b")


@dataclass
class World:
    """Two logs of many lives, one stream with its checkpoint, and the rows that its sink has: (log, life, number)."""

    cluster: Stand
    limit: int | None
    start: str
    asks_with_start: bool = True
    """Whether Spark says where the stream stands when it asks for an end. PySpark 4.1 does not, and asks for the first end first."""
    lives: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LOGS, 0))
    ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LOGS, 0))
    subscribed: tuple[str, ...] = LOGS
    offsets: list[str] = field(default_factory=list)
    commits: int = 0
    sink: dict[int, list[str]] = field(default_factory=dict)
    reader: LogStreamReader | None = None
    begun: dict[str, str] = field(default_factory=dict)
    """The first row that each log had or would have when its first batch was decided."""

    def append(self, log: str, count: int) -> None:
        first = self.ends[log]
        self.ends[log] += count
        self.cluster.write(*(b"%s %d %d" % (log.encode(), self.lives[log], first + number) for number in range(count)), log=log)

    def truncate(self, log: str, count: int) -> None:
        first, end = self.cluster.access.bounds(log)
        self.cluster.loop.call(self.cluster.logs.truncate(log, min(end, first + count)))

    def make_again(self, log: str, count: int) -> None:
        self.cluster.make_again(log)
        self.lives[log] += 1
        self.ends[log] = 0
        if count:
            self.append(log, count)

    def there(self, log: str) -> list[str]:
        """The rows that a log holds."""
        first, end = self.cluster.access.bounds(log)
        return [f"{log} {self.lives[log]} {number}" for number in range(first, end)]

    def driver(self, allowed: bool) -> LogStreamReader:
        given = {"metadataserviceuri": "memory:", "subscribe": ",".join(self.subscribed)}
        if self.start == "time":
            given |= {"startingtimestamp": "0", "startingoffsetsbytimestampstrategy": "latest"}
        else:
            given["startingoffsets"] = self.start
        if self.limit is not None:
            given["maxoffsetspertrigger"] = str(self.limit)
        made = TriplicateDataSource({**given, "failondataloss": str(not allowed).lower()}).streamReader(VALUES)
        assert isinstance(made, LogStreamReader)
        return made

    def batch(self, allowed: bool, killed: str, available_now: bool) -> bool:
        """One batch, of a new process or of the one that runs; returns whether there was one.

        Args:
            killed: before which step the process ends; empty: it goes on.
        """
        if self.reader is None:
            self.reader = self.driver(allowed)
            if available_now:
                self.reader.prepareForTriggerAvailableNow()
        reader, number = self.reader, self.commits
        if self.asks_with_start or len(self.offsets) > number:
            start = self.offsets[number - 1] if number else json.dumps(reader.initialOffset())
        if len(self.offsets) == number:
            if self.asks_with_start:
                end = json.dumps(reader.latestOffset(json.loads(start), reader.getDefaultReadLimit()))
            else:
                end = json.dumps(reader.latestOffset())
                start = self.offsets[number - 1] if number else json.dumps(reader.initialOffset())
            if end == start and number:
                return False
            self.offsets.append(end)
            for log, position in json.loads(end)["logs"].items():
                if log not in self.begun and position > 0:
                    self.begun[log] = f"{log} {self.lives[log]} {self.cluster.access.bounds(log)[0]}"
        if killed == "before planning":
            self.reader = None
            return True
        rows = list(self.rows(reader, start, self.offsets[number]))
        if killed == "before the sink":
            self.reader = None
            return True
        self.sink.setdefault(number, rows)
        if killed == "before the commit":
            self.reader = None
            return True
        self.commits += 1
        return True

    def rows(self, reader: LogStreamReader, start: str, end: str) -> Iterator[str]:
        for part in reader.partitions(json.loads(start), json.loads(end)):
            for batch in reader.read(part):
                yield from (value.decode() for value in batch.column(0).to_pylist())

    def delivered(self, log: str) -> list[str]:
        return [row for number in sorted(self.sink) for row in self.sink[number] if row.startswith(log + " ")]


CHANGES = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(LOGS), st.integers(1, 4)),
    st.tuples(st.just("truncate"), st.sampled_from(LOGS), st.integers(1, 4)),
    st.tuples(st.just("make again"), st.sampled_from(LOGS), st.integers(0, 4)),
    st.tuples(st.just("subscribe"), st.sampled_from([("a",), ("b",), LOGS]), st.just(0)),
    st.tuples(st.just("restart"), st.just(""), st.just(0)),
)
BATCHES = st.tuples(st.just("batch"), st.sampled_from(["", "before planning", "before the sink", "before the commit"]), st.integers(0, 1))
FILLED = [("append", "a", 3), ("append", "b", 2)]
INTERRUPTED = st.tuples(BATCHES, CHANGES, BATCHES).map(list)
ANYTHING = st.lists(st.one_of(CHANGES, BATCHES), max_size=3)
STEPS = st.tuples(st.sampled_from([FILLED, FILLED, []]), INTERRUPTED, st.lists(st.one_of(INTERRUPTED, ANYTHING), max_size=5)).map(
    lambda parts: [*parts[0], *parts[1], *(step for part in parts[2] for step in part)]
)


def play(world: World, steps: list[Any], allowed: bool) -> None:
    for what, which, count in steps:
        if what == "append":
            world.append(which, count)
        elif what == "truncate":
            world.truncate(which, count)
        elif what == "make again":
            world.make_again(which, count)
        elif what == "subscribe":
            world.subscribed, world.reader = which, None
        elif what == "restart":
            world.reader = None
        else:
            world.batch(allowed, which, bool(count))
    world.subscribed, world.reader = LOGS, None
    for _ in range(100):
        if not world.batch(allowed, "", False):
            return
    raise AssertionError("the stream never comes to an end")


def run(limit: int | None, start: str, steps: list[Any], allowed: bool, *, asks_with_start: bool = True) -> TriplicateError | None:
    with pytest.MonkeyPatch.context() as monkeypatch, stand(monkeypatch) as cluster:
        monkeypatch.setattr(streaming, "LOOK_INTERVAL_S", 0.0)
        for log in LOGS:
            cluster.loop.call(cluster.logs.create(log, LogSettings()))
        monkeypatch.setattr(streaming, "HAS_LIMITS", asks_with_start)
        world = World(cluster, limit, start, asks_with_start)
        try:
            play(world, steps, allowed)
        except TriplicateError as error:
            return error
        check(world, allowed)
        return None


def check(world: World, allowed: bool) -> None:
    for log in LOGS:
        rows = world.delivered(log)
        assert len(rows) == len(set(rows)), "a row was delivered twice"
        if world.start == "earliest":
            missing = [row for row in world.there(log) if row not in rows]
            assert not missing, "a row that is there was not delivered"
        if not allowed and rows:
            places = [tuple(map(int, row.split()[1:])) for row in rows]
            life, first = places[0]
            assert places == [(life, first + number) for number in range(len(places))], "a row was skipped"
            if world.start == "earliest" and world.asks_with_start:
                assert rows[0] == world.begun[log]


@settings(deadline=None, max_examples=examples(150))
@given(st.sampled_from([None, 3]), st.sampled_from(["earliest", "latest", "time"]), STEPS)
def test_without_an_error_no_row_is_skipped_or_doubled(limit: int | None, start: str, steps: list[Any]) -> None:
    run(limit, start, steps, False)


@settings(deadline=None, max_examples=examples(150))
@given(st.sampled_from([None, 3]), st.sampled_from(["earliest", "latest", "time"]), STEPS)
def test_where_loss_is_allowed_what_is_there_is_delivered_once(limit: int | None, start: str, steps: list[Any]) -> None:
    logging.getLogger("triplicate.spark.cluster.progress").setLevel(logging.CRITICAL)
    try:
        error = run(limit, start, steps, True)
    finally:
        logging.getLogger("triplicate.spark.cluster.progress").setLevel(logging.NOTSET)
    if error is not None:
        raise error


@settings(deadline=None, max_examples=examples(150))
@given(st.sampled_from(["earliest", "latest", "time"]), STEPS)
def test_without_an_error_nothing_is_skipped_or_doubled_with_pyspark_4_1(start: str, steps: list[Any]) -> None:
    run(None, start, [step for step in steps if step != ("batch", step[1], 1)], False, asks_with_start=False)
