"""All logs of a cluster: the entry point to writers, readers, publishing and truncation."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict

from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.errors import (
    ArgumentError,
    CorruptionError,
    FormatError,
    LedgerError,
    LogKeyMissing,
    NotEnoughBookies,
    TriplicateError,
)
from triplicate.ledger import check_quorums
from triplicate.log.core import head_changes
from triplicate.log.core.alteration import alter_settings, altered_settings
from triplicate.log.core.encryption import ENTRIES, EncryptionBlock, KeySource, check_key_id, derive_cipher, require_key
from triplicate.log.core.head import USER, Head, LogSegment, Owner, PublisherState, Purpose, check_text
from triplicate.log.core.head_changes import DEFAULT_LIMITS, PageLimits
from triplicate.log.core.positions import EARLIEST, LATEST, OFFSET_MAX, Position, check_offset
from triplicate.log.core.purposes import check_purpose, check_retention
from triplicate.log.core.quorums import full_quorums, placeable_copies, quorums_for
from triplicate.log.publishing import joining, publication, publishers
from triplicate.log.publishing.joining import JoinResult
from triplicate.log.publishing.own_batches import OwnBatches
from triplicate.log.publishing.publication import PublishResult
from triplicate.log.publishing.request_server import RequestServer
from triplicate.log.publishing.staging import StagedLedger, StagingOrigin, StagingWriter
from triplicate.log.readable_logs import ReadableLogs
from triplicate.log.reading.backward_reader import BackwardReader
from triplicate.log.reading.log_consumer import LogConsumer
from triplicate.log.reading.log_record import LogRecord
from triplicate.log.reading.record_reader import LogRecords
from triplicate.log.store.head_store import HeadDecision, StoredHead
from triplicate.log.store.ledger_ports import LedgerClient
from triplicate.log.store.log_encryption import staging_mark
from triplicate.log.store.log_metrics import LogMetrics
from triplicate.log.store.ownership import await_no_owner, claim, release
from triplicate.log.store.segments import create_segment, machines_of, password_of
from triplicate.log.upkeep import ledger_use, orphans, repair, truncation
from triplicate.log.upkeep.ledger_use import LedgerUse
from triplicate.log.upkeep.log_snapshots import LogSnapshots
from triplicate.log.upkeep.repair import Examination
from triplicate.log.upkeep.rewriter import Rewriter, RewriteResult
from triplicate.log.writing.log_producer import LogProducer
from triplicate.log.writing.log_writer import LogWriter
from triplicate.log.writing.segment_transitions import PublishSource, SegmentTransitions, take_over

TIDIED_LEAST = 64
"""A publish lets retention remove this number of segments, or twice as many as it published if that is more. It does not wait for a
backlog, and no backlog grows."""
_PROBE = EncryptionBlock("probe", bytes(16), 0, 0, 0, 0, 0)
"""A cipher is derived once before a log demands a key, so that a missing package is found then."""


class Logs(ReadableLogs):
    """Named logs over one client. Holds no connection of its own; close the client when done.

    Args:
        client: a `triplicate.client.Client`, whose registry also holds the metrics of logs.
        settings: how this process writes and reads logs.
        limits: the number of segments that a metadata node lists; other values are for tests.
        keys: keys of encrypted logs; None: those of the file that the settings name.
    """

    def __init__(
        self,
        client: LedgerClient,
        settings: LogClientSettings | None = None,
        limits: PageLimits = DEFAULT_LIMITS,
        *,
        keys: KeySource | None = None,
    ) -> None:
        super().__init__(client, settings, limits, keys=keys)
        self._acting_for = USER

    def __getitem__(self, name: str) -> Log:
        """One log by name, for programs that read and write records. Nothing is read yet."""
        return Log(name, self)

    def acting_for(self, purpose: Purpose) -> Logs:
        """The same logs for a program that acts for a database, a key-value store or a pipeline, and may change its logs.

        Writing, truncation, retention, staging, publishing and deletion raise LogReserved for logs with another purpose. Reading is not
        restricted.
        """
        logs = copy.copy(self)
        logs._acting_for = purpose
        return logs

    async def _admit(self, name: str) -> Head:
        """The head of a log that this program may change. Raises NoSuchLog, LogReserved."""
        head = (await self._store.read(name)).head
        check_purpose(name, head, self._acting_for)
        return head

    async def create(
        self,
        name: str,
        settings: LogSettings | None = None,
        *,
        purpose: Purpose = USER,
        key_id: str = "",
        first_offset: int = 0,
        epoch: int = 0,
    ) -> Head:
        """Create an empty log.

        Args:
            first_offset, epoch: where it goes on from the log of a state machine that was copied. It looks as if it had been truncated at
                this offset after this epoch, so replicas load the snapshot that is listed with it.
            purpose: the database, key-value store or pipeline that the log belongs to, if any.
            key_id: the key under which its records are encrypted, which this process has; empty: they are not encrypted, now and later.

        Raises:
            LogKeyMissing, ConfigError: the key cannot be had.
            LogExists: the name is in use. ArgumentError: it is no valid name, a setting, the first offset or the epoch is out of its
            bounds, the quorums contradict one another, or retention is configured for a log that is truncated behind snapshots.
        """
        settings = LogSettings() if settings is None else settings
        check_quorums(settings.ensemble_size, settings.write_quorum, settings.ack_quorum)
        settings = altered_settings(LogSettings(), asdict(settings))
        if not 0 <= check_offset(first_offset) <= OFFSET_MAX or type(epoch) is not int or epoch < 0:
            raise ArgumentError(f"a log cannot begin at offset {first_offset} after epoch {epoch!r}: offsets are from 0 to {OFFSET_MAX}")
        check_text("the name of the log's purpose", purpose.name)
        check_retention(name, settings, purpose)
        self._check_key(name, key_id)
        stored = await self._store.create(name, settings, purpose, key_id, first_offset=first_offset, epoch=epoch)
        return stored.head

    def _check_key(self, name: str, key_id: str) -> None:
        """Check a key that a log is about to demand. Raises ArgumentError, LogKeyMissing, ConfigError."""
        if key_id:
            derive_cipher(require_key(self._encryption.keys, name, check_key_id(key_id)), ENTRIES, "", _PROBE)

    async def rotate_key(self, name: str, key_id: str | None = None) -> Head:
        """Let the records of an encrypted log be encrypted under another key from the writer's next segment on.

        Records that the log has stay as they are, and their keys are needed as long as the records are. Give the key to every process that
        writes or reads the log first. A living writer without it goes on with the key that it has; readers without it stop at its first
        record.

        Args:
            key_id: None: the newest of this process.

        Returns:
            The changed head.

        Raises:
            NoSuchLog, LogReserved. ArgumentError: the log is not encrypted. LogKeyMissing, ConfigError: this process has no such key.
        """
        head = await self._admit(name)
        chosen = key_id if key_id is not None else self._encryption.keys.newest()
        if chosen is None:
            raise LogKeyMissing(f"log {name!r}: there is no key in {self._encryption.keys.place}")
        self._check_key(name, chosen)

        async def decide(stored: StoredHead) -> HeadDecision | None:
            return None if stored.head.key_id == chosen else (head_changes.rotate_key(stored.head, chosen, self._store.token()), ())

        return (await self._store.change(name, decide, log_id=head.log_id)).head

    async def delete(self, name: str, *, force: bool = False) -> None:
        """Delete a log and all its ledgers. It can be repeated after an interruption.

        Raises:
            NoSuchLog: it does not exist. LogOwned: a writer is alive, and `force` is False. LogReserved: it has another purpose.
        """
        head = (await self._store.read_deleted(name)).head
        check_purpose(name, head, self._acting_for)
        await truncation.delete_log(self.client, self._store, name, head.log_id, force=force)

    async def alter(self, name: str, changes: Mapping[str, int | float | str]) -> Head:
        """Change settings of a log. Retention is applied by them from now on; a living writer uses the others from its next segment on.

        Records that the log has stay where they are. Segments with fewer copies than the new settings ask for are marked, and
        `raise_copies`, or the janitor, makes the others.

        Args:
            changes: new values by names of `LogSettings`.

        Returns:
            The changed head.

        Raises:
            NoSuchLog, LogReserved. ArgumentError: an unknown setting, a value out of its bounds, quorums that contradict one another, or
            retention for a log that is truncated behind snapshots. Nothing was changed.
        """
        log_id = (await self._admit(name)).log_id

        async def decide(stored: StoredHead) -> HeadDecision | None:
            head = stored.head
            settings = altered_settings(head.settings, changes)
            check_quorums(settings.ensemble_size, settings.write_quorum, settings.ack_quorum)
            check_retention(name, settings, head.purpose)
            if settings == head.settings:
                return None
            pages = await self._store.pages(name, head) if full_quorums(settings) != full_quorums(head.settings) else {}
            return alter_settings(head, settings, pages, self._store.token()), ()

        return (await self._store.change(name, decide, log_id=log_id)).head

    async def writer(self, name: str, *, owner: str = "", take_over: bool = True) -> LogWriter:
        """Become the writer of a log. Everything acknowledged before is kept, and earlier writers are fenced.

        Args:
            owner: name of this writer, for messages; empty: that of the client's host.
            take_over: False: raise LogOwned while another writer is alive.

        Raises:
            NoSuchLog, LogReserved, LogOwned, LogFenced (lost every race against other take-overs), NotEnoughBookies, RecoveryFailed.
            LogKeyMissing, ConfigError: the log is encrypted, and its key cannot be had; the present writer was not disturbed.
        """
        me = Owner(check_text("the owner's name", self._own_name(owner)), self._store.token())
        head = await self._admit(name)
        self._encryption.check(name, head)
        await claim(self._store, name, head.log_id, me, take_over=take_over)
        try:
            return await self._take_over(name, head.log_id, me)
        except BaseException:
            await release(self._store, name, me)
            raise

    async def producer(self, name: str, producer: str, *, epoch: int = 0, owner: str = "", take_over: bool = True) -> LogProducer:
        """Become the writer of a log for one producer that numbers its records: ``async with await logs.producer("flights", "orders-1")``.

        Several producers share one writer by `LogWriter.producer`. Arguments and errors as there and for `writer`.
        """
        writer = await self.writer(name, owner=owner or producer, take_over=take_over)
        try:
            return (await writer.producer(producer, epoch=epoch)).owning()
        except BaseException:
            await writer.abandon()
            raise

    async def _take_over(self, name: str, log_id: str, me: Owner) -> LogWriter:
        taken = await take_over(self.client, self._store, self.settings, name, log_id, me, open_next=True)
        head, ledger = taken.head, taken.ledger
        assert ledger is not None, "a take-over for writing opens a segment"
        self.client.host.trace("log.taken_over", log=name, epoch=head.epoch, owner=me.name, ledger=ledger.ledger_id, first=head.closed_end)
        metrics = LogMetrics(self._metrics, name)
        metrics.take_overs.inc()
        source: PublishSource
        if publication.serves_publishers(head):
            source = RequestServer(self.client, self._store, self.settings, name, log_id)
        else:
            source = OwnBatches(self.client, self._store, self.settings, self._encryption, name, head.epoch)
        transitions = SegmentTransitions(name, self.client, self._store, self.settings, head, source, self._encryption, taken.producers)
        return await LogWriter.open(transitions, self.settings, metrics, head, me, ledger)

    async def truncate(self, name: str, offset: int) -> int:
        """Remove the records before an offset; whole segments before it are deleted. Returns the first readable offset.

        Raises:
            NoSuchLog, LogReserved. ArgumentError: beyond the end.
        """
        log_id = (await self._admit(name)).log_id
        return await truncation.truncate(self.client, self._store, name, offset, await self.end_offset(name), log_id=log_id)

    async def retain(self, name: str) -> None:
        """Apply the log's retention settings now; writers do it whenever they roll. Raises NoSuchLog, LogReserved."""
        await self._admit(name)
        await truncation.tidy(self.client, self._store, name)

    def snapshots(self, name: str) -> LogSnapshots:
        """The snapshots of the state machine that a log feeds."""
        return LogSnapshots(name, self.client, self._store, self.settings, self._encryption)

    async def staging(self, origin: StagingOrigin) -> StagingWriter:
        """Create a staging ledger for the log named in `origin`, with that log's quorums and compression. While bookies are short it has
        fewer copies, like the segments of a writer.

        Raises:
            NoSuchLog, LogReserved, NotEnoughBookies. LogKeyMissing, ConfigError: the log is encrypted, and its key cannot be had.
        """
        head = await self._admit(origin.log)
        self._encryption.check(origin.log, head)
        ledger, _ = await create_segment(self.client, self.settings, head.settings, {**origin.custom(), **staging_mark(head)})
        encryptor = self._encryption.of_staging(origin.log, head, ledger.ledger_id)
        return StagingWriter(self.client, self.settings, ledger, head.settings.compression, encryptor)

    async def join_staged(self, origin: StagingOrigin, ledgers: Sequence[StagedLedger], target_bytes: int) -> JoinResult:
        """Copy small neighbouring staging ledgers of a batch into ledgers of up to `target_bytes`; at most 64 MiB are copied.

        Nothing is published or deleted: publish `ledgers` of the result, then discard `replaced`.

        Raises:
            NoSuchLog, LogReserved. CorruptionError: a ledger does not hold what it should. Also the errors of reading and writing
            ledgers. The new ledgers are deleted then.
        """
        head = await self._admit(origin.log)
        return await joining.join(self.client, self.settings, head, origin, ledgers, target_bytes)

    async def publish(
        self,
        name: str,
        ledgers: Sequence[int | StagedLedger],
        *,
        application: str | None = None,
        batch: int | None = None,
        publisher: str = "publisher",
        wait_s: float | None = None,
    ) -> PublishResult:
        """Make sealed staging ledgers segments of a log, in the order given: all or none, and each batch of an application once.

        While the log has a living writer, the writer is requested to list them at a roll, between two of its records.

        Args:
            ledgers: ids, or results of `StagingWriter.seal`, which need not be read. Ledgers without records are left to the sweep.
            application, batch: exactly-once: a batch that is not greater than the application's last one adds nothing.
            publisher: name of this publisher, for messages, if the log must be taken over from a dead writer first.
            wait_s: how long to wait for a living writer; None: the setting `publish_wait_s`.

        Raises:
            LogOwned: a writer is alive and did not list them in time; the message names it, and nothing was published.
            ArgumentError: a ledger is not sealed, not staging for this log, or a segment already.
            NoSuchLedger: a ledger is gone; this call published nothing. If an earlier call without application published it, it may have
            been merged since.
            OutcomeUnknown: the same, without application, after an attempt of this call that may have succeeded.
            Unauthorized: the ledgers have another password than those of the log.
            NoSuchLog, LogReserved.
        """
        log_id = (await self._admit(name)).log_id
        published = await publication.publish(
            self.client,
            self._store,
            self.settings,
            name,
            ledgers,
            log_id=log_id,
            application=application,
            batch=batch,
            publisher=publisher,
            wait_s=wait_s if wait_s is not None else self.settings.publish_wait_s,
        )
        if not published.already:
            LogMetrics(self._metrics, name).published.inc(len(ledgers))
            await self._tidy(name, max(TIDIED_LEAST, 2 * len(ledgers)))
        return published

    async def check_publish(self, name: str, *, application: str | None = None, batch: int | None = None) -> PublisherState | None:
        """Check before staging whether a publish would be refused. `publish` checks again.

        Returns:
            The application's last publish if its batch is not less than this one, so that a publish would add nothing; otherwise None.

        Raises:
            LogKeyMissing, ConfigError: the log is encrypted, and its key cannot be had.
            NoSuchLog, LogReserved. LogOwned: a writer is alive that serves no publishers. PublisherForgotten. NotEnoughBookies: no ledger
            could be staged. Unauthorized: the log's ledgers have another password than the settings. ArgumentError: the application's name
            is too long.
        """
        if application is not None:
            check_text("the application's name", application)
        head = await self._admit(name)
        self._encryption.check(name, head)
        if head.open is not None and not publication.serves_publishers(head):
            await await_no_owner(self._store, name)
        await self.require_bookies(name, head.settings)
        await publication.check_password(self._store, name, head, [password_of(self.settings)])
        if application is None or batch is None:
            return None
        last = await publishers.read_publisher(self._store, name, application)
        if last is None:
            await publishers.check_not_forgotten(self._store, name, application, batch)
        return last.state if last is not None and publication.is_old_batch(last.state, batch) else None

    async def require_bookies(self, name: str, settings: LogSettings) -> None:
        """Check that the records of a log with these settings can be stored now.

        Raises:
            NotEnoughBookies: too few bookies are writable; the message names them, and those that are read-only.
        """
        bookies = self.client.metadata.bookies
        writable = await bookies.writable()
        machines = machines_of(writable)
        if quorums_for(settings, placeable_copies(machines)) is None:
            there = f"there are {len(writable)} ({', '.join(writable) or 'none'}) on {len(set(machines))} machines"
            which, note = "more" if writable else "the cluster's", await bookies.read_only_note()
            raise NotEnoughBookies(f"log {name!r} needs {settings.ack_quorum} writable bookies, {there}; start {which} bookies{note}")

    async def _tidy(self, name: str, most: int) -> None:
        """Apply retention to a log without a writer, whose rolls would do it. Excess work and failures are left to the janitor."""
        try:
            await truncation.tidy(self.client, self._store, name, most=most)
        except TriplicateError as error:
            self.client.host.trace("log.tidy_failed", log=name, error=repr(error))

    async def last_batch(self, name: str, application: str) -> PublisherState | None:
        """The last publish of an application, or None."""
        await self._store.read(name)
        last = await publishers.read_publisher(self._store, name, application)
        return last.state if last is not None else None

    async def is_published(self, name: str, ledger_ids: Sequence[int]) -> bool:
        """Whether all given ledgers are segments of a log. Call it before any of them is deleted."""
        return await publication.is_published(self._store, name, ledger_ids)

    async def discard(self, name: str, ledger_ids: Sequence[int]) -> list[int]:
        """Delete staging ledgers, except segments of the log and ledgers of other logs. Returns the ids deleted.

        For aborts, which may follow a commit that seemed to fail and was applied.
        """
        return await orphans.discard_unpublished(self.client, self._store, name, ledger_ids)

    async def raise_copies(self, name: str, *, limit: int | None = None) -> RewriteResult:
        """Rewrite closed segments that lack copies into ledgers with all copies, at a limited rate.

        It can be repeated after an interruption. The log may be read and written meanwhile. Segments are left unchanged while too few
        bookies are writable for all copies.

        Args:
            limit: limit of the segments rewritten.

        Raises:
            NoSuchLog. CorruptionError: a ledger does not hold what the list says. Also the errors of reading and writing ledgers. The other
            segments were rewritten before.
        """
        rewriter = self._rewriter(name)
        return await self._rewrite(name, await rewriter.reduced(), rewriter, limit)

    async def merge_small(self, name: str, *, limit: int | None = None, least: int = 2, every: bool = True) -> RewriteResult:
        """Merge small neighbouring closed segments as configured by the settings `merge_…`, at a limited rate. See `raise_copies`.

        Segments of different epochs are not merged, since the ledger gives the epoch of its entries.

        Args:
            limit: limit of the new segments.
            least: the least number of neighbours that are merged.
            every: also merge if one segment holds more than half of the bytes.
        """
        rewriter = self._rewriter(name)
        return await self._rewrite(name, await rewriter.small(limit=limit, least=least, every=every), rewriter)

    async def _rewrite(
        self, name: str, runs: Sequence[tuple[LogSegment, ...]], rewriter: Rewriter, limit: int | None = None
    ) -> RewriteResult:
        """Rewrite at most `limit` runs, counting failed ones. A failed run does not stop the next."""
        done, failures = RewriteResult(), list[TriplicateError]()
        most = limit if limit is not None else len(runs)
        for run in runs:
            if done.ledgers + done.postponed >= most or len(failures) >= most:
                break
            try:
                one = await rewriter.rewrite(run)
            except (LedgerError, CorruptionError, FormatError) as error:
                self.client.host.trace("log.rewrite_failed", log=name, first=run[0].first_offset, error=repr(error))
                failures.append(error)
                continue
            LogMetrics(self._metrics, name).rewritten.inc(one.segments)
            done += one
        if failures:
            raise failures[0]
        return done

    async def rewritable(self, name: str, *, merge: bool) -> list[tuple[LogSegment, ...]]:
        """The runs that `raise_copies` or `merge_small` would rewrite; each becomes one segment. Raises NoSuchLog."""
        rewriter = self._rewriter(name)
        return await (rewriter.small() if merge else rewriter.reduced())

    def _rewriter(self, name: str) -> Rewriter:
        return Rewriter(self.client, self._store, self.settings, name)

    async def sweep(self, name: str, *, dry_run: bool = False) -> dict[str, int]:
        """Apply retention, and delete marked segments, old pages, idle publishers and orphaned ledgers.

        Args:
            dry_run: change nothing, and count what would be deleted. Retention is not counted.

        Returns:
            Numbers by kind: ``segments``, ``pages``, ``publishers``, ``ledgers``.
        """
        swept = await self.sweep_lists(name, dry_run=dry_run)
        return {**swept, "ledgers": len(await self._sweep_ledgers(name, dry_run))}

    async def sweep_lists(self, name: str, *, dry_run: bool = False) -> dict[str, int]:
        """As `sweep`, without the search for orphaned ledgers, which reads all ledgers of the cluster."""
        return {
            "segments": await truncation.sweep_segments(self.client, self._store, name, dry_run=dry_run),
            "pages": await truncation.sweep_pages(self._store, name, dry_run=dry_run),
            "publishers": await publishers.sweep_publishers(self._store, name, dry_run=dry_run),
        }

    async def sweep_orphans(self, *, dry_run: bool = False) -> list[int]:
        """Delete unlisted ledgers of all logs that are older than the grace time. Returns their ids."""
        return await self._sweep_ledgers(None, dry_run)

    async def ledger_uses(self, name: str) -> dict[int, LedgerUse]:
        """The ledgers that a log needs, by id. Raises NoSuchLog; FormatError, CorruptionError: its lists cannot be read."""
        return await ledger_use.uses_of(self._store, name)

    async def require_unlisted(self, ledger_id: int) -> None:
        """Check that no log needs a ledger now. Raises LedgerListed, NoSuchLedger; FormatError, CorruptionError: a list cannot be read."""
        await ledger_use.require_unlisted(self._store, ledger_id)

    async def delete_ledger(self, ledger_id: int) -> None:
        """Delete a ledger by its id unless a log needs it. Raises as `require_unlisted`."""
        await ledger_use.delete_ledger(self.client, self._store, ledger_id)

    async def examine(self, name: str) -> Examination:
        """Check which ledgers of a log are gone, and whether they can be restored. Raises NoSuchLog."""
        return await repair.examine(self.client, self._store, name)

    async def repair(self, name: str, *, end: int | None = None, by: str = "repair") -> Examination:
        """Give up the ledgers of a log that cannot be restored, and let the log continue. Returns what is missing afterwards.

        Their offsets remain a hole, which readers report as `OffsetGap`. They are not used again.

        Args:
            end: where the log continues after a lost open segment; None: beyond every offset that the segment may have used.
            by: name of the operator, for messages.

        Raises:
            NoSuchLog, LogReserved, LogOwned. ArgumentError: a ledger can still be restored, or `end` lies before the open segment.
        """
        await self._admit(name)
        return await repair.repair(self.client, self._store, name, end=end, by=by)

    async def _sweep_ledgers(self, name: str | None, dry_run: bool) -> list[int]:
        return await orphans.Sweep(self.client, self._store, self.settings, name).run(dry_run=dry_run)


