"""Executes the decisions of `triplicate.ledger.EnsembleChange` for one writer: metadata, probes, timers and watches.

Source: BookKeeper `LedgerHandle.ensembleChangeLoop`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Protocol

from triplicate.client.connection.response_errors import bookie_error
from triplicate.client.context import ClientContext
from triplicate.client.metadata_retry import MetadataRetry
from triplicate.client.write.add_streams import EnsembleStreams
from triplicate.errors import (
    BookieError,
    BookieUnavailable,
    ConnectionLost,
    HandleClosed,
    MetadataError,
    OutcomeUnknown,
    RequestTimeout,
    TriplicateError,
)
from triplicate.ledger import EnsembleSegment, HeldWindow, PlacementRules, WriteTracker, holder_of, is_replaceable
from triplicate.ledger import ensemble_change as machine
from triplicate.metadata import BookieServiceInfo, Versioned, Watch
from triplicate.runtime import Backoff, fault_point, first_of, sleep, sleep_until, timeout_at
from triplicate.wire import LAST_ENTRY, ReadResponse

LISTING_LIMIT_S = 5.0
"""How long one listing of the bookies may take; entries that have their ack quorum are not confirmed during a first listing."""


class ChangingWriter(Protocol):
    """The part of a writer that the changer uses."""

    ledger_id: int

    def flush(self) -> None:
        """Send what was enqueued."""

    def confirm(self) -> None:
        """Confirm the entries that have their ack quorum."""

    def fail(self, cause: TriplicateError) -> None:
        """End the writer."""

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """Suspend a bookie of the ensemble; the changer is called in turn."""


class EnsembleChanger:
    """Belongs to one writer. It runs one task while a bookie is suspended, and none otherwise.

    Fault points: ``client.ensemble_change.chosen``, the metadata is about to be written; ``client.ensemble_change.written``, it is
    written, and nothing was sent to the new bookies.

    Attributes:
        current: the ledger's metadata as last written by this writer.
        changes: ensembles written so far.

    Args:
        tracker: the writer's. streams: the writer's, on the same tracker.
        created: the ledger's metadata as the writer found it.
    """

    def __init__(
        self, context: ClientContext, writer: ChangingWriter, tracker: machine.Tracker, streams: EnsembleStreams, created: Versioned
    ) -> None:
        self.current = created
        self.changes = 0
        self._context = context
        self._writer = writer
        self._tracker = tracker
        self._streams = streams
        self._clock = context.host.clock
        settings, entropy = context.settings, context.host.entropy
        placement, probes = entropy.stream("placement"), entropy.stream("absent bookies")
        first_s = settings.reconnect_first_s
        self._machine = machine.EnsembleChange(
            writer.ledger_id,
            tracker,
            created.value.last_segment,
            machine.ChangeSettings(
                settings.delay_ensemble_change, settings.add_timeout_s, settings.metadata_timeout_s, first_s, settings.reconnect_maximum_s
            ),
            placement,
            Backoff(first_s, max(first_s, machine.SEARCH_PAUSE_MAXIMUM_S), placement),
            lambda shortest_s, longest_s: Backoff(shortest_s, longest_s, probes),
        )
        self._rules = PlacementRules(created.value.write_quorum)
        """Of placement, as last used."""
        self._reported: tuple[str, ...] = ()
        """The missing bookies as last reported."""
        self._left_short: tuple[str, ...] = ()
        """The bookies that were left without confirmed entries, as last noted."""
        self._watch: Watch | None = None
        self._replacement: asyncio.Task[None] | None = None
        self._held = HeldWindow(0.0 if settings.delay_ensemble_change else settings.slow_bookie_limit_s)
        self._spare_rng = entropy.stream("slow bookies")
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def continued_without(self) -> bool:
        """Whether entries were ever confirmed while a bookie was missing and no other could replace it."""
        return self._machine.continued_without

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """A bookie of the present ensemble failed, and the tracker has suspended it."""
        context, ledger_id = self._context, self._writer.ledger_id
        now = self._clock.monotonic()
        context.failed_bookies.add(bookie_id, now)
        context.metrics.bookie_failures.labels(bookie=bookie_id).inc()
        context.host.trace("client.bookie_failed", ledger=ledger_id, bookie=bookie_id, why=str(error))
        self._step(machine.BookieFailed(bookie_id, error))
        if self._task is not None:
            return
        try:
            self._task = context.scope.spawn(self._run(), name=f"change ensemble of ledger {ledger_id}")
        except HandleClosed as closing:
            self._writer.fail(closing)

    def check_pace(self, now: float) -> None:
        """The writer's window is full: if one bookie has held it back for long, replace it, provided that another one can be chosen."""
        tracker = self._tracker
        if not (self._held.is_watched and isinstance(tracker, WriteTracker)):
            return
        acked_through = {bookie_id: tracker.acked_through(bookie_id) for bookie_id in tracker.ensemble}
        holder = holder_of(acked_through, tracker.last_add_confirmed, tracker.last_add_pushed, self._streams.full_bookies())
        slow = self._held.sample(holder, now)
        if slow is not None:
            limit_s = self._context.settings.slow_bookie_limit_s
            self._replace_if_possible(slow, RequestTimeout, f"held back the writer of ledger {self._writer.ledger_id} for {limit_s:g} s")

    def bookie_lost(self, bookie_id: str) -> None:
        """A bookie has not been registered for long: replace it if it is in the ensemble, provided that another one can be chosen."""
        settings = self._context.settings
        if bookie_id in self._tracker.ensemble and not settings.delay_ensemble_change:
            self._replace_if_possible(bookie_id, BookieUnavailable, f"was not registered for {settings.lost_bookie_limit_s:g} s")

    def _replace_if_possible(self, bookie_id: str, kind: type[BookieError], finding: str) -> None:
        """Start the replacement of a bookie that has not failed, unless one is being prepared."""
        if self._replacement is None and not self._context.scope.closing:
            replacing = self._replace(bookie_id, kind, finding)
            self._replacement = self._context.scope.spawn(replacing, name=f"replace a bookie of ledger {self._writer.ledger_id}")

    async def _replace(self, bookie_id: str, kind: type[BookieError], finding: str) -> None:
        context, ledger_id = self._context, self._writer.ledger_id
        try:
            async with timeout_at(self._clock.monotonic() + LISTING_LIMIT_S):
                writable = await context.metadata.bookies.writable()
                freeze = await context.metadata.ensemble_freezes.read()
            rules = await self._rules_for(writable)
        except (MetadataError, TimeoutError) as error:
            context.host.trace("client.bookies_unknown", ledger=ledger_id, why=str(error))
            return
        finally:
            self._replacement = None
        tracker = self._tracker
        if self._machine.is_over or freeze is not None or tracker.changing or tracker.suspended or bookie_id not in tracker.ensemble:
            return
        if kind is BookieUnavailable and bookie_id in writable:
            return
        if is_replaceable(tracker.ensemble, bookie_id, writable, context.avoided_bookies(), rules, self._spare_rng):
            context.host.trace("client.bookie_replaced", ledger=ledger_id, bookie=bookie_id, finding=finding)
            text = f"bookie {bookie_id} {finding}, and another one can take its place in ledger {ledger_id}"
            self._writer.bookie_failed(bookie_id, bookie_error(kind, bookie_id, text))

    def end(self) -> None:
        """The writer is about to end: decide nothing more. Idempotent."""
        self._step(machine.WriterEnded())
        self._report_missing(())
        self._note_left_short()

    def cancel(self) -> None:
        """Abandon a change that is under way; whether its metadata was written stays unknown. Idempotent."""
        for task in (self._task, self._replacement):
            if task is not None:
                task.cancel()

    def _step(self, event: machine.Event) -> None:
        self._machine.step(event, self._clock.monotonic())
        self._news.set()

    async def _run(self) -> None:
        try:
            while not self._machine.is_over and self._tracker.suspended:
                await self._act()
        except TriplicateError as error:
            self._writer.fail(error)
        except BaseException as error:
            # A fault of ours, or the end of the client: without a change that ends, nothing more would ever be confirmed.
            unknown = OutcomeUnknown(f"the change of ensemble of ledger {self._writer.ledger_id} was interrupted: {error!r}")
            unknown.ledger_id = self._writer.ledger_id
            self._writer.fail(unknown)
            raise
        finally:
            self._task = None
            self._report_missing(())
            if self._watch is not None:
                self._watch.close()
                self._watch = None

    async def _act(self) -> None:
        """Execute what is due, or wait until something is."""
        self._news.clear()
        if self._machine.is_written:
            await self._use_written()
            return
        commands = self._decide()
        for command in commands:
            if isinstance(command, machine.ListBookies):
                await self._list()
            elif isinstance(command, machine.WriteEnsemble):
                self.current = await self._write(command.segment)
                self._step(machine.EnsembleWritten())
            else:
                self._execute(command)
        if not commands and self._tracker.suspended:
            await self._pause()

    def _decide(self) -> list[machine.Command]:
        commands = self._machine.decide(self._clock.monotonic())
        if self._machine.failure is not None:
            raise self._machine.failure
        self._report_missing(self._machine.missing)
        return commands

    @fault_point("client.ensemble_change.written")
    async def _use_written(self) -> None:
        """The metadata names the new ensemble: only from here on it is used."""
        for command in self._decide():
            self._execute(command)

    def _execute(self, command: machine.Command) -> None:
        """Execute a command that needs no waiting."""
        match command:
            case machine.UseEnsemble():
                self._use(command)
            case machine.ResumeBookie():
                self._writer.flush()
                first = self._tracker.last_add_confirmed + 1
                self._context.host.trace("client.bookie_back", ledger=self._writer.ledger_id, bookie=command.bookie_id, first=first)
                self._streams.open((command.position,))
                self._note_left_short()
            case machine.ProbeBookie():
                channel = self._context.pool.channel(command.bookie_id)
                channel.read(self._writer.ledger_id, LAST_ENTRY, self._probe_ended, command.bookie_id)
            case machine.ConfirmEntries():
                self._writer.confirm()
            case _:
                raise AssertionError(f"{command} needs waiting")

    def _use(self, command: machine.UseEnsemble) -> None:
        context, segment = self._context, command.segment
        self.changes += 1
        context.metrics.ensemble_changes.inc()
        context.host.trace(
            "client.ensemble_changed", ledger=self._writer.ledger_id, first=segment.first_entry_id, ensemble=",".join(segment.ensemble)
        )
        context.placement.report(self._writer.ledger_id, segment.ensemble, self._rules)
        # Entries that were numbered and not sent go to the bookies that stay; the new ones are sent everything unconfirmed.
        self._writer.flush()
        self._streams.open(command.positions)
        self._note_left_short()

    def _note_left_short(self) -> None:
        """Note the bookies that the metadata name for confirmed entries which they may never have got, so that the ledger is marked."""
        left_short = self._tracker.left_short
        if left_short != self._left_short:
            self._left_short = left_short
            self._context.short_copies.note(self._writer.ledger_id, left_short)

    def _probe_ended(self, bookie_id: str, response: ReadResponse | None, error: BookieError | None) -> None:
        self._step(machine.ProbeAnswered(bookie_id) if error is None else machine.ProbeFailed(bookie_id, error))

    # The metadata.

    async def _list(self) -> None:
        """List the writable bookies and read whether ensembles are frozen, or find out why that is not possible."""
        bookies = self._context.metadata.bookies
        try:
            if self._watch is None:
                # Before the first listing, so that a change behind it is seen at once, and not only by the next listing.
                self._watch = bookies.watch()
            async with timeout_at(self._clock.monotonic() + LISTING_LIMIT_S):
                writable = await bookies.writable()
                freeze = await self._context.metadata.ensemble_freezes.read()
        except (ConnectionLost, TimeoutError) as error:
            self._context.host.trace("client.bookies_unknown", ledger=self._writer.ledger_id, why=str(error))
            self._step(machine.ListingFailed(str(error) or "no answer in time"))
        else:
            # The table of locations and the script have limits of their own; without them the last locations are used.
            self._rules = await self._rules_for(writable)
            avoid = tuple(self._context.avoided_bookies())
            frozen = "" if freeze is None else freeze.text
            self._step(machine.BookiesListed(tuple(writable), avoid, self._rules, frozen))

    async def _rules_for(self, writable: Mapping[str, BookieServiceInfo]) -> PlacementRules:
        metadata, ensemble = self.current.value, self._tracker.ensemble
        return await self._context.placement.rules(metadata.write_quorum, writable, ensemble, for_writer=True)

    @fault_point("client.ensemble_change.chosen")
    async def _write(self, segment: EnsembleSegment) -> Versioned:
        retry = MetadataRetry(self._context, self._writer.ledger_id, f"the change of ensemble of ledger {self._writer.ledger_id}")
        return await retry.swap(
            self.current, lambda metadata: metadata.with_ensemble(segment.first_entry_id, segment.ensemble), self._judge
        )

    def _judge(self, found: Versioned) -> Versioned | None:
        """Judge the metadata found after a change that did not plainly succeed; None to try again."""
        if self._machine.is_over:
            raise HandleClosed(f"the writer of ledger {self._writer.ledger_id} ended during a change of its ensemble")
        self._step(machine.MetadataFound(found.value))
        if self._machine.failure is not None:
            raise self._machine.failure
        return found if self._machine.is_written else None

    # Waiting.

    def _report_missing(self, missing: tuple[str, ...]) -> None:
        """Count and trace the bookies without which the writer continues, when they change."""
        if missing == self._reported:
            return
        context = self._context
        context.metrics.missing_bookies.inc(len(missing) - len(self._reported))
        if missing:
            names, last = ",".join(missing), self._tracker.last_add_confirmed
            context.host.trace("client.bookies_missing", ledger=self._writer.ledger_id, missing=names, confirmed=last)
        self._reported = missing

    async def _pause(self) -> None:
        """Wait until a bookie fails or answers, a backoff is over, or bookies come or go."""
        waits = [self._news_come()]
        if self._machine.is_change_wanted:
            waits.append(self._bookies_change())
        wake_at = self._machine.wake_at
        if wake_at < float("inf"):
            waits.append(sleep_until(self._clock, wake_at))
        await first_of(waits, name=f"failed bookies of ledger {self._writer.ledger_id}")

    async def _news_come(self) -> None:
        await self._news.wait()

    async def _bookies_change(self) -> None:
        bookies = self._context.metadata.bookies
        try:
            if self._watch is None:
                self._watch = bookies.watch()
            await self._watch.changed()
        except MetadataError as error:
            self._context.host.trace("client.bookies_unknown", ledger=self._writer.ledger_id, why=str(error))
            await sleep(self._clock, machine.SEARCH_PAUSE_MAXIMUM_S)
        self._machine.step(machine.BookiesChanged(), self._clock.monotonic())
