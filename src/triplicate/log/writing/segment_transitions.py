"""Transitions from one segment to the next: take-overs by a new writer, rolls and leaving by the same one.

A take-over reads the head at version v, creates a ledger, recovers (fences) the segment that is not closed, counts its records, and changes
the head by one compare-and-set on version v, with a token of its own. If that fails, the head has changed since: the new ledger is deleted
and the take-over starts again, because only segments of the head that was read are fenced. The ledger is created before the fence:
otherwise a take-over that cannot continue would end a writer that can.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.errors import (
    BadVersion,
    ConfigError,
    ConnectionLost,
    LedgerFenced,
    LedgerVanished,
    LogError,
    LogFenced,
    LogKeyMissing,
    NoSuchLedger,
    NoSuchLog,
    OutcomeUnknown,
    SessionExpired,
    TriplicateError,
    UsageError,
)
from triplicate.log.core import head_changes
from triplicate.log.core.encrypted_entries import encrypt_entry
from triplicate.log.core.encryption import LedgerEncryptor
from triplicate.log.core.head import Head, LogSegment, Owner
from triplicate.log.core.payload_encoder import encode_control
from triplicate.log.core.producer_table import ProducerState
from triplicate.log.core.quorums import degraded_quorums, full_quorums, reduced_quorums
from triplicate.log.store.head_store import HeadDecision, HeadStore, StoredHead
from triplicate.log.store.ledger_ports import LedgerAppender, LedgerClient
from triplicate.log.store.log_encryption import LogEncryption
from triplicate.log.store.ownership import release, renew
from triplicate.log.store.segments import create_segment, recover_segment
from triplicate.log.upkeep.orphans import discard
from triplicate.log.upkeep.truncation import tidy
from triplicate.log.writing.entry_builder import Producers
from triplicate.log.writing.ledger_allocator import LedgerAllocator, SpareLedger, delete_unused
from triplicate.log.writing.producer_node import change_of_producers, count_producers, create_node, read_producers
from triplicate.metadata import TreeOperation
from triplicate.runtime import fault_point, sleep

OWNER_RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Taken:
    """A log that was taken over.

    Args:
        head: as it was changed.
        producers: what is durable of its producers; None: it has none.
        ledger: of the open segment, or None.
    """

    head: Head
    producers: Sequence[ProducerState] | None
    ledger: LedgerAppender | None


async def take_over(
    client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str, log_id: str, owner: Owner, *, open_next: bool
) -> Taken:
    """Begin a new epoch.

    Args:
        log_id: of the log that is meant.
        open_next: open a segment and return its ledger; otherwise the log is left without an open segment, for publishing.

    Raises:
        LogFenced: every attempt lost against another take-over. Also the errors of recovering and creating ledgers. If the next ledger
        cannot be created, the present writer was not disturbed.
    """
    backoff = store.backoff()
    for _ in range(settings.take_over_attempts):
        if backoff.attempts:
            client.host.trace("log.take_over_lost", log=name, attempts=backoff.attempts)
        stored = await store.read_same(name, log_id)
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
            return taken
        await sleep(client.host.clock, backoff.next_s())
    raise LogFenced(f"log {name!r}: {settings.take_over_attempts} take-overs lost against others; let one writer have it")


def custom_of(name: str, epoch: int) -> dict[str, str]:
    """The custom metadata of a ledger that a log's writer creates."""
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
) -> Taken | None:
    """Fence the open segment of a head, and list it as closed and the next as open. None if another take-over was first."""
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
    change = head_changes.take_over(head, closed, opened, owner, store.token(), store.limits)
    try:
        producers = await _durable_producers(client, store, settings, name, closed)
    except TriplicateError:
        await delete_unused(client, ledger)
        raise
    extra = () if producers is None else (change_of_producers(store, name, producers, change.head.closed_end),)
    try:
        return Taken((await store.commit(name, stored, change, extra)).head, producers, ledger)
    except BadVersion:
        await discard(client, store, name, ledger)
        return None
    except ConnectionLost:
        current = await store.read(name)
        # If this take-over is not listed now, it may have been before. Listed ledgers stay; the sweep of orphans deletes the others.
        return Taken(current.head, producers, ledger) if _lists(current.head, change.head) else None


