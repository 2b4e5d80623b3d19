"""Producers of the log workload that number their records, and append each again until they know that it is in the log.

A producer's notes outlive the nodes: they say which number it has seen acknowledged. It appends with any writer, also with
one that has lost the log, and with several at a time, as a producer does whose requests hang somewhere. Now and then it has many
entries on their way, gives up waiting for them, and repeats them at the same writer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from triplicate.errors import HandleClosed, SequenceGap
from triplicate.log import LogProducer, LogWriter
from triplicate_simulator.checkers.numbered_events import NumberedAcknowledged, NumberedRefused, NumberedSubmitted
from triplicate_simulator.workloads.log.log_model import UNKNOWN_OUTCOMES, LogModel, record_bytes

AHEAD, BACK = 2, 3
"""How many numbers a producer appends in turn, and how far it goes back to repeat what it has seen acknowledged."""
WINDOW = 12
"""Up to how many a producer has on their way together, each in an entry of its own."""
ENTRY_PAUSE_S = 0.02
"""A pause after which the next record is in another entry."""


class NumberedAppends:
    """The producers of one log, as one writer of it uses them.

    Args:
        purpose: of the random stream.
    """

    def __init__(self, model: LogModel, writer: LogWriter, *purpose: object) -> None:
        self._model = model
        self._writer = writer
        self._rng = model.rng(*purpose, "numbered")
        self._ahead = model.rng(*purpose, "numbered ahead")

    async def maybe_append(self) -> None:
        """Let a producer append, or not."""
        if self._model.load.producers and self._rng.random() < 0.5:
            number = self._rng.randrange(self._model.load.producers)
            try:
                await (self._append_ahead(number) if self._ahead.random() < 0.4 else self._append(number, is_last=False))
            except (TimeoutError, HandleClosed, *UNKNOWN_OUTCOMES) as error:
                self._model.context.count_unknown(error)
                self._model.count("numbered_unknown")

    async def append_last(self) -> None:
        """Let every producer append once more; that must succeed."""
        for number in range(self._model.load.producers):
            await self._append(number, is_last=True)

    async def _append(self, number: int, *, is_last: bool) -> None:
        model, rng, log = self._model, self._rng, self._writer.name
        name = f"producer-{number + 1}"
        acknowledged = model.numbered.setdefault((log, name), 0)
        first = acknowledged if is_last or rng.random() < 0.7 else max(0, acknowledged - rng.randrange(1, BACK + 1))
        count = 1 if is_last else rng.randrange(1, AHEAD + 1)
        # A producer may give up at any time and try again later.
        timeout_s = rng.uniform(0.0, 0.5) if rng.random() < 0.3 and not is_last else None
        async with asyncio.timeout(timeout_s):
            producer = await self._writer.producer(name)
            for sequence in range(first, first + count):
                await self._append_one(producer, sequence)

    async def _append_ahead(self, number: int) -> None:
        """Append many together, and repeat those whose acknowledgement is not waited for any more."""
        rng, log, name = self._ahead, self._writer.name, f"producer-{number + 1}"
        producer = await self._writer.producer(name)
        acknowledged = self._model.numbered.setdefault((log, name), 0)
        sequences = range(acknowledged, acknowledged + rng.randrange(1, WINDOW + 1))
        patience_s = rng.uniform(0.0, 0.3)
        if await self._append_together(producer, sequences, patience_s):
            self._model.count("numbered_repeated")
            await self._append_together(producer, sequences, rng.uniform(0.0, 5.0))

    async def _append_together(self, producer: LogProducer, sequences: Sequence[int], patience_s: float) -> bool:
        """Append each in a task of its own. True: some were cancelled after the time. Raises the error of the first that failed."""
        tasks = []
        for sequence in sequences:
            tasks.append(asyncio.create_task(self._append_one(producer, sequence)))
            await asyncio.sleep(ENTRY_PAUSE_S)
        try:
            _, pending = await asyncio.wait(tasks, timeout=patience_s)
        finally:
            for task in tasks:
                task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, asyncio.CancelledError):
                raise result
        return bool(pending)

    async def _append_one(self, producer: LogProducer, sequence: int) -> None:
        """Append one record. Every acknowledgement counts, also that of a repetition."""
        model, log, name = self._model, self._writer.name, producer.name
        value = b"%b #%d %b" % (name.encode(), sequence, b"." * (sequence % 7 * 20))
        model.add(NumberedSubmitted(model.time(), log, name, sequence, record_bytes(None, value)))
        try:
            done = await producer.append(value, sequence=sequence)
        except SequenceGap:
            model.add(NumberedRefused(model.time(), log, name, sequence, self._writer.epoch))
            raise
        offset = -1 if done.offset is None else done.offset
        model.add(NumberedAcknowledged(model.time(), log, name, sequence, self._writer.epoch, offset, done.is_duplicate))
        model.count("numbered_again" if done.is_duplicate else "numbered")
        model.numbered[log, name] = max(model.numbered[log, name], sequence + 1)
