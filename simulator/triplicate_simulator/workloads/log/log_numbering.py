"""Producers of the log workload that number their records, and append each again until they know that it is in the log.

A producer's notes outlive the nodes: they say which number it has seen acknowledged. It appends with any writer, also with
one that has lost the log, and with several at a time, as a producer does whose requests hang somewhere.
"""

from __future__ import annotations

import asyncio

from triplicate.errors import HandleClosed
from triplicate.log import LogWriter
from triplicate_simulator.checkers.numbered_events import NumberedAcknowledged, NumberedSubmitted
from triplicate_simulator.workloads.log.log_model import UNKNOWN_OUTCOMES, LogModel, record_bytes

AHEAD, BACK = 2, 3
"""How many numbers a producer appends together, and how far it goes back to repeat what it has seen acknowledged."""


class NumberedAppends:
    """The producers of one log, as one writer of it uses them.

    Args:
        purpose: of the random stream.
    """

    def __init__(self, model: LogModel, writer: LogWriter, *purpose: object) -> None:
        self._model = model
        self._writer = writer
        self._rng = model.rng(*purpose, "numbered")

    async def maybe_append(self) -> None:
        """Let a producer append, or not."""
        if self._model.load.producers and self._rng.random() < 0.5:
            try:
                await self._append(self._rng.randrange(self._model.load.producers), is_last=False)
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
                value = b"%b #%d %b" % (name.encode(), sequence, b"." * (sequence % 7 * 20))
                model.add(NumberedSubmitted(model.time(), log, name, sequence, record_bytes(None, value)))
                done = await producer.append(value, sequence=sequence)
                offset = -1 if done.offset is None else done.offset
                model.add(NumberedAcknowledged(model.time(), log, name, sequence, offset, done.is_duplicate))
                model.count("numbered_again" if done.is_duplicate else "numbered")
                model.numbered[log, name] = max(model.numbered[log, name], sequence + 1)
