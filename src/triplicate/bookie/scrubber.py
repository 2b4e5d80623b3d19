"""The scrubber: reads everything that this bookie stores at a slow pace, and reports damaged entries so that they are replaced.

A pass reads every entry log up to the newest at its beginning, run by run as the index names them, on a worker of its own. The digests
are verified with the type and the password in the ledgers' metadata. Entries that the metadata no longer promise here, superseded copies,
and deleted ledgers are of no concern. Damage is recorded in the cluster's metadata, where replication workers find it (decision 56).

Source of the settings' names: BookKeeper `ScrubberService`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from triplicate.bookie.bookie_metrics import BookieMetrics
from triplicate.bookie.core.entry_log_format import BlockInfo
from triplicate.bookie.core.ledger_table import Verification
from triplicate.bookie.core.scrub_state import Damage, ScrubPace, ScrubPass, ScrubState, promised_damage
from triplicate.bookie.digest_checks import verifier_of
from triplicate.bookie.scrub_file import ScrubFile
from triplicate.bookie.storage.storage import Storage
from triplicate.config import BookieSettings
from triplicate.errors import CorruptionError, FormatError, MetadataError, NoSuchLedger
from triplicate.ledger import LedgerMetadata
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, Worker, fault_point, sleep

FIRST_PAUSE_S = 600.0
"""Pause between the start of a bookie and its first pass. A bookie that has just started has other work to do."""
PORTION_BYTES = 64 * 1024
"""Bytes read and checked at once on the worker."""
PAGE_RUNS = 200
"""Runs that are read from the index at once."""
LOOK_UP_BYTES = 32 * 1024
"""The rate counts a look-up of a ledger's metadata as this many bytes, so that a bookie of small ledgers does not load the metadata."""
VERIFIERS_MAX = 10_000
"""Ledgers whose digest type and password are kept."""
SAVE_INTERVAL_S = 10.0
"""Shortest time between two writes of the position."""
RETRY_S = 5.0
SHORTEST_PAUSE_S = 0.01
"""Shorter pauses are accumulated."""

IsRight = Callable[[bytes], bool]


@dataclass(frozen=True, slots=True)
class ScrubTools:
    """The parts of the bookie that the scrubber uses.

    Args:
        worker: reads the entry logs; the bookie closes it.
        file: keeps the position.
    """

    storage: Storage
    settings: BookieSettings
    metrics: BookieMetrics
    worker: Worker
    file: ScrubFile


