"""All errors that Triplicate raises.

Each message says what happened, where, and what to do. Values that a program may need are attributes.
The class names the origin: the caller (`UsageError`), a peer (`PeerError`), or the environment (`EnvironmentFault`).
"""

from __future__ import annotations

from dataclasses import dataclass


class TriplicateError(Exception):
    """The base class of all errors of Triplicate."""


# Origins. Each class below derives from at most one of these.


class UsageError(TriplicateError):
    """The request is invalid. Repeating it unchanged fails again."""


class PeerError(TriplicateError):
    """Another process refused the request or broke the protocol."""


class EnvironmentFault(TriplicateError):
    """The machine, the disk, the network or the metadata store failed. Waiting or repairing helps."""


# Configuration and arguments.


class ConfigError(UsageError):
    """A setting is unknown, out of bounds, or contradicts another."""


class ArgumentError(UsageError, ValueError):
    """An argument is outside what the operation accepts."""


class RecordTooLarge(UsageError):
    """A payload exceeds the limit; nothing was sent."""


class WindowFull(UsageError):
    """`append_nowait` found no room in the window of unacknowledged entries; await `append` instead, or slow down."""


class HandleClosed(UsageError):
    """The writer, reader or client was closed by its own owner."""


# Invalid bytes.


class ProtocolError(PeerError):
    """A peer sent an invalid message. The connection is closed."""


class FrameTooLarge(ProtocolError):
    """A frame's length exceeds the limit."""


class CorruptionError(EnvironmentFault):
    """Stored bytes fail their checksum or contradict themselves."""


class DigestMismatch(CorruptionError):
    """An entry's digest does not match its bytes: this copy is damaged, or the password differs."""


class FormatError(EnvironmentFault):
    """A file, node or record carries a version or flag that this release does not know."""


# Ledgers.


class LedgerError(TriplicateError):
    """An error of one ledger. `ledger_id` names it if known."""

    ledger_id: int | None = None


class NoSuchLedger(LedgerError, UsageError):
    """The ledger exists neither in the metadata nor on the bookies."""


class LedgerExists(LedgerError, UsageError):
    """A ledger with this id exists already."""


class NoSuchEntry(LedgerError, UsageError):
    """The entry is beyond the end of the ledger."""


class DuplicateEntry(LedgerError, UsageError):
    """An entry with this id was appended before. Nothing was sent."""


class LedgerClosed(LedgerError):
    """The ledger is closed and accepts no more entries."""


class LedgerFenced(LedgerError):
    """Another client recovered the ledger; this writer may no longer append. Unacknowledged entries have an unknown outcome."""


class OutcomeUnknown(LedgerError):
    """The append may or may not survive; only recovery of the ledger decides."""


class EntryTooLarge(LedgerError, UsageError):
    """A bookie refused an entry, probably for its size. The writer ended; the entry and those behind it have an unknown outcome."""


class Unauthorized(LedgerError, UsageError):
    """The password or digest type does not match the ledger's."""


class NotEnoughBookies(LedgerError, EnvironmentFault):
    """There are fewer writable bookies than the ensemble needs. The message lists them."""


class ReadFailed(LedgerError, EnvironmentFault):
    """No replica could deliver the entry. The message has the answer of each. Never raised for 'does not exist'."""


class NoGoodCopy(LedgerError, EnvironmentFault):
    """No bookie delivered an intact copy of an entry, so that it cannot be copied. `entry_id` names it; nothing was changed."""

    entry_id: int | None = None


class RecoveryFailed(LedgerError, EnvironmentFault):
    """Recovery did not reach coverage. The message names the bookies that did not answer."""


# One bookie.


class BookieError(PeerError):
    """A request to one bookie failed. `bookie_id` names it."""

    bookie_id: str | None = None


class BookieUnavailable(BookieError, EnvironmentFault):
    """There is no connection, or it broke while the request was outstanding: outcome unknown."""


class ConnectionBroken(BookieUnavailable):
    """The connection ended while the request was outstanding: outcome unknown."""


class RequestTimeout(BookieError, EnvironmentFault):
    """The bookie did not answer in time: outcome unknown."""


class BookieReadOnly(BookieError):
    """The bookie is read-only, usually because a disk is full."""


class CopyUnreadable(BookieError):
    """The bookie answered that it cannot read what it stores (an I/O error). Its copy counts as damaged, as in BookKeeper's checks."""


class TooManyRequests(BookieError):
    """The bookie's queues are full. Slow down and try again."""


# Metadata.


class MetadataError(TriplicateError):
    """An operation on the metadata tree failed."""


class NoNode(MetadataError):
    """The node does not exist."""


class NodeExists(MetadataError):
    """The node exists already."""


class BadVersion(MetadataError):
    """The node's version is not the expected one: another process changed the node."""


class LedgerVanished(BadVersion):
    """A change of a log lists a ledger that has been deleted. Nothing was changed."""


class NotEmpty(MetadataError):
    """The node has children and cannot be deleted."""


class ConnectionLost(MetadataError, EnvironmentFault):
    """The connection to the store was lost during the operation: outcome unknown."""


class SessionExpired(MetadataError, EnvironmentFault):
    """The session has ended, and its ephemeral nodes are deleted."""


class AccessRefused(MetadataError, UsageError):
    """The metadata store refuses this process, or this process does not trust the store: user, password, certificate, or a node's ACL."""


class WrongCluster(MetadataError, UsageError):
    """A directory, cookie or address belongs to another cluster."""


# Logs.


class LogError(TriplicateError):
    """An error of one named log."""


class NoSuchLog(LogError, UsageError):
    """There is no log with this name."""


class LogExists(LogError, UsageError):
    """A log with this name exists already."""


