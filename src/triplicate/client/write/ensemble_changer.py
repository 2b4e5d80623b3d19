"""Bookies that fail a writer: replaced in the ensemble, missed for a while, or taken in again.

A bookie that fails is absent at once (`WriteTracker.suspend`). What follows is derived from who is absent:

- Normally it is replaced at once, where there is another bookie; entries are confirmed again when that is done or known not to be
  possible, so that what was on its way gets all its copies. With `delay_ensemble_change` it is replaced only when so many are absent
  that some entry finds no ack quorum, or when it is read-only; then all that are absent are replaced together.
- While there is no other bookie and every entry finds its ack quorum, the writer goes on without it and looks again: when bookies come,
  and after pauses that grow. Meanwhile the absent bookie is asked whether it is back, and taken in again at its place when it answers.
- Where an ack quorum is in danger it waits for another bookie, or an absent one, as long as for the answer to an add; then it ends.

Nothing is ever confirmed by bookies that the metadata does not name: an ensemble is used only once it is written, and from the moment in
which a change is proposed until it is written, or known not to be, nothing is confirmed, since the new segment starts right behind the
last-add-confirmed. One change at a time; failures that come meanwhile are handled by the next, before anything is confirmed again.
Source: BookKeeper `LedgerHandle.ensembleChangeLoop`, `EnsembleUtils`, its issues 1591 and 4651.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from triplicate.client.context import ClientContext
from triplicate.client.metadata_retry import MetadataRetry
from triplicate.client.write.add_streams import Tracker
from triplicate.client.write.failed_bookies import FailedBookies, QuorumLossTimer
from triplicate.errors import (
    BookieError,
    BookieReadOnly,
    ConnectionLost,
    HandleClosed,
    LedgerClosed,
    LedgerFenced,
    MetadataError,
    NotEnoughBookies,
    OutcomeUnknown,
    TriplicateError,
)
from triplicate.ledger import EnsembleSegment, LedgerState, replace_bookies
from triplicate.metadata import Versioned, Watch
from triplicate.runtime import Backoff, fault_point, first_of, sleep, sleep_until, timeout_at

LOOK_AGAIN_S = 10.0
"""The longest pause of a writer that found no bookie to replace a failed one. It looks at once when bookies come or go."""
CALM_TIMEOUTS = 2.0
"""An ack quorum that is in danger again within so many add timeouts, with nothing confirmed between, has been all the time."""
LOOK_LIMIT_S = 5.0
"""How long one look at the metadata may take; entries that find their ack quorums are not confirmed while a first look goes on."""


class ChangingWriter(Protocol):
    """What the changer needs of a writer."""

    ledger_id: int

    @property
    def failure(self) -> TriplicateError | None: ...

    def flush(self) -> None: ...

    def take_ensemble(self, changed: Sequence[int]) -> None: ...

    def resume(self, position: int) -> None: ...

    def confirm(self) -> None: ...

    def fail(self, cause: TriplicateError) -> None: ...


class EnsembleChanger:
    """Belongs to one writer. One task while a bookie is absent, none otherwise.

    Fault points: ``client.ensemble_change.chosen``, the metadata is about to be written; ``client.ensemble_change.written``, it is
    written, and nothing was sent to the new bookies.

    Args:
        tracker: the writer's; the changer alone begins and ends changes on it.
        created: the ledger's metadata as it was created.
    """

    def __init__(self, context: ClientContext, writer: ChangingWriter, tracker: Tracker, created: Versioned) -> None:
        self.current = created
        self.changes = 0
        self._context = context
        self._writer = writer
        self._tracker = tracker
        self._clock = context.host.clock
        self._absentees = FailedBookies(context, writer.ledger_id, self._wake)
        self._rng = context.host.entropy.stream("placement")
        self._looks = Backoff(context.settings.reconnect_first_s, max(context.settings.reconnect_first_s, LOOK_AGAIN_S), self._rng)
        self._look_at = 0.0
        """When to look for other bookies."""
        self._writable: tuple[str, ...] = ()
        """As last seen."""
        self._danger = QuorumLossTimer(CALM_TIMEOUTS * context.settings.add_timeout_s)
        self._told: tuple[str, ...] = ()
        """The absent bookies as last told."""
        self.went_without = False
        """Whether entries were ever confirmed while a bookie was missing and no other could take its place."""
        self._watch: Watch | None = None
        self._news: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """A bookie of the present ensemble failed, and the tracker knows that it is absent."""
        context, ledger_id = self._context, self._writer.ledger_id
        context.failed_bookies.add(bookie_id, self._clock.monotonic())
        context.metrics.bookie_failures.labels(bookie=bookie_id).inc()
        context.host.trace("client.bookie_failed", ledger=ledger_id, bookie=bookie_id, why=str(error))
        self._absentees.failed(bookie_id, error)
        self._look_at = 0.0
        if self._tracker.is_endangered:
            self._danger.seen(self._clock.monotonic(), self._tracker.last_add_confirmed)
        if not self._tracker.changing and self._is_change_wanted():
            self._tracker.begin_change()
        if self._task is not None:
            self._wake()
            return
        try:
            self._task = context.scope.spawn(self._run(), name=f"change ensemble of ledger {ledger_id}")
        except HandleClosed as closing:
            self._writer.fail(closing)

    def writer_ended(self) -> None:
        """The writer is about to end: look no further."""
        self._tell_absent(())
        self._wake()

    def stop(self) -> None:
        """Give up a change under way; whether its metadata was written stays unknown. Idempotent."""
        if self._task is not None:
            self._task.cancel()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def _run(self) -> None:
        try:
            while self._writer.failure is None and self._tracker.suspended:
                await self._do_what_is_due()
        except TriplicateError as error:
            self._writer.fail(error)
        except BaseException as error:
            # A fault of ours, or the end of the client: without a change that ends nothing more would ever be confirmed.
            unknown = OutcomeUnknown(f"the change of ensemble of ledger {self._writer.ledger_id} was broken off: {error!r}")
            unknown.ledger_id = self._writer.ledger_id
            self._writer.fail(unknown)
            raise
        finally:
            self._task = None
            self._tell_absent(())
            if self._watch is not None:
                self._watch.close()
                self._watch = None

    async def _do_what_is_due(self) -> None:
        if self._tracker.is_endangered:
            self._danger.seen(self._clock.monotonic(), self._tracker.last_add_confirmed)
        if self._is_change_due():
            await self._replace_absent()
            return
        self._tell_absent(self._absent())
        self._welcome_back()
        if self._tracker.suspended:
            await self._pause()

    def _absent(self) -> tuple[str, ...]:
        return tuple(self._tracker.ensemble[position] for position in self._tracker.suspended)

    # Replacing.

    def _is_change_wanted(self) -> bool:
        """Whether an absent bookie is replaced when there is another. In an endangered ensemble, all are."""
        if self._tracker.is_endangered or not self._context.settings.delay_ensemble_change:
            return True
        return any(isinstance(self._absentees[bookie_id].error, BookieReadOnly) for bookie_id in self._absent())

    def _is_change_due(self) -> bool:
        return self._tracker.changing or (self._is_change_wanted() and self._look_at <= self._clock.monotonic())

    async def _replace_absent(self) -> None:
        """Replace all that are absent, as far as there are others.

        Raises:
            NotEnoughBookies: an ack quorum is in danger for too long. OutcomeUnknown: the same, and the metadata was out of reach.
        """
        tracker, context = self._tracker, self._context
        unknown = await self._look()
        if self._writer.failure is not None:
            return
        now = self._clock.monotonic()
        if unknown is not None:
            self._check_patience(now, context.settings.metadata_timeout_s, self._unreachable(unknown))
            self._go_on_without(now)
            return
        self._absentees.forget_the_forgiven(tracker.ensemble)
        candidates = [bookie_id for bookie_id in self._writable if not self._absentees.is_left_alone(bookie_id)]
        try:
            ensemble = replace_bookies(tracker.ensemble, tracker.suspended, candidates, self._rng, context.failed_bookies.names(now))
        except NotEnoughBookies as error:
            self._check_patience(now, context.settings.add_timeout_s, self._too_few(error))
            self._go_on_without(now)
            return
        self._looks.reset()
        await self._change(ensemble)

    async def _look(self) -> Exception | None:
        """Learn which bookies are writable; the return value says why that was not possible."""
        try:
            if self._watch is None:
                # Before the first look: what changes behind it is then seen at once, and not only by the next look.
                self._watch = self._context.metadata.bookies.watch()
            async with timeout_at(self._clock.monotonic() + LOOK_LIMIT_S):
                self._writable = tuple(await self._context.metadata.bookies.writable())
        except (ConnectionLost, TimeoutError) as error:
            self._context.host.trace("client.bookies_unknown", ledger=self._writer.ledger_id, why=str(error))
            return error
        return None

    def _check_patience(self, now: float, limit_s: float, error: TriplicateError) -> None:
        """Raise the error when an ack quorum has been in danger for so long, and no absent bookie is back, as it may be since the look."""
        if self._tracker.is_endangered and now >= self._danger.since + limit_s and not self._is_anyone_back():
            raise error

    def _go_on_without(self, now: float) -> None:
        """There is no other bookie now: confirm again what has its ack quorum, and look again later."""
        moments = [now + self._looks.next_s()]
        moments += [self._absentees[name].until for name in self._writable if self._absentees.is_left_alone(name)]
        if self._tracker.is_endangered:
            moments.append(self._danger.since + self._context.settings.add_timeout_s)
        self._look_at = min(moment for moment in moments if moment > now)
        if self._tracker.changing:
            self._tracker.end_change()
            self._writer.confirm()

    async def _change(self, ensemble: tuple[str, ...]) -> None:
        tracker = self._tracker
        if not tracker.changing:
            tracker.begin_change()
        before, proposed = self.current.value.last_segment, EnsembleSegment(tracker.last_add_confirmed + 1, ensemble)
        changed = await self._write(before, proposed)
        if self._writer.failure is None:
            await self._take_over(changed, proposed)

    @fault_point("client.ensemble_change.chosen")
    async def _write(self, before: EnsembleSegment, proposed: EnsembleSegment) -> Versioned:
        return await self._patience().swap(
            self.current,
            lambda metadata: metadata.with_ensemble(proposed.first_entry_id, proposed.ensemble),
            lambda found: self._settled(found, before, proposed),
        )

    @fault_point("client.ensemble_change.written")
    async def _take_over(self, changed: Versioned, proposed: EnsembleSegment) -> None:
        """The new ensemble stands in the metadata, and only from here on it is used."""
        context, tracker = self._context, self._tracker
        self.current = changed
        self.changes += 1
        context.metrics.ensemble_changes.inc()
        context.host.trace(
            "client.ensemble_changed", ledger=self._writer.ledger_id, first=proposed.first_entry_id, ensemble=",".join(proposed.ensemble)
        )
        # What was numbered but not sent goes out to the bookies that stay; the new ones are sent everything unconfirmed.
        self._writer.flush()
        self._writer.take_ensemble(tracker.replace(proposed.ensemble))
        if not (tracker.suspended and self._is_change_wanted()):
            tracker.end_change()
            self._writer.confirm()

    def _patience(self) -> MetadataRetry:
        return MetadataRetry(self._context, self._writer.ledger_id, f"the change of ensemble of ledger {self._writer.ledger_id}")

    def _settled(self, found: Versioned, before: EnsembleSegment, proposed: EnsembleSegment) -> Versioned | None:
        """What the metadata says after a change that did not plainly succeed."""
        ledger_id, metadata = self._writer.ledger_id, found.value
        if metadata.is_closed:
            raise LedgerClosed(f"ledger {ledger_id} was closed at entry {metadata.last_entry_id} by another client")
        if metadata.state == LedgerState.IN_RECOVERY:
            raise LedgerFenced(f"ledger {ledger_id} is being recovered by another client")
        last = (metadata.last_segment.first_entry_id, metadata.last_segment.ensemble)
        if last == (proposed.first_entry_id, proposed.ensemble):
            return found  # It was applied, and only the answer was lost.
        if last == (before.first_entry_id, before.ensemble):
            return None
        raise OutcomeUnknown(
            f"the open segment of ledger {ledger_id} was changed by somebody else (it begins at entry {last[0]} on {', '.join(last[1])}); "
            "recover the ledger and go on in a new one"
        )

    def _unreachable(self, error: Exception) -> OutcomeUnknown:
        ledger_id, limit_s = self._writer.ledger_id, self._context.settings.metadata_timeout_s
        why = str(error) or "no answer in time"
        ended = OutcomeUnknown(
            f"the metadata could not be reached within {limit_s:g} s for the change of ensemble of ledger {ledger_id}: {why}"
        )
        ended.ledger_id = ledger_id
        return ended

    def _too_few(self, error: NotEnoughBookies) -> NotEnoughBookies:
        ended = NotEnoughBookies(f"{error}; why they failed: {self._absentees.why(self._absent())}")
        ended.ledger_id = self._writer.ledger_id
        return ended

    # Going on without.

    def _tell_absent(self, absent: tuple[str, ...]) -> None:
        """Say so when the writer begins to go on with fewer bookies, and when that changes."""
        if absent == self._told:
            return
        context = self._context
        context.metrics.missing_bookies.inc(len(absent) - len(self._told))
        if absent:
            self.went_without = True
            missing, last = ",".join(absent), self._tracker.last_add_confirmed
            context.host.trace("client.bookies_missing", ledger=self._writer.ledger_id, missing=missing, confirmed=last)
        self._told = absent

    def _welcome_back(self) -> None:
        """Take in again those who answered, and ask those whose pause is over."""
        tracker = self._tracker
        for position in tracker.suspended:
            bookie_id = tracker.ensemble[position]
            if not self._may_come_back(bookie_id):
                continue
            if not self._absentees[bookie_id].is_back:
                self._absentees.ask(bookie_id)
                continue
            self._writer.flush()
            self._context.host.trace(
                "client.bookie_back", ledger=self._writer.ledger_id, bookie=bookie_id, first=tracker.last_add_confirmed + 1
            )
            self._writer.resume(position)

    def _is_anyone_back(self) -> bool:
        """Whether an absent bookie has answered and is about to be taken in again."""
        return any(self._absentees[bookie_id].is_back and self._may_come_back(bookie_id) for bookie_id in self._absent())

    def _may_come_back(self, bookie_id: str) -> bool:
        """A read-only bookie would answer the question, and refuse the next entry all the same."""
        return not isinstance(self._absentees[bookie_id].error, BookieReadOnly) or bookie_id in self._writable

    async def _pause(self) -> None:
        """Until a bookie fails or answers, a pause is over, or bookies come or go."""
        self._news = asyncio.get_running_loop().create_future()
        waits = [self._news_come(self._news)]
        askable = [self._absentees[bookie_id] for bookie_id in self._absent() if self._may_come_back(bookie_id)]
        due = [known.until for known in askable if not known.is_asked]
        if self._is_change_wanted():
            waits.append(self._bookies_change())
            due.append(self._look_at)
        if due:
            waits.append(sleep_until(self._clock, min(due)))
        await first_of(waits, name=f"absent bookies of ledger {self._writer.ledger_id}")

    async def _news_come(self, news: asyncio.Future[None]) -> None:
        await news

    async def _bookies_change(self) -> None:
        try:
            if self._watch is None:
                self._watch = self._context.metadata.bookies.watch()
            await self._watch.changed()
        except MetadataError as error:
            self._context.host.trace("client.bookies_unknown", ledger=self._writer.ledger_id, why=str(error))
            await sleep(self._clock, LOOK_AGAIN_S)
        self._look_at = 0.0
