"""Executes recoveries: the machine of `ledger.recovery` decides, and this module sends its requests to bookies and metadata.

Fault points, in their order: ``client.recovery.marked``, the metadata says IN_RECOVERY, and no bookie was asked; ``.fenced``, enough are
fenced, and no entry was asked for; ``.read_on``, some entries are about to be asked for; ``.copying``, some are about to be written again;
``.copied``, an ack quorum has all that were found; ``.closing``, the metadata is about to be closed. The third and fourth come repeatedly,
or not at all.

Source: BookKeeper `ReadOnlyLedgerHandle.recover`, `LedgerRecoveryOp`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from triplicate.client.connection.add_framing import AddFraming, V2AddFraming, V3AddFraming
from triplicate.client.connection.bookie_channel import AddStream, InFlight
from triplicate.client.connection.pool import ChannelPool
from triplicate.client.connection.response_errors import EXPLICIT_NEGATIVES, error_for_status
from triplicate.client.context import ClientContext
from triplicate.client.metadata_retry import MetadataRetry
from triplicate.errors import BookieError, DigestMismatch, HandleClosed, NotEnoughBookies, RecoveryFailed, TriplicateError, Unauthorized
from triplicate.ledger import AckDomains, EntryCodec, LedgerMetadata, LedgerState, replace_bookies
from triplicate.ledger import recovery as machine
from triplicate.metadata import Versioned
from triplicate.runtime import Host, Timer, fault_point, resolve, timeout_at
from triplicate.wire import LAST_ENTRY, ReadResponse, Status

FIRST_REPORT_S = 1.0
REPORT_PAUSE_MAXIMUM_S = 10.0
"""A recovery reports what it waits for after the first of these, and then after pauses that grow up to the second."""
COPIES_WAIT_S = 0.2
"""How long a recovery that has closed its ledger waits for the last copies, in seconds. Bookies that did not answer are not waited for."""
RESTARTS_MAX = 8
"""How many times a recovery restarts because another client changed the ledger's segments meanwhile."""


class MetadataChanged(Exception):
    """Another client changed the ledger's segments during the recovery; restart with the present metadata."""


@dataclass(frozen=True, slots=True)
class RecoveredLedger:
    """A closed ledger.

    Args:
        missing: bookies of its last ensemble that this recovery should have copied entries to, and that did not answer.
        lacking: bookies that the ledger names and that have not acknowledged every copy of this recovery.
    """

    found: Versioned
    missing: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


async def recover_ledger(context: ClientContext, ledger_id: int, found: Versioned, retry: MetadataRetry) -> RecoveredLedger:
    """Fence a ledger, copy its tail where needed, close it, and return the closed metadata. A closed ledger is returned unchanged.

    It is safe to repeat, to interrupt, and to run in several clients at the same time: all close at the same entry.

    Args:
        found: the ledger's metadata. retry: bounds the time spent on the metadata store in total.

    Raises:
        RecoveryFailed: too few bookies answered; the message names those that are unknown. The ledger stays fenced.
        Unauthorized: the password is not the ledger's.
        OutcomeUnknown: the metadata could not be reached. NoSuchLedger: the ledger was deleted meanwhile.
    """
    for _ in range(RESTARTS_MAX):
        if found.value.is_closed:
            return RecoveredLedger(found)
        pool = context.new_pool()
        try:
            # No request is sent before the metadata says IN_RECOVERY; the connections are made meanwhile.
            pool.connect(found.value.last_segment.ensemble)
            marked = await _mark(context, ledger_id, found, retry)
            if marked.value.is_closed:
                return RecoveredLedger(marked)
            rules = await retry.read(partial(context.placement.writer_rules, marked.value))
            domains = None if rules is None else rules.ack_domains(marked.value.last_segment.ensemble)
            attempt = _Attempt(context, ledger_id, marked.value, pool, domains)
            try:
                proposed = await attempt.run()
                closed = await _close(context, ledger_id, marked, proposed, retry)
                return RecoveredLedger(closed, attempt.missing(proposed), await attempt.lacking(closed.value))
            finally:
                attempt.close()
        except MetadataChanged:
            found = await retry.read(lambda: context.metadata.ledgers.get(ledger_id))
        finally:
            pool.close()
    error = RecoveryFailed(f"the segments of ledger {ledger_id} were changed by others {RESTARTS_MAX} times during its recovery; try again")
    error.ledger_id = ledger_id
    raise error


