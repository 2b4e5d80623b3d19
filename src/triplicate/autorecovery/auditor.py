"""The auditor: watches the bookies, audits those that are lost, and runs the periodic checks, while it is elected.

Two processes may believe to be the auditor for a moment. That does no harm: marks that exist are not changed.

Source: BookKeeper `Auditor`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn

from triplicate.autorecovery.auditor_metrics import AuditorMetrics
from triplicate.autorecovery.core.check_schedule import is_in_the_future, seconds_until_check
from triplicate.autorecovery.core.lost_bookies import RECORD_MOST_S, LostBookies, may_resume, record_interval_s
from triplicate.autorecovery.ledger_audits import Audit, LedgerAudits
from triplicate.autorecovery.ledger_check import mark_recorded_damage
from triplicate.client import Client
from triplicate.config import AutorecoverySettings
from triplicate.errors import FormatError
from triplicate.metadata import BookieServiceInfo, JoinedWatch, ObservedAbsences, PeriodicCheck, Watch, machine_of
from triplicate.runtime import TaskScope, sleep, timeout_at

SETTLE_S = 2.0
"""Pause between a change of the registrations and the decision: bookies that are stopped or started together are judged together."""
MARKS_COUNTED_EVERY_S = 60.0
"""Time between two counts of the marked ledgers for the metrics, each of which reads all marks."""
MARKS_COUNT_SHARE = 0.05
"""Greatest share of the time that these counts take."""
TIMES_READ_EVERY_S = 3600.0
"""Longest time until the times of the last checks are read again, since other processes may run checks, too."""

PeriodicWork = Callable[[], Awaitable[None]]
"""Other periodic work of the auditor. It is bounded, and concurrent calls of several processes do no harm."""

AUDITS: dict[PeriodicCheck, Audit] = {
    PeriodicCheck.ALL_LEDGERS: Audit.LEDGERS,
    PeriodicCheck.REPLICAS: Audit.REPLICAS,
    PeriodicCheck.PLACEMENT_POLICY: Audit.PLACEMENT,
}


class Auditor:
    """One term of the auditor. `run` is called after the election, and cancelled when the vote is lost.

    Args:
        chore: called once in each `log_copies_interval_s`; None for nothing.
    """

    def __init__(
        self,
        client: Client,
        settings: AutorecoverySettings,
        audits: LedgerAudits,
        metrics: AuditorMetrics,
        chore: PeriodicWork | None = None,
    ) -> None:
        self._client = client
        self._metadata = client.metadata
        self._marks = client.metadata.under_replication
        self._host = client.host
        self._clock = client.host.clock
        self._settings = settings
        self._audits = audits
        self._metrics = metrics
        self._chore = chore
        self._elected_at = self._clock.monotonic()
        self._lost = LostBookies()
        self._search_due = self._elected_at
        self._has_resumed = False
        self._recorded: frozenset[str] = frozenset()
        """The bookies whose absences are recorded."""
        self._machines: dict[str, str] = {}
        """The machines that this auditor has recorded, by bookie."""
        self._record_every_s = RECORD_MOST_S
        self._record_due = self._elected_at

    async def run(self) -> None:
        """Audit until cancelled.

        Raises:
            MetadataError: the metadata store failed. The term can be begun again.
        """
        await self._marks.initialise_lost_bookie_recovery_delay_s(self._settings.lost_bookie_delay_s)
        try:
            async with TaskScope("auditor") as scope:
                scope.spawn(self._watch_bookies(), name="bookies")
                scope.spawn(self._check_periodically(), name="checks")
                scope.spawn(self._count_periodically(), name="marks")
                if self._chore is not None and self._settings.log_copies_interval_s:
                    scope.spawn(self._do_chore(self._chore), name="chore")
        finally:
            for gauge in (self._metrics.lost_bookies, self._metrics.marked_now, self._metrics.oldest_mark_s):
                gauge.set(0)

    # Lost bookies.

    async def _watch_bookies(self) -> NoReturn:
        watch = JoinedWatch([self._metadata.bookies.watch(), self._marks.watch()])
        try:
            while True:
                wake_at = await self.audit_lost()
                try:
                    async with timeout_at(wake_at):
                        await self._changed(watch)
                except TimeoutError:
                    continue
                await sleep(self._clock, SETTLE_S)
        finally:
            watch.close()

    async def _changed(self, watch: Watch) -> None:
        """Wait for a change. Meanwhile it is recorded how long bookies are absent."""
        while True:
            try:
                async with timeout_at(self._record_due if self._lost.waiting else None):
                    await watch.changed()
                    return
            except TimeoutError:
                await self.record_absences()

    async def audit_lost(self) -> float | None:
        """Audit the lost bookies whose delay is over, unless auto-recovery is disabled.

        Returns:
            When to call it again, in seconds of the monotonic clock, unless the bookies or the settings change before; None if never.
        """
        if not await self._marks.is_enabled():
            await self._end_absences()
            return None
        bookies = await self._metadata.bookies.registered()
        registered = bookies.names
        await self._record_machines(bookies.infos)
        if not bookies.infos:
            # Nothing could be copied, and a cluster that starts or ends has no bookie for a moment.
            return None
        delay_s = await self._delay_s()
        now = self._clock.monotonic()
        if now >= self._search_due:
            # The search reads the bookies that only ledgers name. The names of marks are not needed for it.
            await self._audits.run(Audit.LOST, lost=())
            self._search_due = now + self._settings.bookies_check_interval_s
            self._lost.audit_again()
            for ledger_id in await self._metadata.damaged_copies.ledger_ids():
                await mark_recorded_damage(self._client, ledger_id)
            await self._forget_notes()
        if not self._has_resumed:
            await self._resume(delay_s)
        known = dict.fromkeys([*await self._metadata.cookies.bookie_ids(), *self._audits.named])
        waited = len(self._lost.waiting)
        returned = self._lost.observe(now, known, registered)
        self._metrics.cancelled.inc(len(returned))
        self._metrics.delayed.inc(max(0, len(self._lost.waiting) - waited + len(returned)))
        due = self._lost.due(now, delay_s)
        if due:
            report = await self._audits.run(Audit.LOST, lost=due)
            if report.is_complete:
                self._lost.audited(due)
            self._host.trace("autorecovery.bookies_lost", bookies=",".join(due), ledgers=report.found)
        self._metrics.lost_bookies.set(len(self._lost.waiting))
        self._record_every_s = record_interval_s(delay_s)
        if self._lost.absences(now).keys() != self._recorded:
            await self.record_absences()
        next_due = self._lost.next_due(delay_s)
        return self._search_due if next_due is None else min(next_due, self._search_due)

    async def _record_machines(self, infos: Mapping[str, BookieServiceInfo]) -> None:
        """Record the machines of bookies that have registered or moved since the last call: those of Apache do not record them."""
        for bookie_id, info in infos.items():
            machine = machine_of(bookie_id, info)
            if self._machines.get(bookie_id) != machine:
                await self._metadata.machines.record(bookie_id, info)
                self._machines[bookie_id] = machine

    async def _resume(self, delay_s: float) -> None:
        """Continue the absences that the auditor before has recorded, if that was a short time ago."""
        try:
            found = await self._metadata.absences.read()
        except FormatError as error:
            self._host.trace("autorecovery.absences_unreadable", error=str(error))
            found = None
        if found is not None:
            if may_resume(self._clock.wall_us() // 1000, found.time_ms, delay_s):
                self._lost.resume(found.absent_s)
            self._recorded = frozenset(found.absent_s)
        self._has_resumed = True

    async def _end_absences(self) -> None:
        """While auto-recovery is disabled: bookies that are back are not absent any more. No absence begins."""
        registered = (await self._metadata.bookies.registered()).names
        if not self._has_resumed:
            await self._resume(await self._delay_s())
        self._lost.returned(registered)
        self._metrics.lost_bookies.set(len(self._lost.waiting))
        if self._lost.absences(self._clock.monotonic()).keys() != self._recorded:
            await self.record_absences()

    async def record_absences(self) -> None:
        """Record how long the lost bookies are absent, for the auditor after this one. Raises MetadataError."""
        now = self._clock.monotonic()
        absent_s = self._lost.absences(now)
        await self._metadata.absences.write(ObservedAbsences(self._clock.wall_us() // 1000, absent_s))
        self._recorded = frozenset(absent_s)
        self._record_due = now + self._record_every_s

    async def _delay_s(self) -> int:
        try:
            delay_s = await self._marks.lost_bookie_recovery_delay_s()
        except FormatError as error:
            self._host.trace("autorecovery.delay_unreadable", error=str(error))
            delay_s = None
        return self._settings.lost_bookie_delay_s if delay_s is None else max(0, delay_s)

    async def _forget_notes(self) -> None:
        """Delete the notes of ledgers that are not marked any more, since another release's worker may have repaired them."""
        for ledger_id in await self._metadata.repair_notes.ledger_ids():
            if await self._marks.get(ledger_id) is None:
                await self._metadata.repair_notes.clear(ledger_id)

    # Periodic checks.

    async def _check_periodically(self) -> NoReturn:
        while True:
            wait_s = await self.check_due()
            await sleep(self._clock, min(wait_s, TIMES_READ_EVERY_S))

    async def check_due(self) -> float:
        """Run the periodic checks that are due, unless auto-recovery is disabled.

        Returns:
            Seconds until the next one is due; infinite if none is.
        """
        if not await self._marks.is_enabled():
            return TIMES_READ_EVERY_S
        waits = [float("inf")]
        for check, audit in AUDITS.items():
            wait_s = await self._wait_s(check)
            if wait_s is not None and wait_s <= 0:
                report = await self._audits.run(audit)
                if report.is_complete:
                    await self._marks.set_check_time_ms(check, self._host.clock.wall_us() // 1000)
                wait_s = await self._wait_s(check)
            if wait_s is not None:
                waits.append(wait_s)
        return min(waits)

    async def _wait_s(self, check: PeriodicCheck) -> float | None:
        interval_s = {
            PeriodicCheck.ALL_LEDGERS: self._settings.ledgers_check_interval_s,
            PeriodicCheck.REPLICAS: self._settings.replicas_check_interval_s,
            PeriodicCheck.PLACEMENT_POLICY: self._settings.placement_check_interval_s,
        }[check]
        try:
            last_ms = await self._marks.check_time_ms(check)
        except FormatError as error:
            self._host.trace("autorecovery.check_time_unreadable", check=check.value, error=str(error))
            last_ms = None
        now_ms = self._clock.wall_us() // 1000
        if interval_s and last_ms is not None and is_in_the_future(now_ms, last_ms):
            self._host.trace("autorecovery.check_time_in_future", check=check.value, ahead_s=(last_ms - now_ms) // 1000)
            await self._marks.set_check_time_ms(check, now_ms)
            last_ms = now_ms
        return seconds_until_check(now_ms, last_ms, interval_s, self._clock.monotonic() - self._elected_at)

    # Marks.

    async def _count_periodically(self) -> NoReturn:
        while True:
            began = self._clock.monotonic()
            await self.count_marks()
            took_s = self._clock.monotonic() - began
            await sleep(self._clock, max(MARKS_COUNTED_EVERY_S, took_s / MARKS_COUNT_SHARE))

    async def count_marks(self) -> None:
        """Set the metrics of the marked ledgers, also while auto-recovery is disabled. A mark of a newer release counts without its age."""
        marks, count, oldest_ms = self._marks.marks(), 0, None
        while True:
            try:
                mark = await anext(marks)
            except StopAsyncIteration:
                break
            except FormatError:
                count += 1
                continue
            count += 1
            since_ms = mark.created_ms if mark.ctime_ms is None else mark.ctime_ms
            oldest_ms = since_ms if oldest_ms is None else min(oldest_ms, since_ms)
        self._metrics.marked_now.set(count)
        self._metrics.oldest_mark_s.set(0 if oldest_ms is None else max(0.0, self._clock.wall_us() / 1e6 - oldest_ms / 1e3))

    # Chores.

    async def _do_chore(self, chore: PeriodicWork) -> NoReturn:
        while True:
            await sleep(self._clock, self._settings.log_copies_interval_s)
            if await self._marks.is_enabled():
                await chore()
