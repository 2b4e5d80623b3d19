"""Is a history of operations on registers linearizable? A search in the manner of Wing and Gong, with Lowe's memory of what was tried.

A history is linearizable when every operation can be given one instant between its invocation and its return, so that, run in the order of
these instants, each gives the result that it gave. Registers are independent of one another, and the property is local: each register is
judged alone. An operation whose outcome is unknown never returns: it may take effect at any instant after its invocation, or never.

The search picks an operation that may be next (nothing unpicked returned before it was invoked) and whose result fits the register's
value, and goes on; where nothing fits it goes back. Which operations have been picked and what value they led to decides everything that
can follow, so no such pair is looked at twice. The search is bounded; a register on which it gives up is "not decided".

Sources: J. Wing, C. Gong, "Testing and Verifying Concurrent Objects", 1993; G. Lowe, "Testing for Linearizability", 2017.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from triplicate_simulator.checkers.history import History, Verdict

STEPS_MAX = 200_000
"""How many operations the search picks for one register before it gives up."""


@dataclass(frozen=True, slots=True)
class Invoked:
    """A client asked for an operation on a register.

    Kinds: ``read`` (returns the value), ``write`` (new value), ``swap`` (compare and set: expected value, new value; returns whether it
    did), ``add`` (what to add; returns the new value), ``append`` (to a tuple: its new last item; returns the new tuple).
    """

    time_s: float
    operation: int
    """A number of its own."""
    client: str
    register: str
    kind: str
    arguments: tuple[Hashable, ...] = ()


@dataclass(frozen=True, slots=True)
class Returned:
    """It was done. `result` None where the client was told no more than that (a read always tells)."""

    time_s: float
    operation: int
    result: Any = None


@dataclass(frozen=True, slots=True)
class Refused:
    """It was said not to have been done, and never to be."""

    time_s: float
    operation: int


NEVER = (float("inf"), 0)
Instant = tuple[float, int]
"""A time, and the place of what happened among all that happened at that very time."""
AT_ONCE = 1 << 62
"""The place after every other: what returns at the instant at which something begins is beside it, unless their order is known."""


@dataclass(frozen=True, slots=True)
class RegisterOperation:
    """One operation on one register, with what became of it."""

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
        """When it was invoked."""
        return self.invoked_s, self.invoked_place

    @property
    def end(self) -> Instant:
        """When it returned; never, where that is unknown."""
        return NEVER if self.returned_s is None else (self.returned_s, self.returned_place)

    def __str__(self) -> str:
        arguments = ", ".join(str(argument) for argument in self.arguments)
        if self.returned_s is None:
            return f"{self.client} {self.kind}({arguments}) from {self.invoked_s:.6f}, outcome unknown"
        return f"{self.client} {self.kind}({arguments}) = {self.result} from {self.invoked_s:.6f} to {self.returned_s:.6f}"


class Decision(Enum):
    """What a search found."""

    LINEARIZABLE = "linearizable"
    NOT_LINEARIZABLE = "not linearizable"
    NOT_DECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """A decision, with the furthest order that fits and the operation that cannot follow it."""

    decision: Decision
    steps: int
    order: tuple[RegisterOperation, ...] = ()
    stuck_at: RegisterOperation | None = None


def take_effect(value: Any, operation: RegisterOperation) -> tuple[bool, Any]:
    """Whether the operation, at this value, gives its result; and the value after it.

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


class _RegisterSearch:
    """One register's search. Operations are numbered: those that returned by their invocation, then the unknown ones."""

    def __init__(self, operations: Sequence[RegisterOperation]) -> None:
        ordered = sorted(operations, key=lambda operation: operation.begin)
        self.known = [operation for operation in ordered if operation.returned_s is not None]
        # An unknown read changes nothing and says nothing.
        unknown = [operation for operation in ordered if operation.returned_s is None and operation.kind != "read"]
        self.all = [*self.known, *unknown]
        self.goal = (1 << len(self.known)) - 1

    def candidates(self, picked: int) -> Iterator[int]:
        """What may be next: nothing that is not picked returned before it was invoked. What is known comes first."""
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
                fits, after = take_effect(value, self.all[number])
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


def decide(operations: Sequence[RegisterOperation], initial: Hashable, steps_max: int = STEPS_MAX) -> SearchOutcome:
    """Whether operations on one register, which began with the value `initial`, can be put into an order that explains them all."""
    return _RegisterSearch(operations).run(initial, steps_max)


def operations_of(history: History) -> dict[str, list[RegisterOperation]]:
    """The operations in a history by register, refused ones left out. Events of one instant happened in the order of the history; an
    invocation that was entered later than it happened comes first in its instant.
    """
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
    """Judge every register of a history by itself; one on which the search gave up is counted as undecided.

    Args:
        initial: what each register held at first; 0 for those that are not named.
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
    """Reads and writes of each register, which begins as 0, behave as if done one at a time, each between its beginning and its end."""
    judge_registers(history, verdict, {})