async def _mark(context: ClientContext, ledger_id: int, found: Versioned, retry: MetadataRetry) -> Versioned:
    """Set IN_RECOVERY in the metadata, so that the writer can no longer change ensembles."""

    def accept(stored: Versioned) -> Versioned | None:
        return None if stored.value.state == LedgerState.OPEN else stored

    if found.value.state != LedgerState.OPEN:
        return found
    return await retry.swap(found, lambda metadata: metadata.recovering(), accept)


@fault_point("client.recovery.closing")
async def _close(context: ClientContext, ledger_id: int, marked: Versioned, proposed: LedgerMetadata, retry: MetadataRetry) -> Versioned:
    """Write CLOSED with the new segments. If another recoverer or the writer closed the ledger first, its end is adopted."""

    def judge(there: Versioned) -> Versioned | None:
        if there.value.is_closed:
            return there
        if there.value.segments != marked.value.segments or there.value.state != LedgerState.IN_RECOVERY:
            raise MetadataChanged
        return None

    closed = await retry.swap(marked, lambda _: proposed, judge)
    context.host.trace("client.ledger_recovered", ledger=ledger_id, last=closed.value.last_entry_id)
    return closed


class _WaitReporter:
    """Calls `report` until cancelled, after pauses that grow."""

    def __init__(self, host: Host, report: Callable[[], None]) -> None:
        self._clock = host.clock
        self._report = report
        self._pause_s = FIRST_REPORT_S
        self._timer = self._clock.call_at(self._clock.monotonic() + self._pause_s, self._due)

    def cancel(self) -> None:
        self._timer.cancel()

    def _due(self) -> None:
        self._pause_s = min(2 * self._pause_s, REPORT_PAUSE_MAXIMUM_S)
        self._timer = self._clock.call_at(self._clock.monotonic() + self._pause_s, self._due)
        self._report()


