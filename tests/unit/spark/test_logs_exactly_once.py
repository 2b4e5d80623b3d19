"""Whatever is killed, stopped and woken, repeated or lost between a log and a log: each record is there once, in order."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.spark.micro_batches import Checkpoint, Query, play_drivers, use_tasks
from tests.unit.spark.stand import LOG, Stand, stand
from triplicate.errors import ConnectionLost
from triplicate.log import LogSettings, PublishResult
from triplicate.spark.cluster.access import LogAccess

SOURCE = "source"
RECORDS = 17


@dataclass
class Bench:
    cluster: Stand
    checkpoint: Checkpoint

    def query(self, **named: object) -> Query:
        source = {
            "metadataServiceUri": "memory:",
            "log": SOURCE,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "7",
            "recordsPerPartition": "3",
        }
        sink = {"metadataServiceUri": "memory:", "log": LOG}
        return Query(source, sink, self.checkpoint, **named)  # type: ignore[arg-type]

    def finish(self) -> None:
        """A driver that nothing happens to."""
        for _step in self.query().driver():
            pass

    def check(self) -> None:
        assert self.cluster.values() == [b"%d" % number for number in range(RECORDS)]


@contextmanager
def bench() -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as monkeypatch, stand(monkeypatch) as cluster:
        use_tasks(monkeypatch)
        cluster.loop.call(cluster.logs.create(SOURCE, LogSettings()))

        async def fill() -> None:
            writer = await cluster.logs.writer(SOURCE, owner="application")
            for number in range(RECORDS):
                await writer.append_entry([b"%d" % number])
            await writer.close()

        cluster.loop.call(fill())
        yield Bench(cluster, Checkpoint())


def steps_of_a_whole_run() -> list[str]:
    with bench() as made:
        steps = list(made.query().driver())
        made.check()
        return steps


def test_a_driver_that_is_killed_before_any_step_loses_and_doubles_nothing() -> None:
    steps = steps_of_a_whole_run()
    assert len([step for step in steps if step.startswith("commit of")]) == 3
    for killed_at, name in enumerate(steps):
        with bench() as made:
            driver = made.query().driver()
            for _ in range(killed_at + 1):
                step = next(driver)
            assert step == name
            del driver
            made.finish()
            made.check()


@pytest.mark.parametrize("lost", ["before", "after"])
def test_a_commit_whose_answer_is_lost_is_distinguished_from_one_that_did_not_happen(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = LogAccess.publish
    calls = 0

    def failing(self: LogAccess, *args: object, **named: object) -> PublishResult:
        nonlocal calls
        calls += 1
        if calls != 2:
            return publish(self, *args, **named)  # type: ignore[arg-type]
        if lost == "after":
            publish(self, *args, **named)  # type: ignore[arg-type]
        raise ConnectionLost("the answer was lost")

    with bench() as made:
        monkeypatch.setattr(LogAccess, "publish", failing)
        with pytest.raises(ConnectionLost):
            made.finish()
        made.finish()
        made.check()
        assert calls > 2


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_drivers_that_are_stopped_replaced_and_woken_publish_each_record_once(data: st.DataObject) -> None:
    with bench() as made:

        def start() -> Iterator[str]:
            return made.query(attempts=lambda _batch, _partition: data.draw(st.integers(1, 2), "attempts")).driver()

        play_drivers(start, data, 60)
        made.check()
