"""Joining small staging ledgers of a batch before they are published, so that a log does not list hundreds of tiny segments.

A failure does no harm: the new ledgers are staging ledgers like the old ones, and only publishing lists them. If the process dies, the
sweep of orphans deletes both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import CorruptionError, TriplicateError
from triplicate.log.core.head import Head
from triplicate.log.core.join_plan import runs_to_join
from triplicate.log.core.payload import decode_header
from triplicate.log.core.rewrite_plan import with_first_index
from triplicate.log.publishing.staging import StagedLedger, StagingOrigin
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient
from triplicate.log.store.log_encryption import staging_mark
from triplicate.log.store.segments import create_segment
from triplicate.log.upkeep.rewriter import PipelinedAppender, payloads_of
from triplicate.log.writing.ledger_allocator import delete_unused
from triplicate.runtime import fault_point, map_bounded

READ_LEDGERS = 16
READ_BYTES = 8 * 1024 * 1024
"""Limits of what is read concurrently."""


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The ledgers to publish in place of given staging ledgers.

    Args:
        ledgers: in order; those that were joined are replaced by the joined ledger.
        replaced: the ledgers that are no longer needed once `ledgers` are published.
        made: those of `ledgers` that were created by joining.
    """

    ledgers: tuple[StagedLedger, ...]
    replaced: tuple[StagedLedger, ...] = ()
    made: tuple[StagedLedger, ...] = ()


async def join(
    client: LedgerClient,
    settings: LogClientSettings,
    head: Head,
    origin: StagingOrigin,
    ledgers: Sequence[StagedLedger],
    target_bytes: int,
) -> JoinResult:
    """See `Logs.join_staged`."""
    filled = [ledger for ledger in ledgers if ledger.records]
    runs = runs_to_join([ledger.size_bytes for ledger in filled], target_bytes)
    made: dict[int, StagedLedger] = {}
    try:
        for run in runs:
            made[run.start] = await _join_run(client, settings, head, origin, filled[run.start : run.stop])
    except BaseException:
        for ledger in made.values():
            await _delete(client, ledger)
        raise
    inside = {place for run in runs for place in run}
    kept = [(place, ledger) for place, ledger in enumerate(filled) if place not in inside]
    return JoinResult(
        tuple(ledger for _, ledger in sorted([*kept, *made.items()], key=lambda item: item[0])),
        tuple(filled[place] for place in sorted(inside)),
        tuple(made.values()),
    )


async def _join_run(
    client: LedgerClient, settings: LogClientSettings, head: Head, origin: StagingOrigin, run: Sequence[StagedLedger]
) -> StagedLedger:
    """Create one staging ledger with the entries of several, in order."""
    custom = {**origin.custom(), **staging_mark(head), "joined": str(len(run))}
    ledger, _ = await create_segment(client, settings, head.settings, custom)
    try:
        records, size_bytes = await _copy(client, settings, run, ledger, is_encrypted=bool(head.key_id))
        last_entry = await ledger.close()
    except asyncio.CancelledError:
        ledger.abandon()
        raise
    except Exception:
        await delete_unused(client, ledger)
        raise
    return StagedLedger(
        ledger.ledger_id,
        records,
        size_bytes,
        last_entry,
        min(staged.min_time_us for staged in run),
        max(staged.max_time_us for staged in run),
    )


@fault_point("log.join_copy")
async def _copy(
    client: LedgerClient, settings: LogClientSettings, run: Sequence[StagedLedger], ledger: LedgerAppender, *, is_encrypted: bool
) -> tuple[int, int]:
    """Write the entries of some ledgers into another. Returns its records and bytes.

    Raises:
        CorruptionError: a ledger does not hold the records of its `StagedLedger`, or they are not encrypted as the log demands.
    """

    async def read(staged: StagedLedger) -> list[bytes]:
        return [payload async for payload in payloads_of(client, settings, staged)]

    records = size_bytes = 0
    appender = PipelinedAppender(ledger)
    try:
        for group in _groups(run):
            for staged, payloads in zip(group, await map_bounded(read, group, most=READ_LEDGERS, name="join"), strict=True):
                first = records
                for payload in payloads:
                    header = decode_header(payload)
                    if (header.encryption is not None) != is_encrypted:
                        text = "is in plain text, and the log is encrypted" if is_encrypted else "is encrypted, and the log is not"
                        raise CorruptionError(f"ledger {staged.ledger_id}: an entry {text}")
                    if first + header.first_index != records:
                        raise CorruptionError(
                            f"ledger {staged.ledger_id} holds record {header.first_index} where {records - first} follows"
                        )
                    await appender.send(with_first_index(payload, records))
                    records += header.count
                    size_bytes += len(payload)
                if records - first != staged.records:
                    raise CorruptionError(f"ledger {staged.ledger_id} holds {records - first} records; its task wrote {staged.records}")
        await appender.finish()
    finally:
        appender.detach()
    return records, size_bytes


def _groups(run: Sequence[StagedLedger]) -> Iterator[list[StagedLedger]]:
    """Cut a run into groups of ledgers whose entries fit into memory together."""
    group: list[StagedLedger] = []
    for staged in run:
        if group and (len(group) >= READ_LEDGERS or sum(item.size_bytes for item in group) + staged.size_bytes > READ_BYTES):
            yield group
            group = []
        group.append(staged)
    if group:
        yield group


async def _delete(client: LedgerClient, ledger: StagedLedger) -> None:
    """Delete a ledger that was not published. If that fails, the sweep of orphans deletes it later."""
    try:
        await client.delete(ledger.ledger_id)
    except TriplicateError as error:
        client.host.trace("log.orphan", ledger=ledger.ledger_id, error=repr(error))
