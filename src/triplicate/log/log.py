"""One log by its name: what programs need that read and write records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from triplicate.log.core.positions import EARLIEST, LATEST, Position

if TYPE_CHECKING:
    from triplicate.log.logs import Logs
    from triplicate.log.reading.backward_reader import BackwardReader
    from triplicate.log.reading.log_consumer import LogConsumer
    from triplicate.log.reading.log_record import LogRecord
    from triplicate.log.reading.log_records import LogRecords
    from triplicate.log.writing.log_producer import LogProducer
    from triplicate.log.writing.log_writer import LogWriter


class Log:
    """Made by ``logs["flights"]``. ``async for record in log`` delivers all records from the first on, and then new ones."""

    def __init__(self, name: str, logs: Logs) -> None:
        self.name = name
        self._logs = logs

    def __aiter__(self) -> AsyncIterator[LogRecord]:
        return self.records().__aiter__()

    def records(self, from_: Position = EARLIEST, *, to: Position | None = None) -> LogRecords:
        """See `Logs.records`."""
        return self._logs.records(self.name, from_, to=to)

    def backwards(self, from_: Position = LATEST, *, skip_lost: bool = False) -> BackwardReader:
        """See `Logs.backwards`."""
        return self._logs.backwards(self.name, from_, skip_lost=skip_lost)

    async def last_record(self) -> LogRecord | None:
        """See `Logs.last_record`."""
        return await self._logs.last_record(self.name)

    async def writer(self, *, owner: str = "", take_over: bool = True) -> LogWriter:
        """See `Logs.writer`."""
        return await self._logs.writer(self.name, owner=owner, take_over=take_over)

    async def producer(self, producer: str, *, epoch: int = 0, owner: str = "", take_over: bool = True) -> LogProducer:
        """See `Logs.producer`."""
        return await self._logs.producer(self.name, producer, epoch=epoch, owner=owner, take_over=take_over)

    async def consumer(
        self, consumer: str, *, start: Position = EARLIEST, save_interval_s: float | None = None, skip_truncated: bool = False
    ) -> LogConsumer:
        """See `Logs.consumer`."""
        return await self._logs.consumer(self.name, consumer, start=start, save_interval_s=save_interval_s, skip_truncated=skip_truncated)

    def __repr__(self) -> str:
        return f"<Log {self.name}>"
