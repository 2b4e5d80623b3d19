"""Decides whether a history of register operations is linearizable: the search of Wing and Gong, with Lowe's cache of visited states.

A history is linearizable when every operation can be assigned one instant between its invocation and its return so that, run in the order
of these instants, each gives its recorded result. Registers are independent and the property is local: each register is judged alone. An
operation of unknown outcome never returns: it may take effect at any instant after its invocation, or never.

The search picks an operation that may be next (no unpicked operation returned before it was invoked) and whose result fits the register's
value, then continues. Where none fits it backtracks. The set of picked operations and the value they led to determine all that can follow,
so no such pair is visited twice. The search is bounded: a register on which it gives up is "not decided".

Sources: J. Wing, C. Gong, "Testing and Verifying Concurrent Objects", 1993; G. Lowe, "Testing for Linearizability", 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from triplicate_simulator.checkers.history import History, Verdict

STEPS_MAX = 200_000
"""Operations that the search picks for one register before it gives up."""


@dataclass(frozen=True, slots=True)
class Invoked:
    """A client invoked an operation on a register.

    Kinds: ``read`` (returns the value), ``write`` (new value), ``swap`` (compare and set: expected value, new value; returns whether it
    did), ``add`` (increment; returns the new value), ``append`` (to a tuple: its new last item; returns the new tuple).
    """

    time_s: float
    operation: int
    """A number that is unique in the history."""
    client: str
    register: str
    kind: str
    arguments: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Returned:
    """The operation was done. `result` is None where the client learned no more than that; a read always has a result."""

    time_s: float
    operation: int
    result: Any = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The operation was reported as not done, for good."""

    time_s: float
    operation: int


NEVER = (float("inf"), 0)
Instant = tuple[float, int]
"""A time, and the position among the events of that time."""
AT_ONCE = 1 << 62
"""The position after every other: an operation that returns at the instant at which another begins is concurrent to it, unless their order
is known."""


@dataclass(frozen=True, slots=True)
class RegisterOperation:
    """One operation on one register, with its outcome."""

    kind: str
    arguments: tuple[Hashable, ...]
    invoked_s: float
    returned_s: float | None
    """None: unknown."""
    result: Any = None
    client: str = ""
    invoked_place: int = 0
    returned_place: int = AT_ONCE

    @property
    def begin(self) -> Instant:
        """Instant of its invocation."""
        return self.invoked_s, self.invoked_place

    @property
    def end(self) -> Instant:
        """Instant of its return; `NEVER` where that is unknown."""
        return NEVER if self.returned_s is None else (self.returned_s, self.returned_place)

    def __str__(self) -> str:
        arguments = ", ".join(str(argument) for argument in self.arguments)
        if self.returned_s is None:
            return f"{self.client} {self.kind}({arguments}) from {self.invoked_s:.6f}, outcome unknown"
        return f"{self.client} {self.kind}({arguments}) = {self.result} from {self.invoked_s:.6f} to {self.returned_s:.6f}"


class Decision(Enum):
    """Result of a search."""

    LINEARIZABLE = "linearizable"
    NOT_LINEARIZABLE = "not linearizable"
    NOT_DECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """A decision, with the longest order that fits and the operation that cannot follow it."""

    decision: Decision
    steps: int
    order: tuple[RegisterOperation, ...] = ()
    stuck_at: RegisterOperation | None = None


def apply_operation(value: Any, operation: RegisterOperation) -> tuple[bool, Any]:
    """Whether the operation gives its result at this value, and the value after it.

    Raises:
        ValueError: its kind is unknown.
    """
    known = operation.returned_s is not None and operation.result is not None
    match operation.kind:
        case "read":
            return operation.returned_s is None or operation.result == value, value
        case "write":
            return True, operation.arguments[0]
        case "swap":
            expected, new = operation.arguments
            done = value == expected
            return not known or operation.result == done, new if done else value
        case "add" | "append":
            (more,) = operation.arguments
            after = value + more if operation.kind == "add" else (*value, more)
            return not known or operation.result == after, after
        case _:
            raise ValueError(f"no operation of kind {operation.kind!r} is known")


Apply = Callable[[Any, RegisterOperation], tuple[bool, Any]]
"""Whether an operation gives its result at a value, and the value after it. A value is hashable."""


