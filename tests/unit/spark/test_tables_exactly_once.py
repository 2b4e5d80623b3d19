"""Drivers and tasks between a log and a table are killed, stopped and woken, or repeated: each record is one row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.spark.micro_batches import Checkpoint, Query, play_drivers, use_tasks
from tests.unit.spark.table_stand import SOURCE, TableStand, table_stand
from triplicate.spark.tables.table_source import TableDataSource

RECORDS = 17
_tables = count(1)


@dataclass
class Bench:
    """A table of its own."""

    stand: TableStand
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    table: str = field(default_factory=lambda: f"t{next(_tables)}")

    def __post_init__(self) -> None:
        self.stand.must(f"create table {self.table}(value bytea)")

    def query(self, **named: object) -> Query:
        source = {
            "metadataServiceUri": "memory:",
            "log": SOURCE,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": "7",
            "recordsPerPartition": "3",
        }
        sink = {"metadataServiceUri": "memory:", "database": "db", "table": self.table}
        return Query(source, sink, self.checkpoint, kind=TableDataSource, **named)  # type: ignore[arg-type]

    def finish(self) -> None:
        """A driver that nothing happens to."""
        for _step in self.query().driver():
            pass

    def check(self) -> None:
        found = self.stand.rows(f"select value from {self.table} order by rowid")
        assert [value for (value,) in found] == [b"%d" % number for number in range(RECORDS)]


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableStand]:
    with pytest.MonkeyPatch.context() as monkeypatch, table_stand(monkeypatch, tmp_path_factory.mktemp("stand")) as made:
        use_tasks(monkeypatch)

        async def fill() -> None:
            writer = await made.cluster.logs["admin"].writer(SOURCE, owner="application")
            for number in range(RECORDS):
                await writer.append_entry([b"%d" % number])
            await writer.close()

        made.loop.call(fill())
        yield made


def test_a_driver_that_is_killed_before_any_step_loses_and_doubles_no_row(stand: TableStand) -> None:
    whole = Bench(stand)
    steps = list(whole.query().driver())
    whole.check()
    assert len([step for step in steps if step.startswith("commit of")]) == 3
    for killed_at, name in enumerate(steps):
        made = Bench(stand)
        driver = made.query().driver()
        for _ in range(killed_at + 1):
            step = next(driver)
        assert step == name
        del driver
        made.finish()
        made.check()


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_drivers_that_are_stopped_replaced_and_woken_write_each_row_once(stand: TableStand, data: st.DataObject) -> None:
    made = Bench(stand)

    def start() -> Iterator[str]:
        return made.query(attempts=lambda _batch, _partition: data.draw(st.integers(1, 2), "attempts")).driver()

    play_drivers(start, data, 40)
    made.check()
