"""Named logs: endless sequences of records over ledgers, with one writer, many publishers, and any number of readers."""

from triplicate.config.log_settings import LogClientSettings, LogSettings
from triplicate.log.copy_raising import raise_all_copies
from triplicate.log.core.encryption import KeySource, KnownKeys, check_key_id
from triplicate.log.core.head import USER, Head, LogSegment, Owner, PublisherState, Purpose, PurposeKind, Quorums, SegmentState
from triplicate.log.core.head_changes import PageLimits
from triplicate.log.core.locate import OffsetRange
from triplicate.log.core.payload import (
    ENTRY_LIMIT_BYTES,
    ENTRY_TARGET_BYTES,
    HEADER_KEY_LIMIT_BYTES,
    Buffer,
    EntryView,
    Producer,
    RecordHeaders,
    decode_entry,
    decode_header,
)
from triplicate.log.core.payload_encoder import Columns
from triplicate.log.core.positions import EARLIEST, LATEST, Position, TransactionId
from triplicate.log.core.snapshot_format import CHUNK_BYTES, SnapshotHeader
from triplicate.log.core.snapshot_list import LogLength, Snapshot, SnapshotList, SnapshotState, sources, truncation_offset
from triplicate.log.janitor import Chore, Janitor
from triplicate.log.living_writers import has_living_writer
from triplicate.log.logs import Log, Logs
from triplicate.log.publishing.joining import JoinResult
from triplicate.log.publishing.publication import PublishResult
from triplicate.log.publishing.staging import StagedLedger, StagingOrigin, StagingWriter
from triplicate.log.readable_logs import can_be_taken_over
from triplicate.log.reading.backward_reader import BackwardReader
from triplicate.log.reading.log_consumer import ConsumerInfo, LogConsumer
from triplicate.log.reading.log_entries import LogEntry
from triplicate.log.reading.log_reader import LogReader
from triplicate.log.reading.log_record import LogRecord
from triplicate.log.reading.range_reader import RangeReader
from triplicate.log.reading.record_reader import LogRecords
from triplicate.log.store.key_file import add_key, read_keys
from triplicate.log.upkeep.ledger_use import LedgerUse
from triplicate.log.upkeep.log_snapshots import LogSnapshots
from triplicate.log.upkeep.repair import Examination, LostLedger
from triplicate.log.upkeep.rewriter import RewriteResult, maintain
from triplicate.log.upkeep.snapshot_ledgers import SnapshotReader, SnapshotWriter
from triplicate.log.watched_position import WatchedPosition, stream_owner
from triplicate.log.writing.log_producer import Appended, LogProducer
from triplicate.log.writing.log_writer import LogWriter

__all__ = [
    "CHUNK_BYTES",
    "EARLIEST",
    "ENTRY_LIMIT_BYTES",
    "ENTRY_TARGET_BYTES",
    "HEADER_KEY_LIMIT_BYTES",
    "LATEST",
    "USER",
    "Appended",
    "BackwardReader",
    "Buffer",
    "Chore",
    "Columns",
    "ConsumerInfo",
    "EntryView",
    "Examination",
    "Head",
    "Janitor",
    "JoinResult",
    "KeySource",
    "KnownKeys",
    "LedgerUse",
    "Log",
    "LogClientSettings",
    "LogConsumer",
    "LogEntry",
    "LogLength",
    "LogProducer",
    "LogReader",
    "LogRecord",
    "LogRecords",
    "LogSegment",
    "LogSettings",
    "LogSnapshots",
    "LogWriter",
    "Logs",
    "LostLedger",
    "OffsetRange",
    "Owner",
    "PageLimits",
    "Position",
    "Producer",
    "PublishResult",
    "PublisherState",
    "Purpose",
    "PurposeKind",
    "Quorums",
    "RangeReader",
    "RecordHeaders",
    "RewriteResult",
    "SegmentState",
    "Snapshot",
    "SnapshotHeader",
    "SnapshotList",
    "SnapshotReader",
    "SnapshotState",
    "SnapshotWriter",
    "StagedLedger",
    "StagingOrigin",
    "StagingWriter",
    "TransactionId",
    "WatchedPosition",
    "add_key",
    "can_be_taken_over",
    "check_key_id",
    "decode_entry",
    "decode_header",
    "has_living_writer",
    "maintain",
    "raise_all_copies",
    "read_keys",
    "sources",
    "stream_owner",
    "truncation_offset",
]