async def _durable_producers(
    client: LedgerClient, store: HeadStore, settings: LogClientSettings, name: str, closed: LogSegment | None
) -> Sequence[ProducerState] | None:
    """The durable states of the producers of a log, with the segment that was recovered; None for a log without producers.

    Their node is read after the segment was fenced: its writer may have created it for the first record of a producer.
    """
    saved = await read_producers(store, name, closed)
    if saved is None or closed is None:
        return saved
    return await count_producers(client, settings, closed.ledger_id, closed.first_offset, saved)


def _lists(current: Head, changed: Head) -> bool:
    """Whether a head shows that a take-over was applied and none has followed. An earlier attempt of its owner listed another ledger."""
    ledger_id = None if changed.open is None else changed.open.ledger_id
    return current.owner == changed.owner and ledger_id == (None if current.open is None else current.open.ledger_id)


ListedEntry = tuple[bytes, Sequence[bytes]]
"""Preamble and records of an entry that is listed with others, all or none."""


class PublishSource(Protocol):
    """The source of the segments that a writer lists at its rolls beside its own."""

    async def append(self, entries: AsyncIterable[ListedEntry], /) -> range: ...

    async def follow(self, roll: Callable[[], Awaitable[None]], /) -> None: ...

    async def admit(self, stored: StoredHead, first_offset: int, /) -> tuple[Sequence[LogSegment], Sequence[TreeOperation]]: ...

    def discard_ready(self) -> bool: ...

    def end(self, error: BaseException, /) -> None: ...


