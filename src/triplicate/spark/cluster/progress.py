"""The positions at which reading begins, and the lost records: a checkpoint or option is compared with the logs' state. Pure.

A log is identified by its id, not by its name. A log that is deleted and created again under the same name begins at offset 0, and old
offsets are meaningless in it. Losses are returned; the option `failOnDataLoss` decides whether they are errors.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from triplicate.errors import ArgumentError, ConfigError, LogReplaced, NoSuchLog, OffsetGap, OffsetTruncated, TriplicateError
from triplicate.spark.core.given_options import EARLIEST, StartingPoint
from triplicate.spark.core.log_options import LogReadOptions
from triplicate.spark.core.offsets import LogPosition, LogPositions

ALLOW = "Set failOnDataLoss=false"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogState:
    """The state of a log: its id, the first readable offset, and the offset after the last."""

    log_id: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class DataLoss:
    """Records of a log that should be read but are lost.

    Args:
        error: raised unless loss is allowed.
        reached: the end at or beyond which the log would have no loss, if its end matters.
        certain: True if the loss does not depend on the log's state. Otherwise a stale metadata server can be the cause.
    """

    log: str
    error: TriplicateError
    reached: int = 0
    certain: bool = False


def resume(
    start: LogPositions, states: Mapping[str, LogState], read: LogReadOptions, *, keeps: bool = True
) -> tuple[LogPositions, list[DataLoss]]:
    """The beginning of each log in the next batch.

    Args:
        start: the position of the stream.
        states: the states of the logs that are read now. A log new to the stream is read from its first record.
        read: says which logs are read, of those that exist.
        keeps: whether the end of the batch keeps the positions of logs that are not read now.
    """
    begins: dict[str, LogPosition] = {}
    losses: list[DataLoss] = []
    for log, state in states.items():
        begin, loss = _begin(log, start.get(log), state)
        begins[log] = LogPosition(begin, state.log_id)
        losses += loss
    gone = unread(start.logs, states)
    losses += [_deleted(log, at) if read.reads(log) else _not_read(log, at, kept=keeps) for log, at in gone.items()]
    return LogPositions(begins, {**unread(start.left, states), **gone}), losses


def end_of_batch(start: LogPositions, resumed: LogPositions, ends: Mapping[str, int], *, first: bool) -> LogPositions:
    """The end of the next batch; `start` itself if nothing changes.

    Args:
        resumed: the beginnings of the batch, from `resume`.
        first: whether the batch is the first of its stream, so that no checkpoint holds `start`.
    """
    logs = {log: LogPosition(ends[log], begin.log_id) for log, begin in resumed.logs.items()}
    if logs == start.logs and resumed.left == start.left:
        return start
    return LogPositions(
        logs, resumed.left, {log: begin.offset for log, begin in resumed.logs.items() if first or _is_new(start.get(log), begin)}
    )


def _is_new(checkpointed: LogPosition | None, begin: LogPosition) -> bool:
    """Whether a log begins at another position than the checkpoint's."""
    return (
        checkpointed is None
        or checkpointed.offset != begin.offset
        or (begin.log_id is not None and is_another(checkpointed.log_id, begin.log_id))
    )


def is_another(known_id: str | None, log_id: str) -> bool:
    """Whether a log is not the one in a checkpoint. Older checkpoints have no ids."""
    return known_id is not None and known_id != log_id


def unread(positions: Mapping[str, LogPosition], logs: Container[str]) -> dict[str, LogPosition]:
    """The positions in logs that are not read now."""
    return {log: position for log, position in positions.items() if log not in logs}


def _begin(log: str, checkpointed: LogPosition | None, state: LogState) -> tuple[int, list[DataLoss]]:
    if checkpointed is None:
        return state.first, []
    if is_another(checkpointed.log_id, state.log_id):
        return state.first, [DataLoss(log, _replaced(log, checkpointed, state))]
    if checkpointed.offset > state.end:
        begin = _behind_shorter(checkpointed, state)
        return begin, [DataLoss(log, _shorter(log, checkpointed.offset, state, begin), checkpointed.offset)]
    if checkpointed.offset < state.first:
        return state.first, [DataLoss(log, _truncated(log, checkpointed.offset, state))]
    return checkpointed.offset, []


