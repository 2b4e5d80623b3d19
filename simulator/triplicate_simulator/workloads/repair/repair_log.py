"""The log of the repair workload: writers compete for it, readers follow it by offset, and in the end its segments have full copies."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from triplicate.client import Client
from triplicate.errors import MetadataError
from triplicate.log import Logs, SegmentState
from triplicate_simulator.checkers.domain_rules import SegmentKept
from triplicate_simulator.workloads.log.log_load import LogLoad
from triplicate_simulator.workloads.log.log_model import WRITTEN, LogModel
from triplicate_simulator.workloads.log.log_readers import FinalLogReader, LogTailer
from triplicate_simulator.workloads.log.log_writers import LogWriterActor
from triplicate_simulator.workloads.repair.repair_load import RepairLoad

if TYPE_CHECKING:
    from triplicate_simulator.cluster.run_context import RunContext

COPIES = 3
"""The write quorum of the log: as many machines as are always left in the end."""
TAILER = "log-tailer"
TENURE_S = 12.0
"""Average time for which a writer keeps the log."""
ROLL_AGE_S = 2.0


def log_load(load: RepairLoad) -> LogLoad:
    """The load of the log: writers and readers without publishers, truncation or retention."""
    return LogLoad(
        ensemble_size=COPIES,
        write_quorum=COPIES,
        ack_quorum=2,
        writers=load.log_writers,
        pause_mean_s=0.6,
        burst_high=2,
        tenure_mean_s=TENURE_S,
        value_high_bytes=200,
        window_entries=8,
        roll_size_bytes=load.log_roll_bytes,
        roll_age_s=ROLL_AGE_S,
        compression="none",
        evictions=0,
        truncations=0,
        retain_size_bytes=0,
        control=False,
        applications=0,
        rivals=False,
        batches=0,
        tasks=0,
        deaths=0,
        interruptions=0,
        outages=0,
        lost_answers=0,
        crowded=False,
        small_pages=False,
    )


def log_writer_names(load: RepairLoad) -> tuple[str, ...]:
    """Nodes of the log's writers."""
    return tuple(f"log-writer-{number}" for number in range(1, load.log_writers + 1))


class RepairLog:
    """The actors of the log."""

    def __init__(self, context: RunContext, model: LogModel) -> None:
        self._context = context
        self._model = model
        self._writing: list[asyncio.Task[None]] = []
        self._tailing: list[asyncio.Task[None]] = []

    async def begin(self, load: RepairLoad) -> None:
        """Create the log and start its writers and readers."""
        await self._context.cluster.client("log-administrator").run(self._create)
        for number, name in enumerate(log_writer_names(load)):
            writer = LogWriterActor(
                self._model, name, WRITTEN, idle_mean_s=2.0 * load.log_writers, tenure_mean_s=TENURE_S, first_s=8.0 * number
            )
            self._writing.append(self._begin(name, writer))
        self._tailing.append(self._begin(TAILER, LogTailer(self._model, TAILER, WRITTEN, restarts=1)))

    def _begin(self, name: str, program: Callable[[Client], Awaitable[None]]) -> asyncio.Task[None]:
        return self._context.world.loop.start_task(self._model.keep_running(name, program), name=f"keep {name}")

    async def _create(self, client: Client) -> None:
        await self._model.logs(client).create(WRITTEN, self._model.log_settings(WRITTEN))

    async def finish_writing(self) -> None:
        """Wait until every writer has proved that it can write and has left the log."""
        await self._context.finish_by_deadline(self._writing)

    async def finish(self) -> None:
        """Read the log from its first offset to its end, and record how many copies its segments have. Everything is healed."""
        reader = FinalLogReader(self._model, (WRITTEN,))
        await self._context.finish_by_deadline([self._context.keep_running("log-final", reader)])
        await self._context.finish_by_deadline(self._tailing)
        await self._context.finish_by_deadline([self._context.keep_running("log-auditor", self._audit)])

    async def _audit(self, client: Client) -> None:
        """Delete what interrupted rewritings left, and record the segments."""
        logs = Logs(client, replace(self._model.client_settings, orphan_grace_s=0.0, staging_grace_s=0.0))
        while True:
            try:
                await logs.sweep(WRITTEN)
                found = [segment for segment in await logs.segments(WRITTEN) if segment.state is SegmentState.CLOSED]
                quorums = [(await client.metadata_of(segment.ledger_id)).write_quorum for segment in found]
            except MetadataError as error:
                self._context.count_unknown(error)
                await asyncio.sleep(0.5)
            else:
                break
        for segment, quorum in zip(found, quorums, strict=True):
            kept = SegmentKept(self._context.time(), WRITTEN, segment.ledger_id, quorum, COPIES, segment.reduced is not None)
            self._context.history.add(kept)

    def counts(self) -> dict[str, int]:
        """Counts of the log's events."""
        return {f"log.{name}": count for name, count in sorted(self._model.counted.items())}