class SegmentTransitions:
    """The transitions of one writer: everything that changes its log's head.

    Args:
        publications: the ledgers that it lists at its rolls beside its own.
        encryption: the keys of this process.
        producers: what was durable at the take-over; None: the log has no producers.
    """

    def __init__(
        self,
        name: str,
        client: LedgerClient,
        store: HeadStore,
        settings: LogClientSettings,
        head: Head,
        publications: PublishSource,
        encryption: LogEncryption,
        producers: Sequence[ProducerState] | None,
    ) -> None:
        self.name = name
        self._encryption = encryption
        self._key_id = head.key_id
        """The key that the head demanded when it was read last."""
        self._encryptor: LedgerEncryptor | None = None
        self.publish_source = publications
        self.client = client
        self.log_id = head.log_id
        self._store = store
        self._settings = settings
        self.settings = head.settings
        """The log's settings as they were read last."""
        self.producers = Producers(name, producers or (), int(settings.producer_idle_s * 1_000_000))
        self._has_producers = producers is not None
        """Whether the log has a node of its producers."""
        self._makes_node = asyncio.Lock()
        self._next = LedgerAllocator(client, settings, head.settings, custom_of(name, head.epoch))

    async def keep_producers(self, epoch: int, owner: Owner) -> None:
        """See that what producers append is remembered, before the first of them does. Raises LogFenced."""
        if self._has_producers:
            return
        async with self._makes_node:  # A second creation would take the node for that of a former writer, and empty it.
            if not self._has_producers:
                await create_node(self._store, self.name, self.log_id, epoch, owner)
                self._has_producers = True

    def _counted(self, end_offset: int) -> tuple[TreeOperation, ...]:
        """The change of the producers' node where a segment is closed: what was acknowledged, and nothing that waits."""
        if not self._has_producers:
            return ()
        return (change_of_producers(self._store, self.name, self.producers.durable(), end_offset),)

    async def retry(self, once: Callable[[bool], Awaitable[None]], *, broken: bool) -> None:
        """Retry a change of segments until it succeeds, for a limited time.

        Args:
            once: called with whether the segment must be recovered: as given at first, then true.

        Raises:
            LogFenced, LedgerFenced: another writer has the log. OutcomeUnknown: the time is over.
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
                        f"log {self.name!r}: a broken segment was not replaced within {self._settings.repair_timeout_s:g} s: {error}"
                    ) from error
            else:
                return
            broken = True
            await sleep(clock, backoff.next_s())

    async def recover(self, segment: LogSegment) -> LogSegment:
        """Fence, close and count a segment of this log."""
        return await recover_segment(self.client, self._settings, self.settings, segment)

    def mark_degraded(self, closed: LogSegment, ledger: LedgerAppender) -> LogSegment:
        """A closed segment as the head lists it: entries may lack copies where its ledger ever went on without a bookie."""
        if not ledger.has_missed_bookies or closed.reduced is not None:
            return closed
        return replace(closed, reduced=degraded_quorums(self.settings))

    @property
    def spare(self) -> SpareLedger | None:
        """The next ledger, or None."""
        return self._next.spare

    async def prepare(self, epoch: int, *, full: bool) -> None:
        """Create the next ledger, and check that the metadata answer and the log is still this writer's.

        Args:
            full: only a ledger with all copies.

        Raises:
            LogFenced: the epoch is past. NotEnoughBookies, and other errors of creation: the present segment continues.
        """
        await self._next.prepare(full=full)
        head = (await self._store.read(self.name)).head
        if head.settings != self.settings:
            await self._adopt(head.settings)
            await self._next.prepare(full=full)
        # A server that is behind may show an earlier epoch, never a later one.
        if head.epoch > epoch:
            raise LogFenced(f"log {self.name!r} was taken over (epoch {head.epoch}) from the writer of epoch {epoch}")

    async def _adopt(self, settings: LogSettings) -> None:
        self.settings = settings
        await self._next.adopt(settings)

    async def ensure_next(self) -> None:
        """Create the next ledger unless it exists, with as many copies as possible."""
        if self._next.spare is None:
            await self._next.prepare(full=False)

    async def delete_next(self) -> None:
        """Delete the next ledger, which is no longer needed."""
        await self._next.aclose()

    async def next_segment(self, closed: LogSegment, epoch: int, owner: Owner) -> tuple[LedgerAppender, LogSegment]:
        """List a closed segment, and the next ledger as the open segment. `ensure_next` was called before.

        Segments of publishers may be listed between the two, so the next segment may begin after the end of the closed one.

        Raises:
            LogFenced: the epoch is past.
        """
        spare = self._next.pop()
        assert spare is not None, "a segment is closed when the next ledger is there"
        ledger = spare.ledger
        opened = LogSegment(ledger.ledger_id, closed.end_offset, reduced=spare.reduced)
        try:
            listed = await self._replace_open(closed, opened, epoch, owner)
        except LogError:
            await discard(self.client, self._store, self.name, ledger)
            raise
        except BaseException:
            # The head may list it: the next attempt finds out, and does not use it.
            ledger.abandon()
            raise
        assert listed is not None, "the change lists an open segment"
        return ledger, listed

    def header(self, segment: LogSegment, epoch: int, owner: Owner, wall_time_us: int) -> tuple[bytes, LedgerEncryptor | None]:
        """The header of a segment, and the encryptor of its entries; None where the log is not encrypted.

        Raises:
            LogKeyMissing, ConfigError: this process cannot have the key, and has not encrypted a segment before.
        """
        encryptor, first_offset = self._encryptor_of(segment.ledger_id), segment.first_offset
        encoded = encode_control("segment", {"epoch": epoch, "first_offset": first_offset, "writer": owner.name, "log": self.log_id})
        if encryptor is None:
            return encoded.payload(0, wall_time_us), None
        return encrypt_entry(encryptor, encoded, 0, first_offset, wall_time_us), encryptor

    def _encryptor_of(self, ledger_id: int) -> LedgerEncryptor | None:
        """The encryptor of a segment. A writer that cannot have the key of a rotation goes on with the key before, which is no outage."""
        try:
            encryptor = self._encryption.of_writer(self.name, self.log_id, self._key_id, ledger_id)
        except (LogKeyMissing, ConfigError) as error:
            if self._encryptor is None:
                raise
            self.client.host.trace("log.key_missing", log=self.name, key=self._key_id, used=self._encryptor.key_id, error=str(error))
            encryptor = self._encryption.following(self._encryptor, self.log_id, ledger_id)
        self._encryptor = encryptor
        return encryptor

    @fault_point("log.segment_header")
    async def begin(self, ledger: LedgerAppender, header: bytes) -> None:
        """Write the header of a segment and wait for it. The ledger is abandoned on failure."""
        try:
            await ledger.append(header)
        except BaseException:
            ledger.abandon()
            raise

    async def leave(self, closed: LogSegment, epoch: int, owner: Owner) -> None:
        """List the closed segment without an open one. Raises LogFenced."""
        await self._replace_open(closed, None, epoch, owner)
        await self.tidy()

    @fault_point("log.roll")
    async def _replace_open(self, closed: LogSegment, opened: LogSegment | None, epoch: int, owner: Owner) -> LogSegment | None:
        """List a closed segment, the segments of publishers, and the next segment. Returns the next as it is listed."""

        async def decide(stored: StoredHead) -> HeadDecision | None:
            head = stored.head
            self._key_id = head.key_id
            if head.epoch != epoch or head.owner != owner:
                by = head.owner.name if head.owner is not None else "nobody"
                raise LogFenced(f"log {self.name!r} was taken over from {owner.name!r} (epoch {epoch}) by {by!r} (epoch {head.epoch})")
            if (head.open.ledger_id if head.open else None) == (opened.ledger_id if opened else None):
                return None
            closing = closed
            if head.open is not None and head.open.reduced is not None and closed.reduced is None:
                closing = replace(closed, reduced=head.open.reduced)  # The log asks for more copies since this segment began.
            if head.open is not None and head.open.ledger_id != closed.ledger_id:
                # An earlier attempt of this writer was applied after all. Its segment was never used.
                closing = await self.recover(head.open)
            if opened is None:
                change = head_changes.roll(head, closing, None, self._store.token(), self._store.limits)
                return change, self._counted(closing.end_offset)
            published, extra = await self.publish_source.admit(stored, closing.end_offset)
            following = replace(opened, first_offset=closing.end_offset + sum(segment.records for segment in published))
            if head.settings != self.settings:
                made = opened.reduced if opened.reduced is not None else full_quorums(self.settings)
                following = replace(following, reduced=reduced_quorums(head.settings, made))
            return head_changes.roll(head, closing, following, self._store.token(), self._store.limits, published), (
                *extra,
                *self._counted(following.first_offset),
            )

        try:
            stored = await self._store.change(self.name, decide, log_id=self.log_id)
        except LedgerVanished:
            if not self.publish_source.discard_ready():
                raise
            stored = await self._store.change(self.name, decide, log_id=self.log_id)
        if stored.head.settings != self.settings:
            await self._adopt(stored.head.settings)
        return stored.head.open

    async def raise_lost(self, segment: LogSegment, error: TriplicateError) -> None:
        """Raise NoSuchLedger if the log still lists a segment as open whose ledger is gone. Return for every other error."""
        if not isinstance(error, NoSuchLedger):
            return
        try:
            head = (await self._store.read(self.name)).head
        except NoSuchLog:
            return
        if head.open is not None and head.open.ledger_id == segment.ledger_id:
            raise NoSuchLedger(
                f"log {self.name!r}: ledger {segment.ledger_id} is gone, and with it the records from offset {segment.first_offset} on; "
                f"`triplicate log repair {self.name}` shows whether it can be restored"
            ) from error

    async def tidy(self) -> None:
        """Apply retention and delete segments marked for deletion. Failures are traced and retried at the next call."""
        try:
            await tidy(self.client, self._store, self.name)
        except TriplicateError as error:
            self.client.host.trace("log.tidy_failed", log=self.name, error=repr(error))

    async def renew_ownership(self, owner: Owner) -> None:
        """Keep this writer recorded as the log's owner. The record is for messages only, so an error does not end the writer."""
        while True:
            try:
                await renew(self._store, self.name, self.log_id, owner)
            except (SessionExpired, NoSuchLog):
                return
            except TriplicateError as error:
                self.client.host.trace("log.owner_not_kept", log=self.name, error=repr(error))
                await sleep(self.client.host.clock, OWNER_RETRY_S)
            else:
                return

    async def release(self, owner: Owner) -> None:
        """Delete the record of the owner. If the metadata cannot be reached, it expires with the session."""
        await release(self._store, self.name, owner)
