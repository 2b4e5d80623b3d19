"""Rewriting closed segments: those with missing copies into ledgers with all copies, and small neighbours into one ledger.

For each run of segments the rewriter reads their ledgers, writes a new one with all copies, reads it back, replaces the run in the list by
compare-and-set, and deletes the old ledgers. Nothing else changes before the list. If the process dies, the sweep of orphans deletes the
new ledger and the next rewriting starts again. A reader that meets a deleted ledger reads the list again and finds the new one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Protocol

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import BadVersion, CorruptionError, LogError, NoNode, NoSuchLedger, NotEnoughBookies, WindowFull
from triplicate.ledger import encode_metadata
from triplicate.log.core import head_changes
from triplicate.log.core.head import Head, LogSegment
from triplicate.log.core.rewrite_plan import (
    RecordsDigest,
    Run,
    is_kept,
    merge_limits,
    merge_runs,
    reduced_runs,
    rewritten_segment,
    small_neighbours,
    with_first_index,
)
from triplicate.log.reading.log_entries import Chunks, epoch_of_metadata
from triplicate.log.store.head_store import HeadDecision, HeadStore, StoredHead
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient
from triplicate.log.store.segments import create_segment, password_of
from triplicate.log.store.staging_marks import COMPONENT, PublishMark, mark_of, marked
from triplicate.log.upkeep.orphans import discard, discard_unpublished
from triplicate.runtime import RateLimiter, fault_point, sleep

CHUNK_BYTES = 4 * 1024 * 1024
CHUNK_ENTRIES = 64
"""Limits of one read, by the mean size of a segment's entries. Another chunk is fetched ahead."""
WINDOW_BYTES = 8 * 1024 * 1024
"""Limit of the bytes that are not acknowledged."""
COPIES_WAIT_S = 10.0
"""How long to wait, after the last acknowledgement, until every bookie has every entry of a new ledger."""
COPIES_PAUSE_S = 0.02
MAINTAIN_RUNS = 16
"""Limit of the runs that one `maintain` rewrites."""
MAINTAIN_LEAST = 8
"""The least number of neighbours that are merged in the background."""


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The result of a rewriting.

    Args:
        segments: number of segments replaced.
        ledgers: number of new ledgers.
        records, size_bytes: contents of the new ledgers.
        postponed: number of segments left unchanged because the list changed meanwhile or bookies were short.
    """

    segments: int = 0
    ledgers: int = 0
    records: int = 0
    size_bytes: int = 0
    postponed: int = 0

    def __add__(self, other: RewriteResult) -> RewriteResult:
        return RewriteResult(
            self.segments + other.segments,
            self.ledgers + other.ledgers,
            self.records + other.records,
            self.size_bytes + other.size_bytes,
            self.postponed + other.postponed,
        )


class Overtaken(LogError):
    """The list no longer holds the segments that were rewritten: they were truncated, or rewritten by another process."""


class LedgerSpan(Protocol):
    """The entries and bytes of a closed ledger: a segment, or a staging ledger."""

    @property
    def ledger_id(self) -> int: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def last_entry(self) -> int: ...


class PipelinedAppender:
    """Appends to a new ledger with several entries in flight, as the windows allow."""

    def __init__(self, ledger: LedgerAppender) -> None:
        self._ledger = ledger
        self._waiting: deque[tuple[asyncio.Future[int], int]] = deque()
        self._bytes = 0

    async def send(self, payload: bytes) -> None:
        """Append an entry without waiting for its acknowledgement. Raises the error that ended the ledger."""
        while self._waiting and self._bytes + len(payload) > WINDOW_BYTES:
            await self._oldest()
        while True:
            try:
                future = self._ledger.append_nowait(payload)
            except WindowFull:
                if not self._waiting:
                    raise
                await self._oldest()
            else:
                break
        self._waiting.append((future, len(payload)))
        self._bytes += len(payload)

    async def finish(self) -> None:
        """Wait until everything is acknowledged."""
        while self._waiting:
            await self._oldest()

    def detach(self) -> None:
        """Stop waiting; errors of entries in flight are ignored."""
        for future, _ in self._waiting:
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting.clear()

    async def _oldest(self) -> None:
        future, size_bytes = self._waiting.popleft()
        self._bytes -= size_bytes
        await future


class Rewriter:
    """Rewrites runs of one log, at the rate of the settings."""

    def __init__(self, client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str) -> None:
        self._client = client
        self._store = store
        self._settings = settings
        self._name = name
        self._rate = RateLimiter(client.host.clock, settings.rewrite_bytes_per_s)

    async def reduced(self) -> list[Run]:
        """The runs that `raise_copies` rewrites. Raises NoSuchLog."""
        return reduced_runs(await self._store.segments(self._name))

    async def small(self, *, limit: int | None = None, least: int = 2, every: bool = True) -> list[Run]:
        """The runs that `merge_small` rewrites, at most `limit`; see `merge_limits`. Raises NoSuchLog."""
        head = (await self._store.read(self._name)).head
        limits = merge_limits(self._settings, head.settings, self._client.host.clock.wall_us(), least=least, every=every)
        runs: list[Run] = []
        for row in small_neighbours(await self._store.segments(self._name), limits):
            # Metadata are read only if the sizes alone would make a run.
            for candidates in merge_runs(row, {segment.ledger_id: 0 for segment in row}, limits):
                runs += merge_runs(candidates, await self._epochs(candidates), limits)
                if limit is not None and len(runs) >= limit:
                    return runs[:limit]
        return runs

    async def _epochs(self, run: Run) -> dict[int, int]:
        """Epochs of segments by ledger id, without those rewritten or truncated since the list was read."""
        epochs: dict[int, int] = {}
        for segment in run:
            try:
                epochs[segment.ledger_id] = epoch_of_metadata(await self._client.metadata_of(segment.ledger_id))
            except NoSuchLedger:
                continue
        return epochs

    async def rewrite(self, run: Run) -> RewriteResult:
        """Rewrite one run.

        Raises:
            CorruptionError: a ledger does not hold what the list says. Also the errors of reading, creating and writing ledgers.
        """
        head = (await self._store.read(self._name)).head
        try:
            segment = await self._copy_and_list(run, head)
        except (Overtaken, BadVersion, NotEnoughBookies, NoSuchLedger) as error:
            self._trace("log.rewrite_postponed", run, error=repr(error))
            return RewriteResult(postponed=len(run))
        await discard_unpublished(self._client, self._store, self._name, [old.ledger_id for old in run])
        self._trace("log.rewritten", run, ledger=segment.ledger_id, size_bytes=segment.size_bytes)
        return RewriteResult(len(run), 1, segment.records, segment.size_bytes)

    async def _copy_and_list(self, run: Run, head: Head) -> LogSegment:
        epoch = epoch_of_metadata(await self._client.metadata_of(run[0].ledger_id))
        custom = {"component": "log", "log": self._name, "epoch": str(epoch), "rewritten": str(len(run))}
        ledger, _ = await create_segment(self._client, self._settings, head.settings, custom, full=True)
        try:
            source = await self._copy(run, ledger)
            segment = rewritten_segment(run, ledger.ledger_id, source.size_bytes, await self._close(ledger))
            await self.verify(segment, source)
        except asyncio.CancelledError:
            ledger.abandon()
            raise
        except Exception:
            await discard(self._client, self._store, self._name, ledger)
            raise
        try:
            await self._mark_listed(run, head)
            await self._list(run, segment, head.log_id)
        except (Overtaken, BadVersion, NoSuchLedger):
            await discard(self._client, self._store, self._name, ledger)
            raise
        return segment

    async def _mark_listed(self, run: Run, head: Head) -> None:
        """Mark ledgers that were only announced with the offset at which they are listed.

        Once the list names the new ledger, a search for an announced one fails, and a repeated publish would add its records twice.

        Raises:
            BadVersion: a ledger's metadata changed meanwhile. NoSuchLedger.
        """
        for segment in run:
            found = await self._store.ledgers.get(segment.ledger_id)
            mark = mark_of(found.value, segment.ledger_id)
            if found.value.custom.get("component") != COMPONENT.encode() or (mark is not None and mark.exact):
                continue
            listed = marked(found.value, PublishMark(head.log_id, segment.first_offset, exact=True))
            path, data, version = self._store.ledgers.node_path(segment.ledger_id), encode_metadata(listed), found.version
            try:
                await self._store.tree.set(path, data, version)
            except NoNode:
                raise NoSuchLedger(f"ledger {segment.ledger_id} was deleted while it was rewritten") from None

    @fault_point("log.rewrite_copy")
    async def _copy(self, run: Run, ledger: LedgerAppender) -> RecordsDigest:
        """Write the entries of a run into a new ledger. Returns the digest of their records."""
        tally, sending = RecordsDigest(run[0].first_offset), PipelinedAppender(ledger)
        try:
            for place, segment in enumerate(run):
                async for payload in payloads_of(self._client, self._settings, segment):
                    if not is_kept(payload, place, run):
                        continue
                    offset = tally.add(payload, segment.first_offset, _place(segment))
                    await sending.send(with_first_index(payload, offset - run[0].first_offset))
                    await self._rate.admit(len(payload))
                if tally.next_offset != segment.end_offset:
                    raise CorruptionError(f"{_place(segment)()} ends at offset {tally.next_offset}, the list says {segment.end_offset}")
            await sending.finish()
        finally:
            sending.detach()
        return tally

    async def _close(self, ledger: LedgerAppender) -> int:
        """Wait until every bookie has every entry, and close the ledger.

        Raises:
            NotEnoughBookies: a bookie lacks entries.
        """
        clock = self._client.host.clock
        deadline = clock.monotonic() + COPIES_WAIT_S
        while not ledger.has_all_copies and not ledger.has_missed_bookies and clock.monotonic() < deadline:
            await sleep(clock, COPIES_PAUSE_S)
        if ledger.has_missed_bookies or not ledger.has_all_copies:
            raise NotEnoughBookies(f"log {self._name!r}: a bookie went away while ledger {ledger.ledger_id} was written with all copies")
        return await ledger.close()

    @fault_point("log.rewrite_verify")
    async def verify(self, segment: LogSegment, source: RecordsDigest) -> None:
        """Read a new ledger back and compare it with the old ones.

        Raises:
            CorruptionError: they differ.
        """
        found = RecordsDigest(segment.first_offset)
        async for payload in payloads_of(self._client, self._settings, segment):
            found.add(payload, segment.first_offset, _place(segment))
            await self._rate.admit(len(payload))
        if found.facts() != source.facts():
            raise CorruptionError(
                f"log {self._name!r}: {_place(segment)()}, written from offset {segment.first_offset} on, reads as {found.facts()} "
                f"and not as {source.facts()}; the list is as it was"
            )

    @fault_point("log.rewrite_list")
    async def _list(self, run: Run, segment: LogSegment, log_id: str) -> None:
        """Replace the run in the list by the new segment.

        Raises:
            Overtaken: the list no longer holds the run. BadVersion: it changes too often.
        """
        name, store = self._name, self._store
        first, end = segment.first_offset, segment.end_offset

        async def decide(stored: StoredHead) -> HeadDecision | None:
            pages = await store.pages(name, stored.head, lambda item: item.end_offset > first and item.first_offset < end)
            listed = head_changes.segments_within(stored.head, pages, first, end)
            if segment.ledger_id in [item.ledger_id for item in listed]:
                return None  # An earlier attempt was applied after all.
            if tuple(listed) != run:
                raise Overtaken(f"log {name!r}: the segments from offset {first} to {end} were changed by another process meanwhile")
            return head_changes.replace_run(stored.head, pages, run, segment, store.token()), ()

        await store.change(name, decide, log_id=log_id)

    def _trace(self, kind: str, run: Run, **facts: object) -> None:
        self._client.host.trace(kind, log=self._name, segments=len(run), first=run[0].first_offset, end=run[-1].end_offset, **facts)


async def payloads_of(client: LedgerClient, settings: LogClientSettings, segment: LedgerSpan) -> AsyncIterator[bytes]:
    """Yield the payload of every entry of a closed ledger."""
    view = await client.open(segment.ledger_id, password=password_of(settings))
    mean = max(1, segment.size_bytes // (segment.last_entry + 1))
    chunks = Chunks(view, 0, segment.last_entry, max(1, min(CHUNK_ENTRIES, CHUNK_BYTES // mean)))
    try:
        while (entry := await chunks.next()) is not None:
            yield entry.payload
    finally:
        await chunks.aclose()
        await view.aclose()


def _place(segment: LogSegment) -> Callable[[], str]:
    return lambda: f"ledger {segment.ledger_id}"


class MaintainedLogs(Protocol):
    """The methods of `Logs` that `maintain` uses."""

    async def raise_copies(self, name: str, *, limit: int | None = None) -> RewriteResult: ...

    async def merge_small(self, name: str, *, limit: int | None = None, least: int = 2, every: bool = True) -> RewriteResult: ...


async def maintain(logs: MaintainedLogs, name: str) -> None:
    """Raise the copies of a log's segments, then merge small neighbours. The work of one call and its rate are limited.

    Concurrent calls of several processes do no harm: the list accepts the work of one. The next call does what is left.

    Raises:
        NoSuchLog. CorruptionError, and the errors of reading and writing ledgers.
    """
    await logs.raise_copies(name, limit=MAINTAIN_RUNS)
    await logs.merge_small(name, limit=MAINTAIN_RUNS, least=MAINTAIN_LEAST, every=False)
