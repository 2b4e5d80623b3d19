"""Every error that Triplicate raises, on one page.

Each message says what happened, where, and what to do. Fields that a program may want to act on are attributes.
The class says who can mend it: the caller (`UsageError`), a peer (`PeerError`), or the surroundings (`EnvironmentFault`).
"""

from __future__ import annotations


class TriplicateError(Exception):
    """The root: catch this to catch everything of ours."""


# Who can mend it. A class below names exactly one of these.


class UsageError(TriplicateError):
    """The caller asked for something that cannot be; asking again unchanged fails again."""


class PeerError(TriplicateError):
    """Another process answered with a refusal, or with bytes that break the protocol."""


class EnvironmentFault(TriplicateError):
    """The machine, the disk, the network or the metadata store failed; waiting or repairing helps."""


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


# Bytes that cannot be what they claim.


class ProtocolError(PeerError):
    """A peer sent bytes that are not a valid message; the connection is closed."""


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
    """Something about one ledger. `ledger_id` names it where known."""

    ledger_id: int | None = None


class NoSuchLedger(LedgerError, UsageError):
    """Neither metadata nor bookies know the ledger."""


class LedgerExists(LedgerError, UsageError):
    """A ledger of this id is already there."""


class NoSuchEntry(LedgerError, UsageError):
    """The entry is beyond the end of the ledger."""


class DuplicateEntry(LedgerError, UsageError):
    """An entry of this id was appended before; nothing was sent."""


class LedgerClosed(LedgerError):
    """The ledger was closed; nothing can be appended."""


class LedgerFenced(LedgerError):
    """Another client recovered the ledger; this writer may no longer append. Unacknowledged entries have an unknown outcome."""


class OutcomeUnknown(LedgerError):
    """The append may or may not survive; only recovery of the ledger decides."""


class EntryTooLarge(LedgerError, UsageError):
    """A bookie refused an entry, probably for its size. The writer ended; the entry and those behind it have an unknown outcome."""


class Unauthorized(LedgerError, UsageError):
    """The password or digest type does not match the ledger's."""


class NotEnoughBookies(LedgerError, EnvironmentFault):
    """Fewer writable bookies than the ensemble needs; the message lists those that are there."""


class ReadFailed(LedgerError, EnvironmentFault):
    """No replica could deliver the entry; the message says what each answered. Never raised for 'does not exist'."""


class RecoveryFailed(LedgerError, EnvironmentFault):
    """Recovery could not reach coverage; the message says which bookies did not answer."""


# One bookie.


class BookieError(PeerError):
    """A request to one bookie failed. `bookie_id` names it."""

    bookie_id: str | None = None


class BookieUnavailable(BookieError, EnvironmentFault):
    """No connection, or it broke while the request was outstanding: outcome unknown."""


class ConnectionBroken(BookieUnavailable):
    """The connection ended while the request was outstanding: outcome unknown."""


class RequestTimeout(BookieError, EnvironmentFault):
    """The bookie did not answer in time: outcome unknown."""


class BookieReadOnly(BookieError):
    """The bookie accepts no normal writes, usually because a disk is full."""


class TooManyRequests(BookieError):
    """The bookie's queues are full; slow down and try again."""


# Metadata.


class MetadataError(TriplicateError):
    """An operation on the metadata tree failed."""


class NoNode(MetadataError):
    """The node does not exist."""


class NodeExists(MetadataError):
    """The node exists already."""


class BadVersion(MetadataError):
    """The node's version is not the expected one: somebody changed it."""


class LedgerVanished(BadVersion):
    """A ledger that a change of a log lists for the first time is gone; nothing was changed."""


class NotEmpty(MetadataError):
    """The node has children and cannot be deleted."""


class ConnectionLost(MetadataError, EnvironmentFault):
    """The store went away during the operation: it may or may not have been applied."""


class SessionExpired(MetadataError, EnvironmentFault):
    """The session is over; its ephemeral nodes are gone."""


class WrongCluster(MetadataError, UsageError):
    """A directory, cookie or address belongs to another cluster."""


# Logs.


class LogError(TriplicateError):
    """Something about one named log."""


class NoSuchLog(LogError, UsageError):
    """No log of this name."""


class LogExists(LogError, UsageError):
    """A log of this name is already there."""


class LogReplaced(LogError, UsageError):
    """The log of this name is not the one that was read before, or holds less of it: it was deleted and made again, or restored."""


class LogFenced(LogError):
    """Another writer took the log over; this writer's epoch is past."""


class LogOwned(LogError, UsageError):
    """Refused because a writer is alive; the message names it. A publish: the writer did not list the batch in time."""


class LogReserved(LogError, UsageError):
    """The log belongs to a database, a key-value store or a pipeline, and only that may change it; the message names it."""


class PublisherForgotten(LogError, UsageError):
    """The batch was published, but so long ago that its offsets are forgotten; nothing was published again."""


class OffsetTruncated(LogError, UsageError):
    """The offset lies before the log's first offset: truncated or expired."""


class SchemaChanged(LogError, UsageError):
    """A table was changed, dropped or renamed so that a query cannot go on with its change feed; the message names the change."""


class SnapshotDamaged(LogError, CorruptionError):
    """A snapshot's ledger does not hold what the list of snapshots says, or what it holds is no sound state; an older one is used."""


class OffsetGap(LogError, CorruptionError):
    """Offsets read from segments are not continuous: a segment is missing or damaged."""


# Replicas and SQL.


class ReplicaError(TriplicateError):
    """Something about a replicated state machine."""


class NotLeader(ReplicaError):
    """This node is not the leader; the message names the leader where known."""


class Diverged(ReplicaError, CorruptionError):
    """Applying the log did not change exactly what it must: this copy is wrong and stops serving."""


class SqlError(TriplicateError):
    """An SQL error as a PostgreSQL client expects it.

    Args:
        sqlstate: five characters of PostgreSQL's error codes, for example ``23505``.
        message: one sentence.
        detail: more about this case, for example the transaction's id after an unknown outcome.
        hint: what to do.
        position: 1-based character of the statement where the error was found.
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
