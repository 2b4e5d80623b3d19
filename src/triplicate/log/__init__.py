"""Named logs: endless sequences of records over ledgers, with one writer, many publishers, and any number of readers."""

from triplicate.config.log import LogClientSettings, LogSettings
from triplicate.log.core.changes import PageLimits
from triplicate.log.core.encode import Columns
from triplicate.log.core.head import USER, Copies, Head, Owner, PublisherState, Purpose, PurposeKind, Segment, SegmentState
from triplicate.log.core.locate import Range
from triplicate.log.core.payload import ENTRY_LIMIT_BYTES, ENTRY_TARGET_BYTES, HEADER_KEY_LIMIT_BYTES, EntryView, Producer, decode_entry
from triplicate.log.core.snapshot_entries import CHUNK_BYTES, SnapshotHeader
from triplicate.log.core.snapshots import Snapshot, SnapshotList, SnapshotState, sources, truncation_offset
from triplicate.log.entries import LogEntry
from triplicate.log.janitor import Chore, Janitor
from triplicate.log.joining import Joined
from triplicate.log.logs import Logs
from triplicate.log.publishing import Published
from triplicate.log.ranges import RangeReader
from triplicate.log.reader import LogReader
from triplicate.log.repair import Examination, LostLedger
from triplicate.log.rewriting import Rewritten, maintain
from triplicate.log.snapshot_ledgers import SnapshotReader, SnapshotWriter
from triplicate.log.snapshots import LogSnapshots
from triplicate.log.staging import StagedLedger, StagingOrigin, StagingWriter
from triplicate.log.writer import LogWriter

__all__ = [
    "CHUNK_BYTES",
    "ENTRY_LIMIT_BYTES",
    "ENTRY_TARGET_BYTES",
    "HEADER_KEY_LIMIT_BYTES",
    "USER",
    "Chore",
    "Columns",
    "Copies",
    "EntryView",
    "Examination",
    "Head",
    "Janitor",
    "Joined",
    "LogClientSettings",
    "LogEntry",
    "LogReader",
    "LogSettings",
    "LogSnapshots",
    "LogWriter",
    "Logs",
    "LostLedger",
    "Owner",
    "PageLimits",
    "Producer",
    "Published",
    "PublisherState",
    "Purpose",
    "PurposeKind",
    "Range",
    "RangeReader",
    "Rewritten",
    "Segment",
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
    "decode_entry",
    "maintain",
    "sources",
    "truncation_offset",
]