def _behind_shorter(checkpointed: LogPosition, state: LogState) -> int:
    """Where reading continues in a log that ends before a position. Without an id it is most likely another log with the same name. With an
    id, the log has lost its last records."""
    return state.first if checkpointed.log_id is None else state.end


def batch_begins(start: LogPositions, end: LogPositions, states: Mapping[str, LogState]) -> tuple[dict[str, int], list[DataLoss]]:
    """The beginning of each log in a batch that was decided before, perhaps by an earlier process.

    Losses between `start` and `end` were reported when the batch was decided. This function reports later losses.

    Args:
        states: the states of the logs of `end` that exist.

    Returns:
        only logs with records to read, up to the batch's end or the log's.
    """
    begins: dict[str, int] = {}
    losses: list[DataLoss] = []
    # An end that equals the start describes the batch before.
    begun = end.begun if start != end else {}
    for log, stop in end.logs.items():
        state, known = states.get(log), start.get(log)
        if state is None or is_another(stop.log_id, state.log_id):
            losses.append(DataLoss(log, _replaced(log, stop, state)))
            continue
        if stop.offset > state.end:
            losses.append(DataLoss(log, _shorter(log, stop.offset, state, _behind_shorter(stop, state)), stop.offset))
            if stop.log_id is None:
                continue
        begin = begun[log] if log in begun else _known_begin(known, stop, state)
        if begin >= stop.offset:
            continue
        if begin < state.first:
            losses.append(DataLoss(log, _truncated(log, begin, state)))
        if max(begin, state.first) < min(stop.offset, state.end):
            begins[log] = max(begin, state.first)
    return begins, losses


def decided_losses(start: LogPositions, end: LogPositions, read: LogReadOptions) -> list[DataLoss]:
    """The losses between the two ends of a batch whose `end` was decided without `start`.

    PySpark 4.1 requests an end without the position of the stream, so `resume` has not seen both.
    """
    states = {log: LogState(stop.log_id or "", 0, stop.offset) for log, stop in end.logs.items()}
    return resume(start, states, read, keeps=False)[1]


def _known_begin(known: LogPosition | None, stop: LogPosition, state: LogState) -> int:
    """The beginning of a batch whose end does not contain it. A log that joined the stream with this batch, or was created again, is read
    from its first record. PySpark 4.1 does not keep where that was when the batch was decided."""
    if known is None or (known.log_id is not None and is_another(stop.log_id, known.log_id)):
        return state.first
    # A batch that ends before it begins, with a start without log id: the log was created again.
    without_id = known.log_id is None and stop.log_id is not None
    return state.first if without_id and known.offset > stop.offset else known.offset


def not_read(end: LogPositions, read: LogReadOptions) -> list[DataLoss]:
    """The losses of logs in a decided batch that the options do not name any more."""
    return [_not_read(log, position) for log, position in end.logs.items() if not read.reads(log)]


def starting_positions(point: StartingPoint, states: Mapping[str, LogState]) -> tuple[dict[str, int], list[DataLoss]]:
    """The first offset to read of each log.

    Args:
        point: without times.
    """
    starts: dict[str, int] = {}
    losses: list[DataLoss] = []
    for log, state in states.items():
        if point.word is not None:
            starts[log] = state.first if point.word == EARLIEST else state.end
            continue
        requested = point.offsets[log]
        starts[log] = min(max(state.first, requested), state.end)
        if requested < state.first:
            message = f"log {log!r} begins at offset {state.first}; {requested} was truncated. {ALLOW} to begin at {state.first}"
            losses.append(DataLoss(log, OffsetTruncated(message)))
        elif requested > state.end:
            message = f"log {log!r} ends at offset {state.end}; startingOffsets says {requested}. {ALLOW} to begin at {state.end}"
            losses.append(DataLoss(log, ArgumentError(message), requested))
    return starts, losses


