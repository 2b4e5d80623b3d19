"""Which function belongs to which stage of a statement, and the clock that runs in them.

`TABLE` is the one place that names functions of the library. A name that is gone is an error which says so: adapt the table when the code
moves. The functions are wrapped from outside, in the process that measures; the library knows nothing of it.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import statistics
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from typing import Any, NamedTuple

STAGES = ("socket", "parse", "plan", "SQLite", "capture", "log", "answer")
CALIBRATIONS = 9
CALIBRATION_CALLS = 500
REST = "the rest"
_PG = "triplicate.sql.pg.protocol"
_EXECUTOR = "triplicate.sql.executor"
_CORE = "triplicate.sql.core"
TABLE: dict[str, tuple[str, ...]] = {
    "socket": (
        f"{_PG}.message_stream:MessageStream.data_received",
        f"{_PG}.message_stream:MessageStream.flush_nowait",
    ),
    "parse": (
        f"{_PG}.wire:MessageBuffer.feed",
        f"{_PG}.wire:MessageBuffer.next_message",
        f"{_PG}.rounds:RoundBuffer.find_round",
        f"{_PG}.wire:decode_message",
        f"{_PG}.query_shapes:shape_of",
        f"{_PG}.plans:split_query",
        f"{_PG}.plans:parse_statement",
    ),
    "plan": (
        f"{_PG}.prepared_statements:prepare_statement",
        f"{_PG}.prepared_statements:portal_of_shape",
        f"{_PG}.prepared_statements:update_plan",
        f"{_PG}.prepared_statements:bind",
        f"{_PG}.prepared_statements:engine_parameters",
    ),
    "SQLite": (
        f"{_EXECUTOR}.writer_connection:WriterConnection.begin",
        f"{_EXECUTOR}.writer_connection:WriterConnection.try_begin",
        f"{_EXECUTOR}.writer_connection:WriterConnection.begin_further",
        f"{_EXECUTOR}.statement_batches:BatchRun.run_short",
        f"{_EXECUTOR}.statement_batches:BatchRun.run_all",
        f"{_EXECUTOR}.writer_connection:WriterConnection.end_batch",
        f"{_EXECUTOR}.writer_connection:WriterConnection.checkpoint",
        "triplicate.sql.storage.sqlite_file:record_batch",
        f"{_EXECUTOR}.writer_connection:WriterConnection.commit",
        f"{_EXECUTOR}.loop_reader:LoopReader.read",
        f"{_EXECUTOR}.loop_reader:LoopReader.examine",
        f"{_EXECUTOR}.reader_connection:ReaderConnection.start",
        f"{_EXECUTOR}.reader_connection:ReaderConnection.fetch",
    ),
    "capture": (
        f"{_EXECUTOR}.change_capture:ChangeCapture._on_change",
        f"{_EXECUTOR}.change_capture:ChangeCapture.end_statement",
        f"{_EXECUTOR}.change_capture:ChangeCapture.end_transaction",
        f"{_EXECUTOR}.change_capture:ChangeCapture.operations",
        f"{_CORE}.batch_builder:BatchBuilder.add",
    ),
    "log": (
        "triplicate.log.writing.log_writer:LogWriter.append_entry",
        "triplicate.log.writing.log_writer:LogWriter.noop",
        "triplicate.replica.leader_reads:LeaderReads.confirm",
    ),
    "answer": (
        f"{_PG}.prepared_statements:row_description",
        f"{_PG}.row_encoder:RowEncoder.encode",
        f"{_PG}.prepared_statements:command_tag",
        f"{_PG}.portal_runner:PortalRunner.execute",
    ),
    REST: (f"{_PG}.conversation:Conversation._advance",),
}
"""Stage → ``module:name`` or ``module:Class.name`` of its functions.

