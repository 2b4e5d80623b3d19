"""Logs over ledgers in memory, reached as the sources reach them: blocking, through `access.logs`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pytest

from tests.unit.log.fake import Stage
from triplicate.blocking import BackgroundLoop
from triplicate.log import Logs, LogSettings
from triplicate.spark.cluster import access
from triplicate.spark.cluster.access import LogAccess
from triplicate.spark.cluster.arrow import record_batches
from triplicate.spark.core.given_options import ClientOptions
from triplicate.spark.core.log_options import WriteOptions

LOG = "events"
SCHEMA = pa.schema([("offset", pa.int64()), ("key", pa.binary()), ("value", pa.binary())])


class Stand:
    """A cluster in memory with one empty log."""

    def __init__(self, loop: BackgroundLoop, logs: Logs, stage: Stage) -> None:
        self.loop = loop
        self.logs = logs
        self.stage = stage
        self.bookies = stage.bookies
        self.access = LogAccess(loop, self.logs)
        loop.call(self.logs.create(LOG, LogSettings()))

    def make_again(self, log: str = LOG) -> None:
        """Delete a log and make another of its name."""

        async def body() -> None:
            await self.logs.delete(log)
            await self.logs.create(log, LogSettings())

        self.loop.call(body())

    def log_id(self, log: str = LOG) -> str:
        return self.access.state(log).log_id

    def write(self, *values: bytes | None, log: str = LOG) -> None:
        """Write through a log writer, one entry for each value, and close."""

        async def body() -> None:
            writer = await self.logs.writer(log, owner="test")
            for value in values:
                await writer.append_entry([value])
            await writer.close()

        self.loop.call(body())

    def write_at(self, time_ms: int, *values: bytes | None, log: str = LOG) -> None:
        """Write at a time in ms since the epoch."""
        self.stage.wall_us = time_ms * 1000
        self.write(*values, log=log)

    def values(self) -> list[bytes | None]:
        """All that the log holds, read as a task reads it."""
        first, end = self.access.bounds(LOG)
        batches = [
            batch for part in self.access.plan(LOG, first, end, 1_000) for batch in record_batches(LOG, self.access.entries(part), SCHEMA)
        ]
        table = pa.Table.from_batches(batches, SCHEMA)
        assert table["offset"].to_pylist() == list(range(first, end))
        values: list[bytes | None] = table["value"].to_pylist()
        return values


def write_options(application: str | None = None, version: int | None = None) -> WriteOptions:
    return WriteOptions("memory:", "", LOG, application, version)


def rows(*values: bytes) -> Iterator[pa.RecordBatch]:
    """The argument that Spark gives to a task: one batch."""
    return iter([pa.record_batch({"value": pa.array(values, pa.binary())})])


@contextmanager
def stand(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    """`access.logs` gives the logs of this stand for any URI."""
    loop = BackgroundLoop("stand")

    async def make() -> tuple[Logs, Stage]:
        stage = Stage()
        return stage.logs(), stage

    try:
        made = Stand(loop, *loop.call(make()))

        @contextmanager
        def logs(metadata_uri: str, ledger_password: str = "", keys_file: str = "", client: ClientOptions = ()) -> Iterator[LogAccess]:
            yield made.access

        monkeypatch.setattr(access, "logs", logs)
        yield made
    finally:
        loop.close()


def ledgers_of(stand: Stand, ids: Sequence[int]) -> list[int]:
    """Those of some ledgers that are still there."""
    return [ledger_id for ledger_id in ids if ledger_id in stand.bookies.ledgers]
