"""The client: create, open, recover, delete and list ledgers."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType

from triplicate.client.answering_bookies import await_answers
from triplicate.client.bookie_copies import BookieCopies
from triplicate.client.bookie_space import BookieInfo, request_space
from triplicate.client.client_metrics import ClientMetrics
from triplicate.client.cluster_placement import ClusterPlacement
from triplicate.client.connection.authentication import Authenticator, ConnectionAuthenticator
from triplicate.client.connection.bookie_access import BookieAccess
from triplicate.client.connection.pool import ChannelPool
from triplicate.client.context import ClientContext, ExpiringBookies
from triplicate.client.hedged_reads import HedgedReads
from triplicate.client.ledger_recovery import recover_ledger
from triplicate.client.metadata_retry import MetadataRetry
from triplicate.client.near_bookies import NearBookies
from triplicate.client.read.ledger_reader import LedgerReader
from triplicate.client.short_copies import MARK_LIMIT_S, ShortCopies
from triplicate.client.write.adv_writer import AdvLedgerWriter
from triplicate.client.write.departures import DepartureFollower
from triplicate.client.write.ledger_writer import LedgerWriter
from triplicate.client.write.write_handle import WriteHandle
from triplicate.config import ClientSettings, SecuritySettings
from triplicate.errors import (
    ArgumentError,
    BadVersion,
    HandleClosed,
    LedgerClosed,
    LedgerExists,
    MetadataError,
    NotEnoughBookies,
    Unauthorized,
)
from triplicate.ledger import AckDomains, DigestType, EnsembleSegment, LedgerMetadata, LedgerState, check_quorums, choose_ensemble
from triplicate.metadata import ClusterMetadata, TreeOperation, Versioned
from triplicate.runtime import Host, Metrics, TaskScope, timeout_at

TRASH_INTERVAL_S = 60.0
"""Shortest interval between two expirations of the trash by one client that deletes ledgers, in seconds."""
WRITERS_LEAST = 16
"""Writers that a client keeps before it first forgets finished ones."""
CREATE_ATTEMPTS = 16
"""Number of new ids that `create` tries when each of them is in use."""

CREATOR_TOKENS_END = 2**63 - 1
"""Creator tokens are smaller: the metadata keeps them as signed 64-bit numbers."""

DEFAULT_SETTINGS = ClientSettings()
NO_CUSTOM: Mapping[str, bytes] = {}
WRITER_AWAITED: Mapping[str, bytes] = {"writer": b"awaited"}
"""Custom metadata of a ledger whose creator promises not to write it; see `Client.take_up`."""


class Client:
    """One user of a cluster, on one event loop.

    Closing it closes its readers and abandons its writers, whose ledgers stay open until a client recovers them.

    Args:
        host: the ports to the outside.
        metadata: the cluster; the caller closes it after the client.
        metrics: the registry for the client's metrics; None for none.
        authenticate: authenticates the client to bookies, in place of `client.user`; None for the settings.
        security: the certificates of this process, for `client.bookie_tls`; None for none.

    Raises (on creation):
        ConfigError: a setting lacks what it needs, or a file that it names cannot be used.
    """

    def __init__(
        self,
        host: Host,
        metadata: ClusterMetadata,
        settings: ClientSettings = DEFAULT_SETTINGS,
        metrics: Metrics | None = None,
        authenticate: Authenticator | ConnectionAuthenticator | None = None,
        security: SecuritySettings | None = None,
    ) -> None:
        access = BookieAccess.open(host, settings, security, authenticate)
        self.host = host
        self.metadata = metadata
        self.settings = settings
        self.metrics = metrics
        scope = TaskScope(f"client of {host.name}")
        pool = ChannelPool(host, metadata, settings, scope, access)
        own_metrics = ClientMetrics(metrics)
        self.placement = ClusterPlacement(host, metadata, settings, pool, scope, own_metrics)
        """The rules for ensembles."""
        reads = HedgedReads(host, settings, pool, own_metrics)
        self._context = ClientContext(
            host,
            metadata,
            settings,
            scope,
            pool,
            ExpiringBookies(settings.suspect_s),
            own_metrics,
            self.placement,
            reads,
            NearBookies(host, metadata, scope, self.placement, settings.network_location, reads.order),
            ShortCopies(host, metadata, scope),
            access,
        )
        self._waiting_for_domains = own_metrics.waiting_for_domains.add(
            lambda: sum(writer.waiting_for_domains for writer in self._writers.values())
        )
        self._rng = host.entropy.stream("placement")
        self._tokens = host.entropy.stream("metadata.creator_token")
        self._writers: dict[int, WriteHandle] = {}
        self._writers_most = WRITERS_LEAST
        self._departures = DepartureFollower(
            host, metadata, scope, lambda: self._writers.values(), lost_limit_s=settings.lost_bookie_limit_s
        )
        self._readers: dict[int, LedgerReader] = {}
        self._closed = False
        self._process_id = os.getpid()
        self._trash_due = 0.0
        """When to expire the trash again, in seconds of the monotonic clock."""

    @property
    def min_ack_domains(self) -> int:
        """Least number of fault domains in which an entry is acknowledged (`client.placement_min_ack_domains`)."""
        return self.settings.placement_min_ack_domains

    @property
    def add_timeout_s(self) -> float:
        """A bookie that has not answered an add within this time has failed (`client.add_timeout_s`)."""
        return self.settings.add_timeout_s

    async def create(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum: int = 3,
        ack_quorum: int = 2,
        digest_type: DigestType = DigestType.CRC32C,
        password: bytes = b"",
        custom: Mapping[str, bytes] = NO_CUSTOM,
        ledger_id: int | None = None,
        deferred_sync: bool = False,
    ) -> LedgerWriter:
        """Create a ledger and return its writer.

        Args:
            ensemble_size: bookies the ledger is spread over. write_quorum: copies of each entry. ack_quorum: copies on disk before an
                append is acknowledged.
            password: with CRC32C it only labels the ledger, with HMAC it is the key; it is stored in clear in the metadata.
            custom: metadata of the user; ``application``, ``component`` and ``created`` get default values unless given.
            ledger_id: chosen by the caller; None for a new one.
            deferred_sync: bookies acknowledge before they sync, and `LedgerWriter.force` makes durable what was acknowledged. Entries
                that were never forced are not part of the ledger when it is closed. A bookie that fails ends the writer, since the
                ensemble of such a ledger never changes. Uses version 3 of the protocol regardless of `wire`.

        Raises:
            NotEnoughBookies: fewer writable bookies than `ensemble_size`, or no choice of them keeps the rules of placement; the message
                lists them.
            ArgumentError: the sizes are impossible. LedgerExists: `ledger_id` is taken.
            ConnectionLost: the metadata could not be reached within ``metadata_timeout_s``. An empty ledger may exist.
        """
        sizes = (ensemble_size, write_quorum, ack_quorum)
        ledger_id, created, domains = await self._create(sizes, digest_type, password, custom, ledger_id)
        writer = LedgerWriter(self._context, ledger_id, created, domains, deferred_sync=deferred_sync)
        self._register(writer)
        return writer

    async def create_adv(
        self,
        *,
        ensemble_size: int = 3,
        write_quorum: int = 3,
        ack_quorum: int = 2,
        digest_type: DigestType = DigestType.CRC32C,
        password: bytes = b"",
        custom: Mapping[str, bytes] = NO_CUSTOM,
        ledger_id: int | None = None,
        deferred_sync: bool = False,
    ) -> AdvLedgerWriter:
        """Create a ledger whose entry ids the caller chooses, in any order. Arguments and errors as for `create`.

        Readers see a ledger like any other: confirmed entries have no gaps.
        """
        sizes = (ensemble_size, write_quorum, ack_quorum)
        ledger_id, created, domains = await self._create(sizes, digest_type, password, custom, ledger_id)
        writer = AdvLedgerWriter(self._context, ledger_id, created, domains, deferred_sync=deferred_sync)
        self._register(writer)
        return writer

    async def _create(
        self,
        sizes: tuple[int, int, int],
        digest_type: DigestType,
        password: bytes,
        custom: Mapping[str, bytes],
        ledger_id: int | None,
    ) -> tuple[int, Versioned, AckDomains | None]:
        self._check_usable()
        check_quorums(*sizes)
        context, (ensemble_size, write_quorum, ack_quorum) = self._context, sizes
        if ledger_id is not None and not 0 <= ledger_id < 2**63:
            raise ArgumentError(f"ledger_id is {ledger_id}; it must be from 0 to 2**63 - 1")
        retry = MetadataRetry(context, None, "the creation of a ledger")
        writable = await retry.read(context.metadata.bookies.writable)
        suspects = context.avoided_bookies()
        rules = await self.placement.rules(write_quorum, writable, for_writer=True)
        try:
            ensemble = choose_ensemble(writable, ensemble_size, self._rng, suspects, rules)
        except NotEnoughBookies as error:
            raise NotEnoughBookies(f"{error}{await retry.read(context.metadata.bookies.read_only_note)}") from error
        now_ms = context.host.clock.wall_us() // 1000
        ours = {"application": b"triplicate", "component": b"ledger", "created": str(now_ms).encode()}
        wanted = LedgerMetadata(
            ensemble_size=ensemble_size,
            write_quorum=write_quorum,
            ack_quorum=ack_quorum,
            segments=(EnsembleSegment(0, ensemble),),
            digest_type=DigestType(digest_type),
            password=bytes(password),
            custom={**ours, **custom},
            ctime_ms=now_ms,
            # Drawn here, not by the store, so that a later attempt recognises a node that an earlier one made.
            creator_token=self._tokens.randrange(CREATOR_TOKENS_END),
        )
        ledger_id, created = await self._store(ledger_id, wanted, retry)
        self._check_usable()
        context.metrics.ledgers_created.inc()
        self.placement.report(ledger_id, ensemble, rules)
        context.host.trace("client.ledger_created", ledger=ledger_id, ensemble=",".join(ensemble))
        return ledger_id, created, rules.ack_domains(ensemble)

    async def take_up(self, ledger_id: int, *, password: bytes = b"") -> LedgerWriter:
        """Become the writer of a ledger that was created for a later writer, with ``custom=WRITER_AWAITED``.

        One compare-and-set removes the mark, so only one of several callers becomes the writer. A ledger that ever had a writer cannot be
        taken up, because only recovery can find its end.

        Raises:
            NoSuchLedger, Unauthorized: as for `open`. LedgerClosed: it is closed. ArgumentError: it has, or had, a writer.
            NotEnoughBookies: its bookies are in fewer fault domains than acknowledgements need.
        """
        self._check_usable()
        found = self._authorize(ledger_id, await self._context.metadata.ledgers.get(ledger_id), password)
        custom = found.value.custom
        awaited = all(custom.get(name) == value for name, value in WRITER_AWAITED.items())
        if found.value.is_closed:
            closed = LedgerClosed(f"ledger {ledger_id} is closed, and a closed ledger accepts no more entries; create a new one")
            closed.ledger_id = ledger_id
            raise closed
        domains = await self.placement.ack_domains(ledger_id, found.value)
        # A random number: after a lost answer, equal bytes in the metadata must prove this client's write, even if others share its name.
        taken = replace(found.value, custom={**custom, "writer": f"{self.host.name} {self._rng.getrandbits(63):x}".encode()})
        try:
            if not awaited or found.value.state is not LedgerState.OPEN:
                raise BadVersion("no writer is awaited")
            updated = await self._context.metadata.ledgers.update(ledger_id, taken, found.version)
        except BadVersion:
            raise ArgumentError(f"ledger {ledger_id} has a writer already; recover it to close it, or create a new one") from None
        self._check_usable()
        writer = LedgerWriter(self._context, ledger_id, updated, domains)
        self._register(writer)
        return writer

    async def _store(self, ledger_id: int | None, metadata: LedgerMetadata, retry: MetadataRetry) -> tuple[int, Versioned]:
        ledgers = self._context.metadata.ledgers
        if ledger_id is not None:
            return ledger_id, await retry.read(partial(ledgers.create, ledger_id, metadata))
        for attempt in range(1, CREATE_ATTEMPTS + 1):
            fresh = await retry.read(ledgers.new_id)
            try:
                return fresh, await retry.read(partial(ledgers.create, fresh, metadata))
            except LedgerExists:
                if attempt == CREATE_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    async def open(self, ledger_id: int, *, password: bytes = b"") -> LedgerReader:
        """Open a ledger for reading, without recovery; its writer is not disturbed.

        Raises:
            NoSuchLedger: no ledger has this id. Unauthorized: the password is not the ledger's.
            ReadFailed: the ledger is open, and too few bookies answered to find its last-add-confirmed.
        """
        self._check_usable()
        found = self._authorize(ledger_id, await self._context.metadata.ledgers.get(ledger_id), password)
        await self._context.near.prepare()
        reader = self._reader(ledger_id, found)
        await reader.refresh_last_confirmed()
        self._context.metrics.ledgers_opened.inc()
        return reader

    async def recover(self, ledger_id: int, *, password: bytes = b"", mark: bool = True) -> LedgerReader:
        """Fence a ledger, so that its writer can no longer append, find its end, close it, and open it for reading.

        Every acknowledged entry is kept; unacknowledged entries may be kept. Safe to repeat, and for several clients at once.

        Args:
            mark: whether the ledger is marked as under-replicated if bookies have not stored every copy that the recovery made. The
                recovery needs an ack quorum of them.

        Raises:
            NoSuchLedger, Unauthorized: as for `open`. RecoveryFailed: too few bookies answered or store; the message names the others.
            OutcomeUnknown: the metadata could not be reached within ``metadata_timeout_s``.
        """
        self._check_usable()
        retry = MetadataRetry(self._context, ledger_id, f"the recovery of ledger {ledger_id}")
        found = self._authorize(ledger_id, await retry.read(lambda: self._context.metadata.ledgers.get(ledger_id)), password)
        was_closed = found.value.is_closed
        recovered = await recover_ledger(self._context, ledger_id, found, retry)
        reader = self._reader(ledger_id, recovered.found)
        reader.missing_bookies = recovered.missing
        if not was_closed:
            self._context.metrics.ledgers_recovered.inc()
        if mark and recovered.lacking:
            await self._mark_lacking(ledger_id, recovered.lacking)
        return reader

    async def _mark_lacking(self, ledger_id: int, lacking: Sequence[str]) -> None:
        try:
            async with timeout_at(self.host.clock.monotonic() + MARK_LIMIT_S):
                await self.metadata.under_replication.mark(ledger_id, lacking)
        except (MetadataError, TimeoutError) as error:
            # The ledger is recovered. A check of its copies finds those that are missing.
            self.host.trace(
                "client.ledger_not_marked", ledger=ledger_id, missing=",".join(lacking), error=str(error) or "no answer in time"
            )

    async def delete(self, ledger_id: int, *, version: int | None = None, checks: Sequence[TreeOperation] = ()) -> None:
        """Delete a ledger. A ledger that does not exist counts as deleted.

        Its metadata stays in the trash for this client's `trash_period_s`, and its entries on the bookies for that of the bookies: see
        `undelete`.

        Args:
            version: delete it only while its metadata node has this version.
            checks: operations on the metadata tree that the deletion depends on, applied in the same transaction.

        Raises:
            BadVersion: the version differs, or a check failed; the ledger stays.
        """
        self._check_usable()
        context = self._context
        await context.metadata.trash.delete(ledger_id, self.settings.trash_period_s, version=version, checks=checks)
        context.metrics.ledgers_deleted.inc()
        now = self.host.clock.monotonic()
        if self.settings.trash_period_s > 0 and now >= self._trash_due:
            self._trash_due = now + TRASH_INTERVAL_S
            try:
                await context.metadata.trash.expire()
            except MetadataError as error:
                # The ledger is deleted; the next deletion expires the trash.
                self.host.trace("client.trash_not_emptied", error=str(error))

    async def undelete(self, ledger_id: int) -> LedgerMetadata:
        """Restore a deleted ledger, unchanged.

        Raises:
            NoSuchLedger: the ledger is not in the trash, or was deleted too long ago. LedgerExists: its id is in use again.
        """
        self._check_usable()
        return (await self._context.metadata.trash.undelete(ledger_id)).value

    def ledger_ids(self) -> AsyncIterator[int]:
        """Ids of all ledgers, ascending."""
        self._check_usable()
        return self._context.metadata.ledgers.ids()

    async def metadata_of(self, ledger_id: int) -> LedgerMetadata:
        """The metadata of a ledger.

        Raises:
            NoSuchLedger: there is none of this id.
        """
        self._check_usable()
        return (await self._context.metadata.ledgers.get(ledger_id)).value

    async def bookie_info(self, bookie_id: str) -> BookieInfo:
        """The disk space of a bookie. Uses version 3 of the protocol.

        Raises:
            BookieError: it did not answer, or it answered with an error.
        """
        self._check_usable()
        return await request_space(self._context.pool, bookie_id)

    async def bookies_answer(self, ledger_id: int, bookie_ids: Sequence[str], suffices: Callable[[Collection[str]], bool]) -> bool:
        """Whether those of the bookies that answer suffice. They are asked for the last entry of a ledger, and nothing is fenced.

        Args:
            suffices: whether these bookies are enough. Called for each answer.

        Returns:
            False once all have answered or failed, and those that have answered do not suffice.
        """
        self._check_usable()
        return await await_answers(self._context.pool, ledger_id, bookie_ids, suffices)

    def bookie_copies(self) -> BookieCopies:
        """Requests to single bookies for copies of entries, on connections of their own. The caller closes the object."""
        self._check_usable()
        return BookieCopies(self._context)

    async def aclose(self) -> None:
        """Abandon writers, close readers and connections, end all tasks. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._waiting_for_domains.remove()
        for writer in list(self._writers.values()):
            writer.abandon()
        for reader in list(self._readers.values()):
            await reader.aclose()
        await self._context.short_copies.aclose()
        self._context.pool.close()
        await self._context.scope.aclose()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.aclose()

    def _register(self, writer: WriteHandle) -> None:
        """Keep a writer, to abandon it with the client. Finished writers are forgotten only when there may be many."""
        if len(self._writers) >= self._writers_most:
            self._writers = {id(known): known for known in self._writers.values() if not known.is_finished}
            self._writers_most = 2 * len(self._writers) + WRITERS_LEAST
        self._writers[id(writer)] = writer
        self._departures.follow()

    def _reader(self, ledger_id: int, found: Versioned) -> LedgerReader:
        reader = LedgerReader(self._context, ledger_id, found)
        self._readers = {id(known): known for known in self._readers.values() if known.has_tails}
        self._readers[id(reader)] = reader
        return reader

    def _authorize(self, ledger_id: int, found: Versioned, password: bytes) -> Versioned:
        """Check the password against the metadata; for old metadata, which stores none, use the caller's."""
        metadata = found.value
        if not metadata.credentials_stored:
            return Versioned(replace(metadata, password=bytes(password)), found.version)
        if metadata.password != password:
            wrong = f"the password given for ledger {ledger_id} is not the one it was created with"
            none = (
                f"ledger {ledger_id} was created with a password, and none was given: give it (password=, on the command line --password)"
            )
            error = Unauthorized(wrong if password else none)
            error.ledger_id = ledger_id
            raise error
        return found

    def _check_usable(self) -> None:
        if self._closed:
            raise HandleClosed("the client was closed; open a new one")
        if os.getpid() != self._process_id:
            raise HandleClosed(f"this client was made by process {self._process_id}, and does not work in its fork; make one in the child")
