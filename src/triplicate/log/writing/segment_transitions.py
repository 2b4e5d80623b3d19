"""From one segment to the next: take-overs by a new writer, rolls and leaving by the same one.

A take-over: read the list at version v; create a ledger; recover (fence) the segment that is not marked closed and count its records;
change the list by one compare-and-set on exactly v, with a token of its own. Losing it means that the list changed since: the new ledger
is deleted and everything starts over, because only segments of the list that was read have been fenced. The ledger comes before the
fence: a take-over that cannot go on would otherwise end a writer that can.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

from triplicate.config.log_settings import LogClientSettings
from triplicate.errors import (
    BadVersion,
    ConnectionLost,
    LedgerFenced,
    LedgerVanished,
    LogError,
    LogFenced,
    NoSuchLedger,
    NoSuchLog,
    OutcomeUnknown,
    SessionExpired,
    TriplicateError,
    UsageError,
)
from triplicate.log.core import head_changes
from triplicate.log.core.head import Head, LogSegment, Owner
from triplicate.log.core.quorums import degraded_quorums
from triplicate.log.store.head_store import HeadDecision, HeadStore, StoredHead
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient
from triplicate.log.store.ownership import keep, release
from triplicate.log.store.segments import create_segment, recover_segment
from triplicate.log.upkeep.orphans import discard
from triplicate.log.upkeep.truncation import tidy
from triplicate.log.writing.ledger_allocator import LedgerAllocator, SpareLedger, delete_unused
from triplicate.metadata import TreeOperation
from triplicate.runtime import fault_point, sleep

OWNER_RETRY_S = 1.0


async def take_over(
    client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str, owner: Owner, *, open_next: bool
) -> tuple[StoredHead, LedgerAppender | None]:
    """Begin a new epoch.

    Args:
        open_next: open a segment and return its ledger; otherwise the log is left without an open segment, for publishing.

    Raises:
        LogFenced: every attempt lost against another one. Also whatever recovery and creation of ledgers raise; where the next ledger
        cannot be created, the writer that is there was not disturbed.
    """
    backoff = store.backoff()
    for _ in range(settings.take_over_attempts):
        if backoff.attempts:
            client.host.trace("log.take_over_lost", log=name, attempts=backoff.attempts)
        stored = await store.read(name)
        opened = ledger = None
        if open_next:
            ledger, reduced = await create_segment(client, settings, stored.head.settings, custom_of(name, stored.head.epoch + 1))
            opened = LogSegment(ledger.ledger_id, 0, reduced=reduced)
        taken = None
        try:
            taken = await _fence_and_list(client, store, settings, name, stored, owner, opened, ledger)
        finally:
            if taken is None and ledger is not None:
                ledger.abandon()
        if taken is not None:
            return taken, ledger
        await sleep(client.host.clock, backoff.next_s())
    raise LogFenced(f"log {name!r}: {settings.take_over_attempts} take-overs lost against others; let one writer have it")


def custom_of(name: str, epoch: int) -> dict[str, str]:
    """Custom metadata of a ledger that a log's writer writes."""
    return {"component": "log", "log": name, "epoch": str(epoch)}


async def _fence_and_list(
    client: LedgerClient,
    store: HeadStore,
    settings: LogClientSettings,
    name: str,
    stored: StoredHead,
    owner: Owner,
    opened: LogSegment | None,
    ledger: LedgerAppender | None,
) -> StoredHead | None:
    """Fence the open segment of a head, and list it as closed and the next as open; None if others came first."""
    head = stored.head
    try:
        closed = None if head.open is None else await recover_segment(client, settings, head.settings, head.open)
    except NoSuchLedger:
        await delete_unused(client, ledger)
        # Another take-over may have found the segment empty and deleted it since the list was read.
        if (await store.read(name)).version == stored.version:
            raise
        return None
    except TriplicateError:
        await delete_unused(client, ledger)
        raise
    if opened is not None:
        opened = replace(opened, first_offset=head.closed_end if closed is None else closed.end_offset)
    change = head_changes.take_over(head, closed, opened, owner, store.limits)
    try:
        return await store.commit(name, stored, change)
    except BadVersion:
        await discard(client, store, name, ledger)
        return None
    except ConnectionLost:
        current = await store.read(name)
        # If it is not ours it may have been. A ledger that the list knows belongs to the list; the sweep finds the others.
        return current if current.head.owner == change.head.owner else None