class _RegisterSearch:
    """The search of one register. Operations are numbered: those that returned by invocation, then the unknown ones."""

    def __init__(self, operations: Sequence[RegisterOperation], apply: Apply) -> None:
        self.apply = apply
        ordered = sorted(operations, key=lambda operation: operation.begin)
        self.known = [operation for operation in ordered if operation.returned_s is not None]
        # An unknown read changes nothing and has no result.
        unknown = [operation for operation in ordered if operation.returned_s is None and operation.kind != "read"]
        self.all = [*self.known, *unknown]
        self.goal = (1 << len(self.known)) - 1

    def candidates(self, picked: int) -> Iterator[int]:
        """Operations that may be next: no unpicked operation returned before they were invoked. Known ones come first."""
        horizon = NEVER
        possible: list[int] = []
        index = (~picked & (picked + 1)).bit_length() - 1  # the first that is not picked
        for number in range(index, len(self.known)):
            operation = self.known[number]
            if operation.begin > horizon:
                break
            if not picked >> number & 1:
                possible.append(number)
                horizon = min(horizon, operation.end)
        for number in possible:
            if self.all[number].begin <= horizon:
                yield number
        for number in range(len(self.known), len(self.all)):
            if not picked >> number & 1 and self.all[number].begin <= horizon:
                yield number

    def run(self, initial: Hashable, steps_max: int) -> SearchOutcome:
        steps, picked, value = 0, 0, initial
        seen: set[tuple[int, Hashable]] = {(0, initial)}
        path: list[tuple[int, Iterator[int], int, Hashable]] = []
        best: list[int] = []
        waiting = self.candidates(0)
        while picked & self.goal != self.goal:
            for number in waiting:
                fits, after = self.apply(value, self.all[number])
                state = (picked | 1 << number, after)
                if fits and state not in seen:
                    break
            else:
                if not path:
                    return self._failure(Decision.NOT_LINEARIZABLE, steps, best)
                _, waiting, picked, value = path.pop()
                continue
            steps += 1
            if steps > steps_max:
                return self._failure(Decision.NOT_DECIDED, steps, best)
            seen.add(state)
            path.append((number, waiting, picked, value))
            picked, value = state
            waiting = self.candidates(picked)
            if len(path) > len(best):
                best = [step[0] for step in path]
        return SearchOutcome(Decision.LINEARIZABLE, steps, tuple(self.all[step[0]] for step in path))

    def _failure(self, decision: Decision, steps: int, best: Sequence[int]) -> SearchOutcome:
        left = [operation for number, operation in enumerate(self.known) if number not in best]
        stuck_at = min(left, key=lambda operation: operation.end, default=None)
        return SearchOutcome(decision, steps, tuple(self.all[number] for number in best), stuck_at)


def decide(
    operations: Sequence[RegisterOperation], initial: Hashable, steps_max: int = STEPS_MAX, apply: Apply = apply_operation
) -> SearchOutcome:
    """Whether an order explains all operations on one register whose first value was `initial`.

    Args:
        apply: what the operations do. Those of kind ``read`` change nothing.
    """
    return _RegisterSearch(operations, apply).run(initial, steps_max)


def operations_of(history: History) -> dict[str, list[RegisterOperation]]:
    """The operations of a history by register, without refused ones. Events of one instant happened in the order of the history. An
    invocation that was recorded after its time comes first in its instant."""
    invoked: dict[int, tuple[Invoked, int]] = {}
    ends: dict[int, tuple[Returned | Refused, int]] = {}
    now_s = 0.0
    for place, event in enumerate(history.of(Invoked, Returned, Refused), 1):
        if isinstance(event, Invoked):
            invoked[event.operation] = event, place if event.time_s >= now_s else 0
            now_s = max(now_s, event.time_s)
        elif isinstance(event, Returned | Refused):
            ends.setdefault(event.operation, (event, place))
            now_s = max(now_s, event.time_s)
    found: dict[str, list[RegisterOperation]] = {}
    for number, (begin, begin_place) in invoked.items():
        end, end_place = ends.get(number, (None, 0))
        if isinstance(end, Refused):
            continue
        returned_s, result = (None, None) if end is None else (end.time_s, end.result)
        operation = RegisterOperation(begin.kind, begin.arguments, begin.time_s, returned_s, result, begin.client, begin_place, end_place)
        found.setdefault(begin.register, []).append(operation)
    return found


def judge_registers(history: History, verdict: Verdict, initial: Mapping[str, Hashable], steps_max: int = STEPS_MAX) -> None:
    """Judge every register of a history by itself. A register on which the search gave up counts as undecided.

    Args:
        initial: first value of each register; 0 for registers that are not named.
    """
    for register, operations in operations_of(history).items():
        finding = decide(operations, initial.get(register, 0), steps_max)
        if finding.decision is Decision.NOT_DECIDED:
            verdict.undecided += 1
            continue
        verdict.decided += len(operations)
        if finding.decision is Decision.NOT_LINEARIZABLE:
            before = "; ".join(str(operation) for operation in finding.order[-3:])
            verdict.violations.append(
                f"register {register}: no order explains its {len(operations)} operations: after {len(finding.order)} of them"
                f" ({before or 'none'}) there is no place for {finding.stuck_at}"
            )


def registers_are_linearizable(history: History, verdict: Verdict) -> None:
    """Operations on each register, which begins as 0, behave as if done one at a time, each between its invocation and its return."""
    judge_registers(history, verdict, {})


BOUNDED_CHECKERS = ("registers_are_linearizable",)
"""Checkers whose search has a bound. `Verdict.undecided` counts the searches that they gave up."""