class Scrubber:
    """See the module's text. `metadata` may be replaced when a new session was opened."""

    def __init__(self, host: Host, metadata: ClusterMetadata, bookie_id: str, tools: ScrubTools, state: ScrubState) -> None:
        self.metadata = metadata
        self.state = state
        """How far the scrubber is."""
        self._host = host
        self._bookie_id = bookie_id
        self._tools = tools
        self._pace = ScrubPace(tools.settings.scrub_bytes_per_s, tools.settings.scrub_share_of_time)
        self._owed_s = 0.0
        """Pauses that are too short to be made alone."""
        self._verifiers: OrderedDict[int, IsRight | None] = OrderedDict()
        self._saved_at = 0.0
        self._one_pass = asyncio.Lock()
        tools.metrics.scrub_progress.set_function(self._progress)
        self._show_last_pass()

    @classmethod
    async def open(cls, host: Host, metadata: ClusterMetadata, bookie_id: str, tools: ScrubTools) -> Scrubber:
        """Continue where the bookie stopped. Raises OSError."""
        try:
            state = await tools.worker.run(tools.file.read)
        except FormatError as error:
            host.trace("bookie.scrub_state_unreadable", error=str(error))
            state = ScrubState()
        return cls(host, metadata, bookie_id, tools, state)

    async def run(self) -> None:
        """Make a pass at each interval. Raises OSError: the position cannot be kept because a disk failed."""
        interval_s, clock = self._tools.settings.scrub_interval_s, self._host.clock
        if not interval_s:
            await asyncio.Event().wait()
        await sleep(clock, min(FIRST_PAUSE_S, interval_s))
        while True:
            await sleep(clock, self.state.due_in_s(self._now_ms(), interval_s))
            await self.scrub()

    async def scrub(self) -> ScrubPass:
        """Make a pass now, or the rest of the one that was interrupted; returns it. Raises as `run`."""
        async with self._one_pass:
            self.state = self.state.begun(await self._logs(), self._now_ms())
            while (log := self.state.next_log(await self._logs())) is not None:
                await self._scrub_log(log)
                self.state = self.state.with_log_read(log)
                if self._host.clock.monotonic() - self._saved_at >= SAVE_INTERVAL_S:
                    await self._save()
            self.state = self.state.ended(self._now_ms())
            await self._save()
            self._show_last_pass()
            done = self.state.last
            assert done is not None, "a pass has ended"
            self._host.trace(
                "bookie.scrubbed",
                entries=done.entries,
                size_bytes=done.size_bytes,
                damaged_entries=done.damaged,
                index_faults=done.index_faults,
                seconds=round((done.ended_ms - done.began_ms) / 1000),
            )
            return done

    # Entry logs.

    async def _logs(self) -> list[int]:
        """The entry logs that the index knows, including the one that is being filled; none if the index cannot be read."""
        try:
            return list(await self._tools.worker.run(self._tools.storage.stored.index.log_sizes))
        except (CorruptionError, OSError) as error:
            self._index_fault(0, error)
            return []

    @fault_point("bookie.scrub.log")
    async def _scrub_log(self, log: int) -> None:
        index = self._tools.storage.stored.index
        after: BlockInfo | None = None
        while True:
            try:
                page: list[BlockInfo] = await self._tools.worker.run(index.runs_in, log, PAGE_RUNS, after)
            except (CorruptionError, OSError) as error:
                self._index_fault(log, error)
                return
            if not page:
                return
            after = page[-1]
            for ledger_id, runs in groupby(page, attrgetter("ledger_id")):
                try:
                    await self._check_runs(log, ledger_id, list(runs))
                except (CorruptionError, OSError) as error:
                    self._index_fault(log, error)
                    return

    async def _check_runs(self, log: int, ledger_id: int, runs: Sequence[BlockInfo]) -> None:
        """Check runs of one ledger. Raises CorruptionError, OSError: of the index."""
        try:
            is_right = await self._is_right(ledger_id)
        except NoSuchLedger:
            return
        tools, clock = self._tools, self._host.clock
        check = tools.storage.new_run_check(log, runs, is_right)
        damage: list[Damage] = []
        try:
            while not check.done:
                began = clock.monotonic()
                portion = await tools.worker.run(check.portion, PORTION_BYTES)
                damage += portion.damage
                self.state = self.state.with_bytes(portion.entries, portion.size_bytes)
                tools.metrics.scrubbed_entries.inc(portion.entries)
                tools.metrics.scrubbed_bytes.inc(portion.size_bytes)
                await self._pause(portion.size_bytes, clock.monotonic() - began)
        finally:
            await tools.worker.run(check.close)
        if damage:
            await self._report(ledger_id, damage)

    async def _pause(self, size_bytes: int, busy_s: float) -> None:
        self._owed_s += self._pace.pause_s(size_bytes, busy_s)
        if self._owed_s >= SHORTEST_PAUSE_S:
            pause_s, self._owed_s = self._owed_s, 0.0
            await sleep(self._host.clock, pause_s)

    # Metadata.

    async def _is_right(self, ledger_id: int) -> IsRight | None:
        """The function that verifies the digests of a ledger's entries; None if there is nothing to verify with. Raises NoSuchLedger."""
        handle = self._tools.storage.ledgers.get(ledger_id)
        if handle is not None and handle.verification is Verification.KNOWN and handle.verifier is not None:
            return handle.verifier.is_right
        if ledger_id in self._verifiers:
            self._verifiers.move_to_end(ledger_id)
            return self._verifiers[ledger_id]
        metadata = await self._ledger(ledger_id)
        _, verifier = (Verification.IMPOSSIBLE, None) if metadata is None else verifier_of(metadata)
        is_right = None if verifier is None else verifier.is_right
        self._verifiers[ledger_id] = is_right
        if len(self._verifiers) > VERIFIERS_MAX:
            self._verifiers.popitem(last=False)
        await self._pause(LOOK_UP_BYTES, 0.0)
        return is_right

    async def _ledger(self, ledger_id: int) -> LedgerMetadata | None:
        """The metadata of a ledger, None if they cannot be decoded. Waits while the metadata store fails. Raises NoSuchLedger."""
        while True:
            try:
                return (await self.metadata.ledgers.get(ledger_id)).value
            except FormatError as error:
                self._host.trace("bookie.digest_unknown", ledger_id=ledger_id, error=str(error))
                return None
            except MetadataError as error:
                self._host.trace("bookie.scrub_put_off", ledger_id=ledger_id, error=str(error))
                await sleep(self._host.clock, RETRY_S)

    async def _report(self, ledger_id: int, damage: Sequence[Damage]) -> None:
        """Record damaged entries that the ledger's metadata promise here. Waits while the metadata store fails."""
        try:
            metadata = await self._ledger(ledger_id)
        except NoSuchLedger:
            return
        found = list(damage) if metadata is None else promised_damage(metadata, self._bookie_id, damage)
        if not found:
            return
        self.state = self.state.with_damage(found)
        for each in found:
            self._tools.metrics.scrub_errors.inc(each.count)
            self._host.trace("bookie.scrub_found_damage", ledger_id=ledger_id, **_facts(each))
        runs = [range(each.first, each.last + 1) for each in found]
        while True:
            try:
                await self.metadata.damaged_copies.report(ledger_id, self._bookie_id, runs)
                await self.metadata.under_replication.mark(ledger_id, [self._bookie_id])
            except FormatError as error:
                # A newer release has written the record or the mark. The state still lists the damage.
                self._host.trace("bookie.scrub_report_refused", ledger_id=ledger_id, error=str(error))
                return
            except MetadataError as error:
                self._host.trace("bookie.scrub_put_off", ledger_id=ledger_id, error=str(error))
                await sleep(self._host.clock, RETRY_S)
            else:
                return

    # The state.

    def _index_fault(self, log: int, error: Exception) -> None:
        self._host.trace("bookie.scrub_index_fault", log=log, error=str(error))
        self._tools.metrics.scrub_index_faults.inc()
        if self.state.present is not None:
            self.state = self.state.with_index_fault()

    async def _save(self) -> None:
        self._saved_at = self._host.clock.monotonic()
        if not await self._tools.worker.run(self._tools.file.write, self.state):
            self._host.trace("bookie.scrub_state_without_space")

    def _show_last_pass(self) -> None:
        last = self.state.last
        if last is not None:
            self._tools.metrics.scrub_last_pass.set(last.ended_ms / 1000)
            self._tools.metrics.scrub_last_damage.set(last.damaged)

    def _progress(self) -> float:
        """Share of the entry logs of the present pass that are read; 0 between passes."""
        present = self.state.present
        if present is None:
            return 0.0
        return min(1.0, (present.next_log - present.first_log) / max(1, present.last_log - present.first_log + 1))

    def _now_ms(self) -> int:
        return self._host.clock.wall_us() // 1000


def _facts(damage: Damage) -> dict[str, object]:
    return {"first": damage.first, "last": damage.last, "log": damage.log, "error": damage.reason}
