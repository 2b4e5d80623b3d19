"""The change of a ledger's ensemble: replace, do without, or resume the bookies that fail a writer. Pure: no I/O, no clock.

The machine holds the decisions. The shell reports what happened with `step`, then calls `decide` until it returns no command, and executes
each batch of commands at once and in order.

A bookie that fails is suspended at once (`WriteTracker.suspend`). The rest follows from the suspended positions:

- Normally a failed bookie is replaced at once if another one is writable. Entries are confirmed again when the change is made, or known to
  be impossible, so that entries in flight get all their copies. A delayed change replaces it only when some entry finds no ack quorum, or
  when the bookie is read-only; then all suspended bookies are replaced together.
- While no other bookie is writable and every entry finds its ack quorum, the writer continues without the failed bookie. It searches again
  when bookies come or go, and after pauses that grow. Meanwhile the failed bookie is probed, and resumed at its position when it answers.
- While an operator has frozen ensembles, no bookie is replaced, as if no other were writable.
- When an ack quorum is lost, or the fault domains that acknowledgements need, the writer waits for another bookie, or for a failed one, as
  long as for the answer to an add; then it ends.

No entry is ever confirmed by bookies that the metadata does not name. An ensemble is used only once it is written. From the proposal of a
change until the change is written or abandoned nothing is confirmed, because the new segment begins at last-add-confirmed + 1. Changes are
made one at a time; failures during a change are handled by the next one, before anything is confirmed again.

Source: BookKeeper `LedgerHandle.ensembleChangeLoop`, `EnsembleUtils`, its issues 1591 and 4651.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum

from triplicate.errors import (
    BookieError,
    BookieReadOnly,
    LedgerClosed,
    LedgerError,
    LedgerFenced,
    NotEnoughBookies,
    OutcomeUnknown,
    TriplicateError,
)
from triplicate.ledger.adv_tracker import AdvWriteTracker
from triplicate.ledger.failed_bookies import FailedBookies, FailureBackoff, QuorumLossTimer
from triplicate.ledger.ledger_metadata import EnsembleSegment, LedgerMetadata, LedgerState
from triplicate.ledger.placement.ack_domains import AckDomains
from triplicate.ledger.placement.ensemble_choice import RandomSource, replace_bookies
from triplicate.ledger.placement.placement_rules import PlacementRules
from triplicate.ledger.write_tracker import WriteTracker

SEARCH_PAUSE_MAXIMUM_S = 10.0
"""The longest pause of a writer that found no bookie to replace a failed one. It searches at once when bookies come or go."""
CALM_TIMEOUTS = 2.0
"""A quorum loss within this many add timeouts of the one before, with nothing confirmed between, continues it."""

Tracker = WriteTracker | AdvWriteTracker

# Commands: what the shell must do.


@dataclass(frozen=True, slots=True)
class ListBookies:
    """List the writable bookies; report `BookiesListed` or `ListingFailed`."""


@dataclass(frozen=True, slots=True)
class WriteEnsemble:
    """Write this segment to the ledger's metadata by compare-and-set; report `EnsembleWritten`.

    After a conflict or a lost answer, report `MetadataFound` first. Try again unless `is_written` or `failure` is set by then.
    """

    segment: EnsembleSegment


@dataclass(frozen=True, slots=True)
class UseEnsemble:
    """The metadata names the segment: send every unconfirmed entry to the new bookies at these positions."""

    segment: EnsembleSegment
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ResumeBookie:
    """The bookie at this position takes entries again: send it every unconfirmed entry that it should hold."""

    position: int
    bookie_id: str


@dataclass(frozen=True, slots=True)
class ProbeBookie:
    """Read the ledger's last entry from this bookie; report `ProbeAnswered` or `ProbeFailed`."""

    bookie_id: str


@dataclass(frozen=True, slots=True)
class ConfirmEntries:
    """The change is over: confirm the entries that have their ack quorum."""


Command = ListBookies | WriteEnsemble | UseEnsemble | ResumeBookie | ProbeBookie | ConfirmEntries

# Events: what happened.


@dataclass(frozen=True, slots=True)
class BookieFailed:
    """A bookie of the ensemble failed; the tracker has suspended it."""

    bookie_id: str
    error: BookieError


@dataclass(frozen=True, slots=True)
class ProbeAnswered:
    """A failed bookie answered its probe."""

    bookie_id: str


@dataclass(frozen=True, slots=True)
class ProbeFailed:
    """A failed bookie did not answer its probe."""

    bookie_id: str
    error: BookieError