class _Attempt:
    """One run of the machine.

    Args:
        pool: a separate one, since every request on these connections fences or passes the fence. The caller closes it.
        domains: of the last ensemble, where copies must be in several.
    """

    def __init__(
        self, context: ClientContext, ledger_id: int, metadata: LedgerMetadata, pool: ChannelPool, domains: AckDomains | None
    ) -> None:
        self.ledger_id = ledger_id
        self._context = context
        self._ensemble = metadata.last_segment.ensemble
        self._write_quorum = metadata.write_quorum
        self._codec = EntryCodec(ledger_id, metadata.digest_type, metadata.password)
        self._now = context.host.clock.monotonic
        settings = context.settings
        self._machine = machine.Recovery(
            metadata, settings.recovery_window_entries, self._now(), settings.read_window_bytes, context.reads.limit_s, domains
        )
        self._hedge: Timer | None = None
        self._pool = pool
        self._heads: AddFraming = V2AddFraming(self._codec.master_key, recovery=True)
        if settings.wire == "v3":
            self._heads = V3AddFraming(ledger_id, self._codec.master_key, self._pool.transactions, recovery=True)
        self._streams: dict[str, AddStream] = {}
        self._answering: dict[str, None] = {}
        """Bookies that answered the fence."""
        self._has_copied = False
        self._replacing: asyncio.Task[None] | None = None
        self._rng = context.host.entropy.stream("placement")
        self._began_at = self._now()
        self._failure: TriplicateError | None = None
        self._news: asyncio.Future[None] | None = None
        self._closed = False

    async def run(self) -> LedgerMetadata:
        """The metadata to close the ledger with.

        Raises:
            RecoveryFailed, Unauthorized, HandleClosed: see `recover_ledger`.
        """
        await self._fence()
        reporter = self._start_reporter()
        try:
            fenced = False
            while True:
                self._check()
                commands = self._machine.pop_commands()
                if self._machine.is_fenced and not fenced:
                    fenced = True
                    await self._note_fenced()
                for command in commands:
                    if isinstance(command, machine.CloseLedger):
                        return await self._copied(command)
                await self._execute(commands)
                self._hedge_later()
                if not self._failure and not self._machine.is_finished and not self._machine.has_commands:
                    self._news = asyncio.get_running_loop().create_future()
                    await self._news
        finally:
            reporter.cancel()
            for bookie_id in self._machine.silent_bookies():
                self._context.reads.note_silence(bookie_id, self._now())

    def missing(self, proposed: LedgerMetadata) -> tuple[str, ...]:
        """Bookies of the last ensemble that should have got copies, and did not answer."""
        if not self._has_copied:
            return ()
        failed, asked = self._machine.failed_bookies, self._ensemble
        return tuple(name for name in proposed.last_segment.ensemble if name in failed or (name in asked and name not in self._answering))

    async def lacking(self, closed: LedgerMetadata) -> tuple[str, ...]:
        """Bookies that the closed ledger names and that lack copies; those that answer get a moment to store them."""
        clock = self._context.host.clock
        with suppress(TimeoutError):
            async with timeout_at(clock.monotonic() + COPIES_WAIT_S):
                while any(self._may_store(name) for name in self._machine.bookies_without_copies()):
                    self._news = asyncio.get_running_loop().create_future()
                    await self._news
        named = dict.fromkeys(name for segment in closed.segments for name in segment.ensemble)
        return tuple(name for name in self._machine.bookies_without_copies() if name in named)

    def _may_store(self, bookie_id: str) -> bool:
        """Whether copies that a bookie has not acknowledged may still arrive: it did not fail, and is not silent since the fence."""
        is_silent = bookie_id in self._ensemble and bookie_id not in self._answering
        return bookie_id not in self._machine.failed_bookies and not is_silent

    def close(self) -> None:
        """Forget the requests in flight. Idempotent."""
        self._closed = True
        if self._hedge is not None:
            self._hedge.cancel()
        if self._replacing is not None:
            self._replacing.cancel()
        for stream in list(self._streams.values()):
            stream.close()
        self._streams.clear()

    @property
    def _is_over(self) -> bool:
        return self._closed or self._failure is not None

    def _step(self, event: machine.Event) -> None:
        if not self._is_over:
            self._machine.step(event, self._now())
            self._wake()

    def _wake(self) -> None:
        if self._news is not None:
            resolve(self._news, None)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._machine.failure is not None:
            seconds = self._now() - self._began_at
            error = RecoveryFailed(
                f"recovery of ledger {self.ledger_id} is not possible now, after {seconds:.1f} s: {self._machine.failure}; "
                "the ledger stays fenced"
            )
            error.ledger_id = self.ledger_id
            raise error

    # The moments of a recovery: each is a fault point.

    @fault_point("client.recovery.marked")
    async def _fence(self) -> None:
        for command in self._machine.pop_commands():
            assert isinstance(command, machine.FenceAndReadLac), "nothing comes before the fence"
            self._read(command.bookie_id, LAST_ENTRY, command)

    @fault_point("client.recovery.fenced")
    async def _note_fenced(self) -> None:
        """Enough bookies are fenced."""

    async def _execute(self, commands: list[machine.Command]) -> None:
        reads = [command for command in commands if isinstance(command, machine.RecoveryRead)]
        adds = [command for command in commands if isinstance(command, machine.RecoveryAdd)]
        if adds:
            await self._copy(adds)
        if reads:
            await self._read_entries(reads)
        for command in commands:
            if isinstance(command, machine.ReplaceBookies):
                self._replacing = self._context.scope.spawn(self._replace(command), name=f"replace bookies of ledger {self.ledger_id}")

    @fault_point("client.recovery.read_on")
    async def _read_entries(self, reads: list[machine.RecoveryRead]) -> None:
        for command in reads:
            self._read(command.bookie_id, command.entry_id, command)

    @fault_point("client.recovery.copying")
    async def _copy(self, adds: list[machine.RecoveryAdd]) -> None:
        """Send once per bookie. A copy for several bookies is encoded once, since their commands follow one another."""
        self._has_copied = True
        failed = self._machine.failed_bookies
        frames: dict[str, list[bytes]] = {}
        lasts: dict[str, int] = {}
        encoded: machine.RecoveryAdd | None = None
        frame = b""
        for command in adds:
            if command.bookie_id in failed:
                continue
            if encoded is None or not encoded.is_copy_of(command):
                encoded, frame = command, self._frame(command)
            frames.setdefault(command.bookie_id, []).append(frame)
            lasts[command.bookie_id] = command.entry_id
        for bookie_id, its_frames in frames.items():
            # The machine's window bounds the copies in flight, so a full channel needs no waiting here.
            joined = b"".join(its_frames)
            self._stream(bookie_id).send(joined, InFlight(lasts[bookie_id], len(its_frames), len(joined), self._now()))

    @fault_point("client.recovery.copied")
    async def _copied(self, command: machine.CloseLedger) -> LedgerMetadata:
        if not command.length_is_known:
            last, length = command.metadata.last_entry_id, command.metadata.length
            self._context.host.trace("client.length_not_known", ledger=self.ledger_id, last=last, length=length)
        return command.metadata

    # Waiting.

    def _start_reporter(self) -> _WaitReporter:
        return _WaitReporter(self._context.host, self._report_waits)

    def _report_waits(self) -> None:
        """Trace which bookies the recovery waits for, and since when."""
        awaited = "; ".join(f"{what}: {', '.join(bookies)}" for what, bookies in self._machine.waits_for().items())
        seconds = round(self._now() - self._began_at, 1)
        self._context.host.trace("client.recovery_waits", ledger=self.ledger_id, awaited=awaited or "the metadata", seconds=seconds)

    def _fail(self, error: TriplicateError) -> None:
        if self._failure is None:
            self._failure = error
            self._wake()

    def _hedge_later(self) -> None:
        """Set the timer after which the machine reads from further replicas, if it is not set."""
        if self._hedge is not None:
            return
        due = self._machine.hedge_at
        if due < float("inf"):
            self._hedge = self._context.host.clock.call_at(max(due, self._now()), self._time_passed)

    def _time_passed(self) -> None:
        self._hedge = None
        self._step(machine.TimePassed())

    # Reads.

    def _read(self, bookie_id: str, entry_id: int, command: machine.FenceAndReadLac | machine.RecoveryRead) -> None:
        channel = self._pool.channel(bookie_id)
        channel.read(self.ledger_id, entry_id, self._answered, command, fence=self.must_fence(entry_id), master_key=self._codec.master_key)

    def must_fence(self, entry_id: int) -> bool:
        """Every read of a recovery fences, not only the first: a single lost fence would let the writer continue unnoticed."""
        return True

    def _answered(
        self, command: machine.FenceAndReadLac | machine.RecoveryRead, response: ReadResponse | None, error: BookieError | None
    ) -> None:
        if self._is_over:
            return
        refusal: TriplicateError | None = error
        if response is not None and response.status not in (Status.OK, *EXPLICIT_NEGATIVES):
            refusal = error_for_status(response.status, command.bookie_id, self.ledger_id, "recovery read")
        if isinstance(refusal, Unauthorized):
            self._fail(refusal)
        elif isinstance(command, machine.FenceAndReadLac):
            self._step(self._lac_event(command, response, refusal))
        else:
            self._step(self._entry_event(command, response, refusal))

    def _lac_event(
        self, command: machine.FenceAndReadLac, response: ReadResponse | None, refusal: TriplicateError | None
    ) -> machine.LacAnswered | machine.LacAbsent | machine.LacDamaged | machine.LacFailed:
        if response is None or refusal is not None:
            return machine.LacFailed(command.position, str(refusal))
        self._answering[command.bookie_id] = None
        if response.status != Status.OK or response.body is None:
            return machine.LacAbsent(command.position)
        try:
            entry = self._codec.decode(response.body)
        except DigestMismatch:
            self._context.metrics.digest_mismatches.labels(bookie=command.bookie_id).inc()
            return machine.LacDamaged(command.position)
        return machine.LacAnswered(command.position, entry.entry_id, entry.last_add_confirmed, entry.length)

    def _entry_event(
        self, command: machine.RecoveryRead, response: ReadResponse | None, refusal: TriplicateError | None
    ) -> machine.EntryFound | machine.EntryAbsent | machine.EntryFailed:
        entry_id, bookie_id = command.entry_id, command.bookie_id
        if response is None or refusal is not None:
            return machine.EntryFailed(entry_id, bookie_id, str(refusal))
        if response.status != Status.OK or response.body is None:
            return machine.EntryAbsent(entry_id, bookie_id)
        try:
            entry = self._codec.decode(response.body, entry_id)
        except DigestMismatch as mismatch:
            self._context.metrics.digest_mismatches.labels(bookie=bookie_id).inc()
            return machine.EntryFailed(entry_id, bookie_id, str(mismatch))
        return machine.EntryFound(entry_id, bookie_id, entry.length, entry.payload)

    # Adds (AddSink).

    def _stream(self, bookie_id: str) -> AddStream:
        stream = self._streams.get(bookie_id)
        if stream is None:
            stream = self._streams[bookie_id] = self._pool.channel(bookie_id).open_stream(self.ledger_id, self)
        return stream

    def _frame(self, command: machine.RecoveryAdd) -> bytes:
        size = self._codec.overhead + len(command.payload)
        head = self._heads.head(command.entry_id, size)
        entry = self._codec.encode(command.entry_id, command.last_add_confirmed, command.length, command.payload, head)
        return entry + self._heads.tail

    def adds_acknowledged(self, stream: AddStream, entry_ids: Sequence[int]) -> None:
        """A bookie stored these entries."""
        self._step(machine.AddsAcknowledged(stream.bookie_id, tuple(entry_ids)))
        stream.release(self._machine.acked_through(stream.bookie_id))

    def add_acknowledged(self, stream: AddStream, entry_id: int) -> None:
        """A bookie stored this entry."""
        self.adds_acknowledged(stream, (entry_id,))

    def add_refused(self, bookie_id: str, entry_id: int, status: Status) -> None:
        """End the recovery on a wrong key; otherwise treat the bookie as failed."""
        error = error_for_status(status, bookie_id, self.ledger_id, f"recovery add of entry {entry_id}")
        if isinstance(error, Unauthorized):
            self._fail(error)
        else:
            self._bookie_failed(bookie_id, error)

    def bookie_failed(self, bookie_id: str, error: BookieError) -> None:
        """Adds in flight have an unknown outcome."""
        self._bookie_failed(bookie_id, error)

    def resume_adds(self) -> None:
        """Nothing waits for room here."""

    def check_pace(self, now: float) -> None:
        """A slow bookie is not replaced here."""

    def _bookie_failed(self, bookie_id: str, error: TriplicateError) -> None:
        stream = self._streams.pop(bookie_id, None)
        if stream is not None:
            stream.close()
        self._context.failed_bookies.add(bookie_id, self._now())
        self._step(machine.AddFailed(bookie_id, str(error)))

    async def _replace(self, command: machine.ReplaceBookies) -> None:
        retry = MetadataRetry(self._context, self.ledger_id, f"the replacement of bookies in the recovery of ledger {self.ledger_id}")
        try:
            writable = await retry.read(self._context.metadata.bookies.writable)
            freeze = await retry.read(self._context.metadata.ensemble_freezes.read)
            if freeze is not None:
                raise NotEnoughBookies(f"changes of ensembles are frozen {freeze.text}")
            failed = [command.ensemble[position] for position in command.failed]
            candidates = [bookie_id for bookie_id in writable if bookie_id not in failed and bookie_id not in self._machine.failed_bookies]
            suspects = self._context.avoided_bookies()
            rules = await self._context.placement.rules(self._write_quorum, writable, command.ensemble, for_writer=True)
            # Copies of entries that were acknowledged in enough domains: other domains are preferred and not enforced.
            ensemble = replace_bookies(command.ensemble, command.failed, candidates, self._rng, suspects, rules.for_copies)
        except NotEnoughBookies as error:
            self._step(machine.NoReplacement(str(error)))
        except TriplicateError as error:
            self._fail(error)
        except BaseException as error:
            # A fault of ours, or the end of the client: the machine must not wait for an answer.
            self._fail(HandleClosed(f"the recovery of ledger {self.ledger_id} was interrupted: {error!r}; the ledger stays fenced"))
            raise
        else:
            self._context.placement.report(self.ledger_id, ensemble, rules.for_copies)
            self._step(machine.EnsembleReplaced(ensemble, rules.ack_domains(ensemble)))
