"""How far streams are behind their logs, by the progress that Spark reports of them. Pure."""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from triplicate.spark.core.offsets import KNOWN_VERSIONS, LogPosition


@dataclass(frozen=True, slots=True)
class LogLag:
    """How far one source of a query is behind one log. A change feed counts transactions of its database instead of records.

    Args:
        query: the query's name, or its id if it has none.
        run_id: of the query's run: another one after each start.
        batch: number of the last micro-batch.
        batch_s: how long that took, in seconds.
        rows_per_s: rows that the query processed per second in that batch, of all its sources.
        source: place of the source in the query, from 0.
        position: offset of the first record after that batch.
        log_id: the log's id; None if the checkpoint has none, as that of a change feed.
        records_behind: records from the position to the end that the log had when the batch was planned; None if the progress has no
            end, or that of another log of the name. With `LagListener` and a cluster: to the present end.
        seconds_behind: how long ago the first of these records was written, 0 without any; None unless a cluster was asked.
    """

    query: str
    run_id: str
    batch: int
    batch_s: float
    rows_per_s: float
    source: int
    log: str
    position: int
    log_id: str | None = None
    records_behind: int | None = None
    seconds_behind: float | None = None


def lag_of(progress: Mapping[str, Any] | None) -> list[LogLag]:
    """How far a query is behind each log that it reads, at the planning of its last micro-batch: ``lag_of(query.lastProgress)``.

    Args:
        progress: of a query; None before the first one.

    Returns:
        nothing of sources other than Triplicate's.
    """
    if progress is None:
        return []
    rows: list[LogLag] = []
    for number, source in enumerate(progress["sources"]):
        stands, latest = _positions(source.get("endOffset")), _positions(source.get("latestOffset"))
        for log, position in stands.items():
            end = latest.get(log)
            # The end of another log with the same name says nothing about this one.
            behind = max(0, end.offset - position.offset) if end is not None and end.log_id == position.log_id else None
            rows.append(
                LogLag(
                    query=str(progress.get("name") or progress["id"]),
                    run_id=str(progress["runId"]),
                    batch=progress["batchId"],
                    batch_s=(progress.get("batchDuration") or 0) / 1000,
                    rows_per_s=float(progress.get("processedRowsPerSecond") or 0.0),
                    source=number,
                    log=log,
                    position=position.offset,
                    log_id=position.log_id,
                    records_behind=behind,
                )
            )
    return rows


def _positions(offset: Any) -> Mapping[str, LogPosition]:
    """The position in each log in an offset as Spark reports it, as text; none if it is not Triplicate's."""
    # PySpark 4.1 has Python's text of the offset in `lastProgress`, and JSON in the progress of a listener.
    value = None
    for read in (json.loads, ast.literal_eval) if isinstance(offset, str) else ():
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            value = read(offset)
            break
    if not isinstance(value, dict) or value.get("v") not in KNOWN_VERSIONS or not isinstance(value.get("logs"), dict):
        return {}
    ids = value.get("ids") or {}
    return {log: LogPosition(number, ids.get(log)) for log, number in value["logs"].items() if type(number) is int}