@dataclass(frozen=True, slots=True)
class BookiesListed:
    """The writable bookies.

    Attributes:
        avoid: those that failed other writers recently; they are chosen only if there are too few others.
        rules: of placement; None: any distinct bookies.
        frozen: why no ensemble may change, which an operator has requested; empty if it may.
    """

    writable: tuple[str, ...]
    avoid: tuple[str, ...] = ()
    rules: PlacementRules | None = None
    frozen: str = ""


@dataclass(frozen=True, slots=True)
class ListingFailed:
    """The writable bookies could not be listed, since the metadata store was out of reach."""

    reason: str


@dataclass(frozen=True, slots=True)
class BookiesChanged:
    """A bookie has come or gone."""


@dataclass(frozen=True, slots=True)
class EnsembleWritten:
    """The compare-and-set of `WriteEnsemble` succeeded."""


@dataclass(frozen=True, slots=True)
class MetadataFound:
    """The metadata that was read after a compare-and-set that failed, or whose answer was lost."""

    metadata: LedgerMetadata


@dataclass(frozen=True, slots=True)
class WriterEnded:
    """The writer failed or was closed: nothing more is decided."""


Event = (
    BookieFailed
    | ProbeAnswered
    | ProbeFailed
    | BookiesListed
    | ListingFailed
    | BookiesChanged
    | EnsembleWritten
    | MetadataFound
    | WriterEnded
)


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """A client's settings for ensemble changes; times are in seconds.

    Attributes:
        delayed: replace failed bookies only when an ack quorum is lost.
    """

    delayed: bool
    add_timeout_s: float
    metadata_timeout_s: float
    reconnect_first_s: float
    reconnect_maximum_s: float


class _Phase(Enum):
    READY = "nothing is awaited"
    LISTING = "the writable bookies are being listed"
    LISTED = "they are listed, or it is known that they cannot be"
    WRITING = "the proposed segment is being written"
    WRITTEN = "it is written, and not in use"


