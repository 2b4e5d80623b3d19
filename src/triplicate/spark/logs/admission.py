"""Checks of a write before its first task runs, and the handling of a batch that is in the log already."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from triplicate.log import PublisherState, PublishResult
from triplicate.spark.cluster import access
from triplicate.spark.core.log_options import WriteOptions

if TYPE_CHECKING:
    import pyarrow as pa

_logger = logging.getLogger(__name__)


def admit(write: WriteOptions) -> PublisherState | None:
    """Check with the cluster whether a write can succeed.

    Returns:
        the application's last publish, if the log has the batch of this write already.

    Raises:
        NoSuchLog, LogReserved, LogOwned, PublisherForgotten, NotEnoughBookies; EnvironmentFault: the cluster does not answer.
    """
    with access.logs(*write.access) as logs:
        if not write.log:
            return None  # The logs of the rows are not known yet. Tasks refuse those that cannot be written.
        return logs.check_publish(write.log, application=write.application, batch=write.version)


def warn_of_discarded(
    log: str, application: str | None, batch: int | None, last: PublishResult | PublisherState, *, records: int | None
) -> None:
    """Warn that a batch adds nothing. Whether its records equal those in the log is unknown.

    Args:
        last: the application's last publish.
        records: number of records of the discarded batch; None if they were not counted.
    """
    _logger.warning(
        "triplicate: batch %s of application %r adds nothing to log %r: its batch %s, which ends at offset %s, is there. %s. "
        "A batch with other records needs a greater number, or an application's name of its own",
        batch,
        application,
        log,
        last.batch,
        last.end_offset,
        "Its records were not compared" if records is None else f"{records} records were discarded",
    )


class DiscardedBatch(DataSourceArrowWriter):
    """The write of a batch that is in the log already. It reads no input and adds nothing."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Does nothing: the batch was committed before."""

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Does nothing: no task has written anything."""
