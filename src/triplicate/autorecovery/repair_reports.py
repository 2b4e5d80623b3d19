"""A repair that takes longer records its progress in the metadata, at intervals, for `triplicate cluster status`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn, Protocol

from triplicate.autorecovery.core.repair_rate import RepairRate
from triplicate.client import Client
from triplicate.errors import MetadataError
from triplicate.metadata import RepairProgress
from triplicate.runtime import TaskScope, shielded, sleep, timeout_at

REPORT_EVERY_S = 5.0
"""A repair that ends before writes nothing."""
REPORT_LIMIT_S = 2.0
"""How long one change of the record may take."""


class CountedRepair(Protocol):
    """The counts of a repair that are reported."""

    entries: int
    size_bytes: int
    expected_entries: int | None


@asynccontextmanager
async def reported(client: Client, ledger_id: int, worker: str, repair: CountedRepair) -> AsyncIterator[None]:
    """Record the progress of the repair that runs in this block. A metadata store that fails is traced, and holds nothing up."""
    async with TaskScope(f"progress of ledger {ledger_id}") as scope:
        reporting = scope.spawn(_report(client, ledger_id, worker, repair), name="report")
        try:
            yield
        finally:
            reporting.cancel()


async def _report(client: Client, ledger_id: int, worker: str, repair: CountedRepair) -> NoReturn:
    clock, records = client.host.clock, client.metadata.repair_notes.progress
    since_ms, rate, is_recorded = clock.wall_us() // 1000, RepairRate(), False
    rate.observe(clock.monotonic(), repair.entries, repair.size_bytes)
    try:
        while True:
            await sleep(clock, REPORT_EVERY_S)
            entries, size_bytes = repair.entries, repair.size_bytes
            rates = rate.observe(clock.monotonic(), entries, size_bytes)
            now_ms, expected = clock.wall_us() // 1000, repair.expected_entries
            progress = RepairProgress(worker, since_ms, now_ms, entries, size_bytes, expected, *rates)
            is_recorded = True
            try:
                async with timeout_at(clock.monotonic() + REPORT_LIMIT_S):
                    await records.write(ledger_id, progress)
            except (MetadataError, TimeoutError) as error:
                client.host.trace("autorecovery.progress_not_recorded", ledger=ledger_id, error=str(error) or "no answer in time")
    finally:
        if is_recorded:
            await shielded(_clear(client, ledger_id))


async def _clear(client: Client, ledger_id: int) -> None:
    clock = client.host.clock
    try:
        async with timeout_at(clock.monotonic() + REPORT_LIMIT_S):
            await client.metadata.repair_notes.progress.clear(ledger_id)
    except (MetadataError, TimeoutError) as error:
        # It ends with the session.
        client.host.trace("autorecovery.progress_not_recorded", ledger=ledger_id, error=str(error) or "no answer in time")