def ending_positions(
    point: StartingPoint, starts: Mapping[str, int], states: Mapping[str, LogState]
) -> tuple[dict[str, int], list[DataLoss]]:
    """The end offset (exclusive) of each log: the readable end, or an earlier offset.

    Args:
        point: without times.
    """
    if point.word is not None:
        return {log: state.end for log, state in states.items()}, []
    # An end beyond the log's end is not an error: reading stops at the log's end.
    ends = {log: min(state.end, point.offsets[log]) for log, state in states.items()}
    losses = [
        DataLoss(
            log,
            OffsetTruncated(
                f"log {log!r} begins at offset {states[log].first}; all up to {ends[log]} was truncated. {ALLOW} to read nothing"
            ),
        )
        for log in states
        if ends[log] < states[log].first
    ]
    return {log: max(starts[log], end) for log, end in ends.items()}, losses


def gaps(log: str, planned: Sequence[tuple[int, int]], start: int, end: int) -> list[DataLoss]:
    """The losses between two offsets of a log.

    Args:
        planned: first offset and end of the readable ranges, in order.
    """
    losses: list[DataLoss] = []
    for first, last in [*planned, (end, end)]:
        if start < first:
            message = f"offsets {start} to {first - 1} of log {log!r} are lost with their ledger. {ALLOW} to read on at {first}"
            losses.append(DataLoss(log, OffsetGap(message)))
        start = last
    return losses


def _replaced(log: str, known: LogPosition, state: LogState | None) -> TriplicateError:
    now = "and there is none of this name now" if state is None else f"and begins at offset {state.first}, with id {state.log_id}"
    further = "continue without it" if state is None else "read the new log from its beginning"
    return LogReplaced(
        f"log {log!r} was deleted and created again: the checkpoint is at offset {known.offset} of the log with id {known.log_id}, "
        f"{now}. The records of the old log that were not read are lost. Begin with a new checkpoint, or read on: {ALLOW} to {further}"
    )


def _shorter(log: str, offset: int, state: LogState, begin: int) -> TriplicateError:
    return LogReplaced(
        f"log {log!r} ends at offset {state.end}, the stream is at {offset}: the log was deleted and created again, or its metadata was "
        f"restored from a copy. Begin with a new checkpoint, or read on: {ALLOW} to continue at {begin}"
    )


def _truncated(log: str, offset: int, state: LogState) -> TriplicateError:
    return OffsetTruncated(
        f"log {log!r} begins at offset {state.first}, the stream is at {offset}: records were truncated before they were "
        f"read. {ALLOW} to continue without them"
    )


def _not_read(log: str, position: LogPosition, *, kept: bool = True) -> DataLoss:
    again = "continues there" if kept else "is read from its first record, since this PySpark does not let it be kept"
    return DataLoss(
        log,
        ConfigError(
            f"triplicate: the checkpoint holds log {log!r} at offset {position.offset}, and the options do not name it: its further "
            "records would not be read. Name it, use a new checkpoint, or set failOnDataLoss=false for one run: the position is "
            f"{'kept' if kept else 'dropped'}, and a log that is named again {again}"
        ),
        certain=True,
    )


def _deleted(log: str, position: LogPosition) -> DataLoss:
    """Of a log that the pattern of the options matches; one that they name raises NoSuchLog where its state is read."""
    return DataLoss(
        log,
        NoSuchLog(
            f"log {log!r} was deleted: the stream is at its offset {position.offset}, and the records of it that were not read are lost. "
            f"{ALLOW} to continue without it"
        ),
        certain=True,
    )


def report(losses: Sequence[DataLoss], fail_on_data_loss: bool) -> None:
    """Raise the first loss, or warn of each."""
    for loss in losses:
        if fail_on_data_loss:
            raise loss.error
        _logger.warning("triplicate: records are lost, and failOnDataLoss is false: %s", loss.error)