class PublishSource(Protocol):
    """What publishers ask the writer of a log to list at its rolls."""

    async def follow(self, roll: Callable[[], Awaitable[None]], /) -> None: ...

    async def admit(self, stored: StoredHead, first_offset: int, /) -> tuple[Sequence[LogSegment], Sequence[TreeOperation]]: ...

    def drop(self) -> bool: ...


class SegmentTransitions:
    """What a writer asks of its log's head.

    Args:
        admissions: None where the writer lists nothing for publishers.
    """

    def __init__(
        self,
        name: str,
        client: LedgerClient,
        store: HeadStore,
        settings: LogClientSettings,
        head: Head,
        admissions: PublishSource | None = None,
    ) -> None:
        self.name = name
        self._admissions = admissions
        self.client = client
        self.log_id = head.log_id
        self._store = store
        self._settings = settings
        self._log = head.settings
        self._next = LedgerAllocator(client, settings, head.settings, custom_of(name, head.epoch))

    async def retry(self, once: Callable[[bool], Awaitable[None]], *, broken: bool) -> None:
        """Run a change of segments until it succeeds, for a limited time. `once` is told whether the segment must be recovered.

        Raises:
            LogFenced, LedgerFenced: somebody else has the log. OutcomeUnknown: the time is up.
        """
        clock = self.client.host.clock
        deadline = clock.monotonic() + self._settings.repair_timeout_s
        backoff = self._store.backoff()
        while True:
            try:
                await once(broken)
            except (UsageError, LedgerFenced, LogError, SessionExpired):
                raise
            except TriplicateError as error:
                self.client.host.trace("log.roll_failed", log=self.name, error=repr(error))
                if clock.monotonic() >= deadline:
                    raise OutcomeUnknown(
                        f"log {self.name!r}: no way past a broken segment in {self._settings.repair_timeout_s:g} s: {error}"
                    ) from error
            else:
                return
            broken = True
            await sleep(clock, backoff.next_s())

    async def recover(self, segment: LogSegment) -> LogSegment:
        """Fence, close and count a segment of this log."""
        return await recover_segment(self.client, self._settings, self._log, segment)

    def mark_degraded(self, closed: LogSegment, ledger: LedgerAppender) -> LogSegment:
        """A closed segment as the head lists it: entries may lack copies where its ledger ever went on without a bookie."""
        if not ledger.has_missed_bookies or closed.reduced is not None:
            return closed
        return replace(closed, reduced=degraded_quorums(self._log))

    @property
    def spare(self) -> SpareLedger | None:
        """The next ledger, if there is one."""
        return self._next.spare

    async def prepare(self, epoch: int, *, full: bool) -> None:
        """Have a next ledger, and find that the metadata answer and the log is still this writer's.

        Args:
            full: only a ledger with all copies.

        Raises:
            LogFenced: the epoch is past. NotEnoughBookies, and what else creation raises: the present segment goes on.
        """
        await self._next.prepare(full=full)
        head = (await self._store.read(self.name)).head
        # A server that is behind may show an earlier epoch, never a later one.
        if head.epoch > epoch:
            raise LogFenced(f"log {self.name!r} was taken over (epoch {head.epoch}) from the writer of epoch {epoch}")

    async def have_next(self) -> None:
        """Have a next ledger, with as many copies as can be."""
        if self._next.spare is None:
            await self._next.prepare(full=False)

    async def drop_next(self) -> None:
        """Delete the next ledger: it is not needed any more."""
        await self._next.aclose()

    async def next_segment(self, closed: LogSegment, epoch: int, owner: Owner) -> tuple[LedgerAppender, LogSegment]:
        """List a closed segment and, as the one after it, the next ledger. `have_next` came before.

        What publishers asked for stands between the two, so the next segment may begin after the end of the closed one.

        Raises:
            LogFenced: the epoch is past.
        """
        spare = self._next.collect()
        assert spare is not None, "a segment is closed when the next ledger is there"
        ledger = spare.ledger
        opened = LogSegment(ledger.ledger_id, closed.end_offset, reduced=spare.reduced)
        try:
            listed = await self._replace_open(closed, opened, epoch, owner)
        except LogError:
            await discard(self.client, self._store, self.name, ledger)
            raise
        except BaseException:
            # The list has it or not: the next attempt finds out, and will not use it.
            ledger.abandon()
            raise
        assert listed is not None, "the change lists an open segment"
        return ledger, listed

    @fault_point("log.segment_header")
    async def begin(self, ledger: LedgerAppender, header: bytes) -> None:
        """Write the header of a segment and wait for it. A ledger that does not take it is given up."""
        try:
            await ledger.append(header)
        except BaseException:
            ledger.abandon()
            raise

    async def leave(self, closed: LogSegment, epoch: int, owner: Owner) -> None:
        """List the closed segment and none after it. Raises LogFenced."""
        await self._replace_open(closed, None, epoch, owner)
        await self.tidy()

    @fault_point("log.roll")
    async def _replace_open(self, closed: LogSegment, opened: LogSegment | None, epoch: int, owner: Owner) -> LogSegment | None:
        """List a closed segment, what publishers asked for, and the next segment; returns the next as it is listed."""

        async def decide(stored: StoredHead) -> HeadDecision | None:
            head = stored.head
            if head.epoch != epoch or head.owner != owner:
                by = head.owner.name if head.owner is not None else "nobody"
                raise LogFenced(f"log {self.name!r} was taken over from {owner.name!r} (epoch {epoch}) by {by!r} (epoch {head.epoch})")
            if (head.open.ledger_id if head.open else None) == (opened.ledger_id if opened else None):
                return None
            closing = closed
            if head.open is not None and head.open.ledger_id != closed.ledger_id:
                # An earlier attempt of ours was applied after all; its segment was never used.
                closing = await self.recover(head.open)
            if opened is None:
                return head_changes.roll(head, closing, None, self._store.token(), self._store.limits), ()
            published, extra = await self._admit(stored, closing.end_offset)
            following = replace(opened, first_offset=closing.end_offset + sum(segment.records for segment in published))
            return head_changes.roll(head, closing, following, self._store.token(), self._store.limits, published), extra

        try:
            stored = await self._store.change(self.name, decide)
        except LedgerVanished:
            if self._admissions is None or not self._admissions.drop():
                raise
            stored = await self._store.change(self.name, decide)
        return stored.head.open

    async def _admit(self, stored: StoredHead, first_offset: int) -> tuple[Sequence[LogSegment], Sequence[TreeOperation]]:
        return ((), ()) if self._admissions is None else await self._admissions.admit(stored, first_offset)

    async def follow_requests(self, roll: Callable[[], Awaitable[None]]) -> None:
        """Roll when publishers ask for it, for as long as the log is there.

        Args:
            roll: has the writer roll, and returns when it has.
        """
        if self._admissions is not None:
            await self._admissions.follow(roll)

    async def raise_lost(self, segment: LogSegment, error: TriplicateError) -> None:
        """Raise NoSuchLedger if the ledger of a segment is gone that the log still has open; return for every other error."""
        if not isinstance(error, NoSuchLedger):
            return
        try:
            head = (await self._store.read(self.name)).head
        except NoSuchLog:
            return
        if head.open is not None and head.open.ledger_id == segment.ledger_id:
            raise NoSuchLedger(
                f"log {self.name!r}: ledger {segment.ledger_id} is gone, and with it the records from offset {segment.first_offset} on; "
                f"`triplicate log repair {self.name}` says whether it can be brought back"
            ) from error

    async def tidy(self) -> None:
        """Apply retention and delete what is marked for deletion. What fails is left to the next time."""
        try:
            await tidy(self.client, self._store, self.name)
        except TriplicateError as error:
            self.client.host.trace("log.tidy_failed", log=self.name, error=repr(error))

    async def keep_ownership(self, owner: Owner) -> None:
        """Stay visible as the log's owner for as long as the log is ours. For messages only, so an error ends no writer."""
        while True:
            try:
                await keep(self._store, self.name, owner)
            except (SessionExpired, NoSuchLog):
                return
            except TriplicateError as error:
                self.client.host.trace("log.owner_not_kept", log=self.name, error=repr(error))
                await sleep(self.client.host.clock, OWNER_RETRY_S)
            else:
                return

    async def release(self, owner: Owner) -> None:
        """Give up ownership. If the store cannot be reached now, the end of the session does it."""
        try:
            await release(self._store, self.name, owner)
        except TriplicateError as error:
            self.client.host.trace("log.release_failed", log=self.name, error=repr(error))
