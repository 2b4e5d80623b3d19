"""Where reading begins, and which records are lost: what a checkpoint or an option asks for against what the logs hold now. Pure.

A log is known by its id, not by its name: one that is deleted and made again under its name begins at offset 0 once more, and the old
offset means nothing in it. What is found lost is handed back; whether it is an error is for `failOnDataLoss` to say.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from triplicate.errors import ArgumentError, ConfigError, LogReplaced, OffsetGap, OffsetTruncated, TriplicateError
from triplicate.spark.core.offsets import LogPosition, LogPositions
from triplicate.spark.core.source_options import EARLIEST, LogReadOptions, StartingPoint

ALLOW = "Set failOnDataLoss=false"

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogState:
    """A log as it is now: its id, the first offset that may be read, and the offset after the last."""

    log_id: str
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class DataLoss:
    """Records of a log that were to be read and cannot be.

    Args:
        error: what is raised unless loss is allowed.
        reached: the end that the log would have to have for this to be no loss, where its end matters.
        certain: True where the state of the log has no part in it. Otherwise a look at a server that is behind may have feigned it.
    """

    log: str
    error: TriplicateError
    reached: int = 0
    certain: bool = False


def resume(start: LogPositions, states: Mapping[str, LogState], *, keeps: bool = True) -> tuple[LogPositions, list[DataLoss]]:
    """Where each log of the next batch begins.

    Args:
        start: where the stream stands.
        states: of the logs that are read now. One that the stream does not know is read from its first record.
        keeps: the end of the batch keeps the positions of logs that are not read now.
    """
    begins: dict[str, LogPosition] = {}
    losses: list[DataLoss] = []
    for log, state in states.items():
        begin, loss = _begin(log, start.get(log), state)
        begins[log] = LogPosition(begin, state.log_id)
        losses += loss
    gone = unread(start.logs, states)
    losses += [_not_read(log, position, kept=keeps) for log, position in gone.items()]
    return LogPositions(begins, {**unread(start.left, states), **gone}), losses


def end_of_batch(start: LogPositions, resumed: LogPositions, ends: Mapping[str, int], *, first: bool) -> LogPositions:
    """The end of the next batch, which is `start` itself where there is nothing to say.

    Args:
        resumed: where each log of the batch begins, as `resume` says.
        first: the batch is the first of its stream, so that no checkpoint holds `start`.
    """
    logs = {log: LogPosition(ends[log], begin.log_id) for log, begin in resumed.logs.items()}
    if logs == start.logs and resumed.left == start.left:
        return start
    return LogPositions(
        logs, resumed.left, {log: begin.offset for log, begin in resumed.logs.items() if first or _is_new(start.get(log), begin)}
    )


def _is_new(known: LogPosition | None, begin: LogPosition) -> bool:
    """Whether a log begins elsewhere than a checkpoint stands."""
    return known is None or known.offset != begin.offset or (begin.log_id is not None and is_another(known.log_id, begin.log_id))


def is_another(known_id: str | None, log_id: str) -> bool:
    """Whether a log is not the one of which a checkpoint tells. Older checkpoints do not say."""
    return known_id is not None and known_id != log_id


def unread(positions: Mapping[str, LogPosition], logs: Container[str]) -> dict[str, LogPosition]:
    """The positions in logs that are not among those read now."""
    return {log: position for log, position in positions.items() if log not in logs}


def _begin(log: str, known: LogPosition | None, state: LogState) -> tuple[int, list[DataLoss]]:
    if known is None:
        return state.first, []
    if is_another(known.log_id, state.log_id):
        return state.first, [DataLoss(log, _replaced(log, known, state))]
    if known.offset > state.end:
        begin = _behind_shorter(known, state)
        return begin, [DataLoss(log, _shorter(log, known.offset, state, begin), known.offset)]
    if known.offset < state.first:
        return state.first, [DataLoss(log, _truncated(log, known.offset, state))]
    return known.offset, []


def _behind_shorter(known: LogPosition, state: LogState) -> int:
    """Where reading goes on in a log that ends before a position. Without an id it is most likely another log of the name; with it, the log
    has lost its last records."""
    return state.first if known.log_id is None else state.end


def batch_begins(start: LogPositions, end: LogPositions, states: Mapping[str, LogState]) -> tuple[dict[str, int], list[DataLoss]]:
    """Where each log of a batch begins that has been decided before, perhaps by a process that has ended since.

    What was lost between `start` and `end` was said when the batch was decided; here counts what has happened since.

    Args:
        states: of the logs of `end`, without those that do not exist.

    Returns:
        only logs of which there is something to read, up to the batch's end or the log's.
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


def decided_losses(start: LogPositions, end: LogPositions) -> list[DataLoss]:
    """What is lost between the two ends of a batch, where `end` was decided without knowing `start`.

    PySpark 4.1 asks for an end without saying where the stream stands, so `resume` has not seen both.
    """
    states = {log: LogState(stop.log_id or "", 0, stop.offset) for log, stop in end.logs.items()}
    return resume(start, states, keeps=False)[1]


