"""The place of a leader's next batch in the log, and the log's own time. Pure."""

from __future__ import annotations

from triplicate.sql.core.records import BatchHeader
from triplicate.sql.core.schema_versions import SchemaVersion, SchemaVersions
from triplicate.sql.core.table_shape import TableShape


class BatchSequence:
    """Numbers the batches of one epoch and gives them times that never go back.

    Several batches may be at the log. Each has its number and place when it is sent, and is committed with all that were sent before it.

    Args:
        database: 16 bytes, the database's identity.
        batch: the number of the epoch's last batch; 0 before the first.
        position: the offset after the log's last record.
        time_ms: the log's time, in ms since the epoch; 0 in a log without times.
        keep_ms: for how long results and ids of transactions are kept.
    """

    def __init__(self, database: bytes, epoch: int, batch: int, position: int, time_ms: int, keep_ms: int) -> None:
        self._database = database
        self._epoch = epoch
        self._keep_ms = keep_ms
        self.next_batch = batch + 1
        self.position = position
        """The offset after the last committed batch."""
        self.sent_position = position
        """The offset at which the last batch that was sent ends, once the log has it."""
        self.time_ms = time_ms

    @property
    def forget_before_ms(self) -> int:
        """Results and ids of transactions of before this time are forgotten with the next batch."""
        return max(0, self.time_ms - self._keep_ms)

    def begin(self, wall_ms: int) -> None:
        """A batch begins at this time of the wall clock."""
        # Never 0, which stands for a batch without a time.
        self.time_ms = max(self.time_ms, wall_ms, 1)

    def header(self, schema: SchemaVersions, tables: tuple[TableShape, ...]) -> BatchHeader:
        """The header of the next batch."""
        return self.header_of_part(0, schema.committed, schema.current, tables)

    def header_of_part(self, index: int, before: SchemaVersion, after: SchemaVersion, tables: tuple[TableShape, ...]) -> BatchHeader:
        """The header of a batch that is sent together with the next one, `index` batches behind it."""
        return BatchHeader(
            self._database,
            self._epoch,
            self.next_batch + index,
            before.number,
            after.number,
            before.digest,
            after.digest,
            tables,
            self.time_ms,
            self.forget_before_ms,
        )

    def send(self, end: int, batches: int = 1) -> None:
        """The next batch, or the next ones, are at the log, where they end at offset `end`."""
        assert end > self.sent_position, "a batch has records"
        self.next_batch += batches
        self.sent_position = end

    def commit(self) -> None:
        """All batches that were sent are committed."""
        self.position = self.sent_position