class LogReplaced(LogError, UsageError):
    """The log is not the one that was read before, or is shorter: it was deleted and created again, or restored."""


class LogFenced(LogError):
    """Another writer took the log over. This writer's epoch has ended."""


class LogOwned(LogError, UsageError):
    """Refused because the log has a live writer, which the message names. For a publish: the writer did not list the batch in time."""


class LogReserved(LogError, UsageError):
    """The log belongs to a database, a key-value store or a pipeline, and only its owner may change it. The message names the owner."""


class LedgerListed(LogError, UsageError):
    """The ledger holds records or a snapshot of a log, which needs it. The message names the log and its owner."""


class NoSuchConsumer(LogError, UsageError):
    """The log has no consumer with this name."""


class ConsumerOwned(LogError, UsageError):
    """Refused because another process consumes the log under this name. The message names it."""


class ConsumerFenced(LogError):
    """Another process has taken over, reset or deleted the consumer's saved position; nothing was saved. The message names it."""


class SequenceGap(LogError, UsageError):
    """A producer's sequence number is not the next one. Nothing was appended; the message has the number that is expected."""


class ProducerFenced(LogError):
    """A newer instance of the producer has appended to the log; nothing was appended."""


class TooManyProducers(LogError, UsageError):
    """The log remembers as many producers as it can, and none has been idle for long enough to be forgotten."""


class LogKeyMissing(LogError, UsageError):
    """The log is encrypted, and this process lacks the key. The message names the key's id and where keys are looked for."""


class EntryNotAuthentic(LogError, CorruptionError):
    """An entry of an encrypted log was changed, moved or replaced, or the key of its id is another. The message names the entry."""


class PublisherForgotten(LogError, UsageError):
    """The batch was published before, but its offsets are no longer recorded. Nothing was published again."""


class OffsetTruncated(LogError, UsageError):
    """The offset is before the log's first offset: its records were truncated or expired."""


class SchemaChanged(LogError, UsageError):
    """A table was changed, dropped or renamed, and a query cannot continue its change feed. The message names the change."""


class SnapshotDamaged(LogError, CorruptionError):
    """A snapshot's ledger contradicts the list of snapshots, or does not hold a valid state. An older snapshot is used."""


class BackupDamaged(CorruptionError):
    """A backup of a database, or a part of it, is not what was written: it fails its digest, or the chain of its parts has a gap."""


class OffsetGap(LogError, CorruptionError):
    """The offsets of the segments are not continuous: a segment is missing or damaged."""


# Replicas and SQL.


class ReplicaError(TriplicateError):
    """An error of a replicated state machine."""


class Diverged(ReplicaError, CorruptionError):
    """Applying the log did not make the recorded changes: this copy is wrong and stops serving."""


class NotKept(ReplicaError, UsageError):
    """A point in the past of a database is no longer kept. The message names the oldest that is."""


@dataclass(frozen=True, slots=True)
class Violation:
    """The constraint that a row violates."""

    sqlstate: str
    table: str
    """The table of the row."""
    columns: tuple[str, ...]
    """Those of the constraint; empty for a CHECK or an expression."""
    constraint: str | None = None
    other_table: str | None = None
    """The table at the other end of a foreign key."""
    is_referred: bool = False
    """Whether the foreign key is the other table's, and its rows refer to this one."""


class SqlError(TriplicateError):
    """An SQL error as a PostgreSQL client expects it.

    Args:
        sqlstate: five characters of PostgreSQL's error codes, for example ``23505``.
        message: one sentence.
        detail: more about this case, for example the transaction's id after an unknown outcome.
        hint: how to correct the problem.
        position: 1-based character of the statement where the error was found.

    Attributes:
        context: the place in the client's data where the error was found, such as ``COPY t, line 7``; None outside of such data.
        violation: the constraint that was violated, if it is one and is known.
    """

    def __init__(
        self, sqlstate: str, message: str, *, detail: str | None = None, hint: str | None = None, position: int | None = None
    ) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.context: str | None = None
        self.violation: Violation | None = None


# Key-value stores.


class StoreError(TriplicateError):
    """An error of a key-value store."""


class NoSuchStore(StoreError, UsageError):
    """There is no key-value store of this name."""


class StoreExists(StoreError, UsageError):
    """A key-value store of this name exists already."""


class WrongValue(StoreError, UsageError):
    """The value of a key is of another kind than the operation expects, for example no integer. Nothing was changed."""


class SumOutOfRange(WrongValue):
    """An integer and the amount to add have a sum that is no signed 64-bit integer. Nothing was changed."""


class NotLeading(StoreError):
    """This node does not lead the store, so it neither changes it nor serves linearizable reads. Nothing was changed.

    Attributes:
        leader: ``host:port`` of the node that leads it, as its candidate's node says; None if unknown.
    """

    def __init__(self, message: str, leader: str | None = None) -> None:
        super().__init__(message)
        self.leader = leader


class StoreUnavailable(StoreError, EnvironmentFault):
    """This node's copy of the store is starting, failed or found wrong, or too many requests wait. Nothing was changed."""


class StoreOutcomeUnknown(StoreError):
    """This node lost the leadership while the change was at the log: it may have happened. Read the key again at the new leader."""


class LevelNotMet(StoreError):
    """The copy did not reach the position, or was not recent enough, in time. The message says how far behind it is."""


class PlaceLost(StoreError, UsageError):
    """The changes after a watcher's position are no longer kept here. Read the range again and watch from its position.

    Attributes:
        oldest: the oldest position from which this copy can be watched.
    """

    def __init__(self, message: str, oldest: int) -> None:
        super().__init__(message)
        self.oldest = oldest