Time in a function of another stage that is called inside counts there. `REST` is for code between the stages that runs inside one of them:
messages are served in the callback that receives them.
"""


class StageMissing(Exception):
    """The table names a function that the library does not have."""


class _Timeline:
    """The stage that one thread is in, and since when. The last place of each list is time outside of every stage."""

    __slots__ = ("children", "clock", "entries", "since", "stage", "totals")

    def __init__(self, clock: Callable[[], int], count: int) -> None:
        self.clock = clock
        self.stage = count
        self.since = clock()
        self.totals = [0] * (count + 1)
        self.entries = [0] * (count + 1)
        self.children = [0] * (count + 1)

    def enter(self, stage: int) -> int:
        """Begin with a stage; the one that was left."""
        now = self.clock()
        left = self.stage
        self.totals[left] += now - self.since
        self.children[left] += 1
        self.entries[stage] += 1
        self.stage, self.since = stage, now
        return left

    def leave(self, back: int) -> None:
        """Go back to the stage that `enter` has left."""
        now = self.clock()
        self.totals[self.stage] += now - self.since
        self.stage, self.since = back, now


class StageClock:
    """Self time of each stage, over all threads, in processor time: threads wait for disks, for processors and for the interpreter's lock.

    A reading of that clock is a system call of almost a microsecond, so each wrapped call costs more than the call. The cost of an empty
    function is measured first, inside of the wrapper for the stage and outside of it for the caller, and subtracted for each call.

    Args:
        clock: nanoseconds of the calling thread.
    """

    def __init__(self, stages: tuple[str, ...] = STAGES, clock: Callable[[], int] = time.thread_time_ns) -> None:
        self._stages = stages
        self._clock = clock
        self._local = threading.local()
        self._timelines: list[_Timeline] = []
        self._lock = threading.Lock()
        self.inside_ns, self.outside_ns = 0.0, 0.0
        self._calibrate()

    def _calibrate(self) -> None:
        """Measure the cost of the wrapper, as the median of several runs."""
        empty = self.wrap(self._stages[0], _nothing)
        line = self._timeline()
        found: list[tuple[float, float]] = []
        for _ in range(CALIBRATIONS):
            earlier, began = line.totals[0], self._clock()
            for _ in range(CALIBRATION_CALLS):
                empty()
            whole, inside = self._clock() - began, line.totals[0] - earlier
            found.append((inside / CALIBRATION_CALLS, (whole - inside) / CALIBRATION_CALLS))
        self.inside_ns, self.outside_ns = (statistics.median(costs) for costs in zip(*found, strict=True))
        self._timelines.clear()
        self._local = threading.local()

    def wrap(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function with the clock around it."""
        number = (*self._stages, REST).index(stage)
        timeline = self._timeline
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            def start(*arguments: Any, **named: Any) -> _TimedCoroutine:
                return _TimedCoroutine(function(*arguments, **named), number, timeline)

            return start

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            line = timeline()
            outer = line.enter(number)
            try:
                return function(*arguments, **named)
            finally:
                line.leave(outer)

        return call

    def _timeline(self) -> _Timeline:
        line: _Timeline | None = getattr(self._local, "line", None)
        if line is None:
            line = self._local.line = _Timeline(self._clock, len(self._stages))
            with self._lock:
                self._timelines.append(line)
        return line

    def seconds(self) -> dict[str, float]:
        """Seconds of each stage since the process began, without the cost of the clock."""
        with self._lock:
            lines = list(self._timelines)
        found = {}
        for number, stage in enumerate(self._stages):
            spent = sum(line.totals[number] for line in lines)
            cost = sum(line.entries[number] * self.inside_ns + line.children[number] * self.outside_ns for line in lines)
            found[stage] = (spent - cost) / 1e9
        return found

    def cost_s(self) -> float:
        """Seconds that the clock has cost."""
        with self._lock:
            return sum(sum(line.entries) for line in self._timelines) * (self.inside_ns + self.outside_ns) / 1e9

    def calls(self) -> dict[str, int]:
        """Calls of each stage's functions since the process began; each step of a coroutine is one."""
        with self._lock:
            lines = list(self._timelines)
        return {stage: sum(line.entries[number] for line in lines) for number, stage in enumerate(self._stages)}


def _nothing() -> None:
    pass


class _TimedCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine whose steps run with the clock of a stage; its waits do not."""

    __slots__ = ("_number", "_timeline", "_work")

    def __init__(self, work: Coroutine[Any, Any, Any], number: int, timeline: Callable[[], _Timeline]) -> None:
        self._work = work
        self._number = number
        self._timeline = timeline

    def send(self, value: Any) -> Any:
        return self._step(self._work.send, value)

    def throw(self, *error: Any) -> Any:
        return self._step(self._work.throw, *error)

    def _step(self, step: Callable[..., Any], *arguments: Any) -> Any:
        line = self._timeline()
        outer = line.enter(self._number)
        try:
            return step(*arguments)
        finally:
            line.leave(outer)

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self

    def __iter__(self) -> _TimedCoroutine:
        return self

    def __next__(self) -> Any:
        return self.send(None)


def install(clock: StageClock, table: Mapping[str, tuple[str, ...]] = TABLE, prefix: str = "triplicate") -> None:
    """Wrap every function of the table, also where other modules have imported it by name. To be called before any object is made.

    Raises:
        StageMissing: the library does not have a function of the table.
    """
    for place in [find(stage, name) for stage, names in table.items() for name in names]:
        wrapped = clock.wrap(place.stage, place.function)
        setattr(place.holder, place.name, wrapped)
        if inspect.ismodule(place.holder):
            _replace_imported(place.function, wrapped, prefix)


class StagePlace(NamedTuple):
    """A function of the table, and the class or module that has it under a name."""

    stage: str
    holder: Any
    name: str
    function: Callable[..., Any]


def find(stage: str, name: str) -> StagePlace:
    """The function of a name such as ``module:Class.name``.

    Raises:
        StageMissing: the library does not have it, or it is no plain function or coroutine function.
    """
    module_name, _, path = name.partition(":")
    *outer, last = path.split(".")
    try:
        holder: Any = importlib.import_module(module_name)
        for part in outer:
            holder = getattr(holder, part)
        found = inspect.getattr_static(holder, last)
    except (ImportError, AttributeError):
        found = None
    if not inspect.isfunction(found) or inspect.isgeneratorfunction(found) or inspect.isasyncgenfunction(found):
        raise StageMissing(f"stage {stage} names {name}, which is no function of the library; adapt TABLE in benchmarks/sql/stages.py")
    return StagePlace(stage, holder, last, found)


def _replace_imported(found: object, wrapped: object, prefix: str) -> None:
    """Replace a function in the modules that have imported it by name."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] == prefix:
            for key, value in list(vars(module).items()):
                if value is found:
                    setattr(module, key, wrapped)