class Log:
    """Made by ``logs["flights"]``. ``async for record in log`` delivers all records from the first on, and then new ones."""

    def __init__(self, name: str, logs: Logs) -> None:
        self.name = name
        self._logs = logs

    def __aiter__(self) -> AsyncIterator[LogRecord]:
        return self.records().__aiter__()

    def records(self, from_: Position = EARLIEST, *, to: Position | None = None) -> LogRecords:
        """See `Logs.records`."""
        return self._logs.records(self.name, from_, to=to)

    def backwards(self, from_: Position = LATEST, *, skip_lost: bool = False) -> BackwardReader:
        """See `Logs.backwards`."""
        return self._logs.backwards(self.name, from_, skip_lost=skip_lost)

    async def last_record(self) -> LogRecord | None:
        """See `Logs.last_record`."""
        return await self._logs.last_record(self.name)

    async def writer(self, *, owner: str = "", take_over: bool = True) -> LogWriter:
        """See `Logs.writer`."""
        return await self._logs.writer(self.name, owner=owner, take_over=take_over)

    async def producer(self, producer: str, *, epoch: int = 0, owner: str = "", take_over: bool = True) -> LogProducer:
        """See `Logs.producer`."""
        return await self._logs.producer(self.name, producer, epoch=epoch, owner=owner, take_over=take_over)

    async def consumer(
        self, consumer: str, *, start: Position = EARLIEST, save_interval_s: float | None = None, skip_truncated: bool = False
    ) -> LogConsumer:
        """See `Logs.consumer`."""
        return await self._logs.consumer(self.name, consumer, start=start, save_interval_s=save_interval_s, skip_truncated=skip_truncated)

    def __repr__(self) -> str:
        return f"<Log {self.name}>"