def _known_begin(known: LogPosition | None, stop: LogPosition, state: LogState) -> int:
    """Where a batch begins whose end does not say so. A log that joined the stream with it, or was begun again, is read from its first
    record; PySpark 4.1 does not tell where that was when the batch was decided."""
    if known is None or (known.log_id is not None and is_another(stop.log_id, known.log_id)):
        return state.first
    # A batch that ends before it begins, where the start does not say of which log it is: the log was begun again.
    without_id = known.log_id is None and stop.log_id is not None
    return state.first if without_id and known.offset > stop.offset else known.offset


def not_read(end: LogPositions, read: LogReadOptions) -> list[DataLoss]:
    """The logs of a batch that was decided before and that the options do not name any more."""
    return [_not_read(log, position) for log, position in unread(end.logs, read.logs).items()]


def starting_positions(read: LogReadOptions, point: StartingPoint, states: Mapping[str, LogState]) -> tuple[dict[str, int], list[DataLoss]]:
    """Offset at which each log is read from, as the option `startingOffsets` says."""
    starts: dict[str, int] = {}
    losses: list[DataLoss] = []
    for log in read.logs:
        state = states[log]
        if point.word is not None:
            starts[log] = state.first if point.word == EARLIEST else state.end
            continue
        wanted = point.offsets[log]
        starts[log] = min(max(state.first, wanted), state.end)
        if wanted < state.first:
            message = f"log {log!r} begins at offset {state.first}; {wanted} was truncated. {ALLOW} to begin at {state.first}"
            losses.append(DataLoss(log, OffsetTruncated(message)))
        elif wanted > state.end:
            message = f"log {log!r} ends at offset {state.end}; startingOffsets says {wanted}. {ALLOW} to begin at {state.end}"
            losses.append(DataLoss(log, ArgumentError(message), wanted))
    return starts, losses


def ending_positions(
    read: LogReadOptions, starts: Mapping[str, int], states: Mapping[str, LogState]
) -> tuple[dict[str, int], list[DataLoss]]:
    """Offset, exclusive, to which each log is read: what is readable now, or what the option `endingOffsets` asks for."""
    point = read.ending
    if point is None or point.word is not None:
        return {log: states[log].end for log in read.logs}, []
    # An end beyond the log's is no error: it is what there is now.
    ends = {log: min(states[log].end, point.offsets[log]) for log in read.logs}
    losses = [
        DataLoss(
            log,
            OffsetTruncated(
                f"log {log!r} begins at offset {states[log].first}; all up to {ends[log]} was truncated. {ALLOW} to read nothing"
            ),
        )
        for log in read.logs
        if ends[log] < states[log].first
    ]
    return {log: max(starts[log], end) for log, end in ends.items()}, losses


def gaps(log: str, planned: Sequence[tuple[int, int]], start: int, end: int) -> list[DataLoss]:
    """What is lost between two offsets of a log.

    Args:
        planned: first offset and end of the ranges that are there, in order.
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
    further = "go on without it" if state is None else "read the new log from its beginning"
    return LogReplaced(
        f"log {log!r} was deleted and made again: the checkpoint stands at offset {known.offset} of the log with id {known.log_id}, "
        f"{now}. What was not read of the old log is lost. Begin with a new checkpoint, or read on: {ALLOW} to {further}"
    )


def _shorter(log: str, offset: int, state: LogState, begin: int) -> TriplicateError:
    return LogReplaced(
        f"log {log!r} ends at offset {state.end}, the stream stands at {offset}: the log was deleted and made again, or its metadata was "
        f"restored from a copy. Begin with a new checkpoint, or read on: {ALLOW} to go on at {begin}"
    )


def _truncated(log: str, offset: int, state: LogState) -> TriplicateError:
    return OffsetTruncated(
        f"log {log!r} begins at offset {state.first}, the stream stands at {offset}: records were truncated before they were "
        f"read. {ALLOW} to go on without them"
    )


def _not_read(log: str, position: LogPosition, *, kept: bool = True) -> DataLoss:
    again = "goes on there" if kept else "is read from its first record, since this PySpark does not let it be kept"
    return DataLoss(
        log,
        ConfigError(
            f"triplicate: the checkpoint holds log {log!r} at offset {position.offset}, and the options do not name it: its further "
            "records would not be read. Name it, use a new checkpoint, or set failOnDataLoss=false for one run: the position is "
            f"{'kept' if kept else 'let go'}, and a log that is named again {again}"
        ),
        certain=True,
    )


def report(losses: Sequence[DataLoss], fail_on_data_loss: bool) -> None:
    """Raise the first loss, or warn of each."""
    for loss in losses:
        if fail_on_data_loss:
            raise loss.error
        _logger.warning("triplicate: records are lost, and failOnDataLoss is false: %s", loss.error)
