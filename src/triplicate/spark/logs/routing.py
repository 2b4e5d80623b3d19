"""Rows of one task for several logs: the column `log` names the log of each, and each log gets a staging ledger."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace
from types import TracebackType

import numpy as np
import pyarrow as pa

from triplicate.blocking import BlockingStagingWriter
from triplicate.errors import ConfigError, TriplicateError
from triplicate.log import Columns, StagedLedger, StagingOrigin
from triplicate.spark.cluster.access import LogAccess
from triplicate.spark.core.log_options import WriteOptions

OPEN_STAGING_LEDGERS = 64
"""A task has at most this number of open staging ledgers. Before it opens another one, it seals the one that was used least recently."""

_logger = logging.getLogger(__name__)


def by_log(rows: pa.RecordBatch, write: WriteOptions) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each log, in their order, without the column that names it.

    Raises:
        ConfigError: a row names no log.
    """
    place = None if write.into_table else next((at for at, name in enumerate(rows.schema.names) if name.lower() == "log"), None)
    if place is None:
        yield write.log, rows
        return
    named, rest = rows.column(place), rows.select([at for at in range(rows.num_columns) if at != place])
    if write.log:
        yield write.log, rest
        return
    if named.null_count:
        raise ConfigError("triplicate: column 'log' is null in a row: it names the log of each row, unless option 'log' names one for all")
    encoded = named.cast(pa.string()).dictionary_encode()
    numbers = np.asarray(encoded.indices)
    order = np.argsort(numbers, kind="stable")
    sorted_rows = rest.take(pa.array(order)) if len(encoded.dictionary) > 1 else rest
    bounds = np.searchsorted(numbers[order], np.arange(len(encoded.dictionary) + 1))
    for log, low, high in zip(encoded.dictionary.to_pylist(), bounds[:-1], bounds[1:], strict=True):
        yield log, sorted_rows.slice(low, high - low)


class TaskLedgers:
    """The staging ledgers of one task. Leaving ``with`` by an error deletes them.

    Args:
        origin: the task; its log does not matter.
    """

    def __init__(self, logs: LogAccess, origin: StagingOrigin) -> None:
        self._logs = logs
        self._origin = origin
        self._open: OrderedDict[str, BlockingStagingWriter] = OrderedDict()
        self.sealed: list[tuple[str, StagedLedger]] = []
        """Log and ledger, of each log in the order of its records."""

    def append(self, log: str, columns: Columns) -> None:
        """Append one entry for a log.

        Raises:
            NoSuchLog, LogReserved: its rows cannot be written.
        """
        writer = self._open.pop(log, None)
        if writer is None:
            if len(self._open) >= OPEN_STAGING_LEDGERS:
                self._seal(next(iter(self._open)))
            writer = self._logs.stage(replace(self._origin, log=log))
        self._open[log] = writer
        writer.append_columns(columns)

    def seal(self) -> None:
        """Seal all ledgers."""
        while self._open:
            self._seal(next(iter(self._open)))

    def _seal(self, log: str) -> None:
        self.sealed.append((log, self._open[log].seal()))
        del self._open[log]

    def __enter__(self) -> TaskLedgers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            return
        for writer in self._open.values():
            writer.abandon()
        for log, ledger in self.sealed:
            try:
                self._logs.discard(log, [ledger])
            except TriplicateError as left:
                _logger.warning("a staged ledger of log %r is left to the sweep of orphans: %s", log, left)