class EnsembleChange:
    """The decisions of one writer about its ensemble.

    Args:
        tracker: the writer's; only this machine begins and ends changes on it, and only this machine resumes bookies.
        segment: the open segment of the ledger's metadata.
        rng: chooses among the writable bookies.
        search_backoff: pauses between searches that find no bookie.
        make_backoff: see `FailedBookies`.
    """

    def __init__(
        self,
        ledger_id: int,
        tracker: Tracker,
        segment: EnsembleSegment,
        settings: ChangeSettings,
        rng: RandomSource,
        search_backoff: FailureBackoff,
        make_backoff: Callable[[float, float], FailureBackoff],
    ) -> None:
        self.failure: TriplicateError | None = None
        """Why the writer must end."""
        self.is_over = False
        """Whether the writer ended."""
        self.missing: tuple[str, ...] = ()
        """Suspended bookies without which the writer continues."""
        self.continued_without = False
        """Whether the writer ever continued without a bookie."""
        self._ledger_id = ledger_id
        self._tracker = tracker
        self._segment = segment
        self._settings = settings
        self._rng = rng
        self._search_backoff = search_backoff
        self._failed = FailedBookies(make_backoff, settings.add_timeout_s, settings.reconnect_first_s, settings.reconnect_maximum_s)
        self._quorum_loss = QuorumLossTimer(CALM_TIMEOUTS * settings.add_timeout_s)
        self._phase = _Phase.READY
        self._search_at = 0.0
        """When to search for other bookies."""
        self._listed: BookiesListed | ListingFailed = BookiesListed(())
        self._writable: Collection[str] = ()
        """As last listed."""
        self._proposed = segment
        self._domains: AckDomains | None = None
        """Of the proposed ensemble."""

    # Events.

    def step(self, event: Event, now: float) -> None:
        """Record an event. Events that are late, repeated or not asked for are ignored."""
        if self.is_over:
            return
        match event:
            case BookieFailed():
                self._note_failure(event, now)
            case ProbeAnswered():
                self._failed.end_probe(event.bookie_id, None, now)
            case ProbeFailed():
                self._failed.end_probe(event.bookie_id, event.error, now)
            case BookiesListed() | ListingFailed():
                if self._phase is _Phase.LISTING:
                    self._listed, self._phase = event, _Phase.LISTED
            case BookiesChanged():
                self._search_at = 0.0
            case EnsembleWritten():
                if self._phase is _Phase.WRITING:
                    self._phase = _Phase.WRITTEN
            case MetadataFound():
                if self._phase is _Phase.WRITING:
                    self._judge(event.metadata)
            case WriterEnded():
                self.is_over = True
                self.missing = ()

    def _note_failure(self, event: BookieFailed, now: float) -> None:
        assert self._tracker.position_of(event.bookie_id) is None, "a bookie that failed is suspended first"
        self._failed.fail(event.bookie_id, event.error, now)
        self._search_at = 0.0
        self._note_quorum_loss(now)
        if not self._tracker.changing and self._is_change_wanted():
            self._tracker.begin_change()

    def _note_quorum_loss(self, now: float) -> None:
        if self._tracker.is_endangered:
            self._quorum_loss.note(now, self._tracker.last_add_confirmed)

    def _judge(self, metadata: LedgerMetadata) -> None:
        """Find out from the metadata whether the proposed segment was written, can still be, or never may."""
        if metadata.is_closed:
            self.failure = LedgerClosed(f"ledger {self._ledger_id} was closed at entry {metadata.last_entry_id} by another client")
            return
        if metadata.state == LedgerState.IN_RECOVERY:
            self.failure = LedgerFenced(f"ledger {self._ledger_id} is being recovered by another client")
            return
        last = metadata.last_segment
        if _is_same(last, self._proposed):
            self._phase = _Phase.WRITTEN  # It was applied, and only the answer was lost.
        elif not _is_same(last, self._segment):
            self.failure = OutcomeUnknown(
                f"the open segment of ledger {self._ledger_id} was changed by another client (it begins at entry {last.first_entry_id} on "
                f"{', '.join(last.ensemble)}); recover the ledger and continue in a new one"
            )

    # Decisions.

    @property
    def is_written(self) -> bool:
        """Whether the metadata names the segment of the last `WriteEnsemble`, which is not yet in use."""
        return self._phase is _Phase.WRITTEN

    @property
    def is_change_wanted(self) -> bool:
        """Whether a suspended bookie is replaced as soon as another one is writable."""
        return bool(self._tracker.suspended) and self._is_change_wanted()

    @property
    def wake_at(self) -> float:
        """When to call `decide` again if nothing happens, in seconds of the monotonic clock; infinite where only an event helps."""
        due = [self._failed[name].retry_at for name in self._probeable() if not self._failed[name].is_probed]
        if self.is_change_wanted:
            due.append(self._search_at)
        return min(due, default=float("inf"))

    def decide(self, now: float) -> list[Command]:
        """The commands to execute now, in order. Call it again until it returns none; `failure` is set when the writer must end."""
        if self.is_over or self.failure is not None or self._phase in (_Phase.LISTING, _Phase.WRITING):
            return []
        if self._phase is _Phase.WRITTEN:
            return self._use_proposed()
        if self._phase is _Phase.LISTED:
            commands = self._choose(now)
            if commands or self.failure is not None:
                return commands
        if not self._tracker.suspended:
            assert not self._tracker.changing, "a change ends before the last failed bookie is back"
            self.missing = ()
            return []
        self._note_quorum_loss(now)
        if self._tracker.changing or (self._is_change_wanted() and self._search_at <= now):
            self._phase = _Phase.LISTING
            return [ListBookies()]
        self.missing = self._suspended()
        self.continued_without = True
        return self._resume_or_probe(now)

    def _is_change_wanted(self) -> bool:
        if self._tracker.is_endangered or not self._settings.delayed:
            return True
        return any(isinstance(self._failed[bookie_id].error, BookieReadOnly) for bookie_id in self._suspended())

    def _suspended(self) -> tuple[str, ...]:
        return tuple(self._tracker.ensemble[position] for position in self._tracker.suspended)

    # Replacing.

    def _choose(self, now: float) -> list[Command]:
        """Propose an ensemble in which the suspended bookies are replaced, as far as there are others."""
        self._phase = _Phase.READY
        listed = self._listed
        if isinstance(listed, ListingFailed):
            limit_s = self._settings.metadata_timeout_s
            return self._continue_without(now, limit_s, self._unreachable(listed.reason, limit_s))
        self._writable = listed.writable
        if listed.frozen:
            return self._continue_without(now, self._settings.add_timeout_s, self._frozen(listed.frozen))
        tracker = self._tracker
        self._failed.forget_expired(tracker.ensemble, now)
        candidates = [bookie_id for bookie_id in listed.writable if not self._failed.is_backing_off(bookie_id, now)]
        try:
            ensemble = replace_bookies(tracker.ensemble, tracker.suspended, candidates, self._rng, listed.avoid, listed.rules)
            # The bookies that stay may have moved, so that a write set without a new bookie spans too few.
            self._domains = None if listed.rules is None else listed.rules.spanned_domains(ensemble)
        except NotEnoughBookies as error:
            return self._continue_without(now, self._settings.add_timeout_s, self._too_few(error))
        self._search_backoff.reset()
        if not tracker.changing:
            tracker.begin_change()
        self._proposed = EnsembleSegment(tracker.last_add_confirmed + 1, ensemble)
        self._phase = _Phase.WRITING
        return [WriteEnsemble(self._proposed)]

    def _use_proposed(self) -> list[Command]:
        """Take over the ensemble that the metadata names now."""
        tracker, segment = self._tracker, self._proposed
        assert tracker.changing, "nothing is confirmed while a change is under way"
        assert segment.first_entry_id == tracker.last_add_confirmed + 1, "the new segment begins behind the last-add-confirmed"
        self._phase = _Phase.READY
        self._segment = segment
        commands: list[Command] = [UseEnsemble(segment, tuple(tracker.replace(segment.ensemble, self._domains)))]
        if not (tracker.suspended and self._is_change_wanted()):
            commands += self._end_change()
        return commands

    def _end_change(self) -> list[Command]:
        self._tracker.end_change()
        return [ConfirmEntries()]

    def _continue_without(self, now: float, limit_s: float, error: TriplicateError) -> list[Command]:
        """No other bookie can be used now: confirm what has its ack quorum and search again later.

        Fails with `error` when an ack quorum has been lost for `limit_s` and no failed bookie is back, as one may be since the search.
        """
        since = self._quorum_loss.since
        if self._tracker.is_endangered and now >= since + limit_s and not self._is_any_back():
            self.failure = error
            return []
        moments = [now + self._search_backoff.next_s()]
        moments += [self._failed[name].retry_at for name in self._writable if self._failed.is_backing_off(name, now)]
        if self._tracker.is_endangered:
            moments.append(since + self._settings.add_timeout_s)
        self._search_at = min(moment for moment in moments if moment > now)
        return self._end_change() if self._tracker.changing else []

    def _unreachable(self, reason: str, limit_s: float) -> LedgerError:
        return self._of_ledger(
            OutcomeUnknown(
                f"the metadata could not be reached within {limit_s:g} s for the change of ensemble of ledger {self._ledger_id}: {reason}"
            )
        )

    def _too_few(self, error: NotEnoughBookies) -> LedgerError:
        return self._of_ledger(NotEnoughBookies(f"{error}; why they failed: {self._failed.reasons(self._suspended())}"))

    def _frozen(self, reason: str) -> LedgerError:
        return self._of_ledger(
            NotEnoughBookies(
                f"ledger {self._ledger_id} has lost an ack quorum or fault domains, and changes of ensembles are frozen {reason}; "
                "`triplicate cluster freeze-ensembles off` ends the freeze; "
                f"why the bookies failed: {self._failed.reasons(self._suspended())}"
            )
        )

    def _of_ledger(self, error: LedgerError) -> LedgerError:
        error.ledger_id = self._ledger_id
        return error

    # Continuing without.

    def _resume_or_probe(self, now: float) -> list[Command]:
        """Resume the failed bookies that are back, and probe those whose backoff is over."""
        commands: list[Command] = []
        tracker = self._tracker
        for position in tracker.suspended:
            bookie_id = tracker.ensemble[position]
            if not self._may_resume(bookie_id):
                continue
            if self._failed[bookie_id].is_back:
                tracker.resume(position)
                commands.append(ResumeBookie(position, bookie_id))
            elif self._failed.begin_probe(bookie_id, now):
                commands.append(ProbeBookie(bookie_id))
        return commands

    def _is_any_back(self) -> bool:
        return any(self._failed[bookie_id].is_back for bookie_id in self._probeable())

    def _probeable(self) -> list[str]:
        return [bookie_id for bookie_id in self._suspended() if self._may_resume(bookie_id)]

    def _may_resume(self, bookie_id: str) -> bool:
        """Whether a probe says anything: a read-only bookie would answer it, and still refuse the next entry."""
        return not isinstance(self._failed[bookie_id].error, BookieReadOnly) or bookie_id in self._writable


def _is_same(segment: EnsembleSegment, other: EnsembleSegment) -> bool:
    return (segment.first_entry_id, segment.ensemble) == (other.first_entry_id, other.ensemble)
