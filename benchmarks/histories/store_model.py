"""Keys of a store as a register of several cells: what commands and batches of Redis' protocol answer, and what they leave behind.

A group is some keys that batches change together. Its state is the tuple of their values; None stands for a key that is absent. An
operation on a group is one `RegisterOperation`: its arguments are conditions and steps, its result is the tuple of the steps' answers.
Since a group is judged as one register, a batch that is seen in part, or that meets another between two steps, has no place in any order.
Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from triplicate_simulator.checkers.linearizability import RegisterOperation

State = tuple[int | None, ...]
Answer = int | bool | None


@dataclass(frozen=True, slots=True)
class Step:
    """One command on one key of a group.

    Args:
        command: get, set, setnx, cas, del, incr, getset or getdel.
        value: the new value; of `cas` after `expected`.
    """

    command: str
    cell: int
    value: int | None = None
    expected: int | None = None

    @property
    def is_read(self) -> bool:
        return self.command == "get"

    def __str__(self) -> str:
        values = [str(value) for value in (self.expected, self.value) if value is not None]
        return f"{self.command} {' '.join([str(self.cell), *values])}"


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The condition of a watched transaction: a key has the value that was read after WATCH."""

    cell: int
    value: int | None

    def __str__(self) -> str:
        return f"if {self.cell} is {self.value}"


Part = Step | Unchanged


def empty_group(keys: int) -> State:
    """The state of a group none of whose keys exists."""
    return (None,) * keys


def apply_step(present: int | None, step: Step) -> tuple[Answer, int | None]:
    """The answer of a step at the present value of its key, and the value after it.

    Raises:
        ValueError: its command is unknown.
    """
    match step.command:
        case "get":
            return present, present
        case "set":
            return True, step.value
        case "setnx":
            return (True, step.value) if present is None else (False, present)
        case "cas":
            return (True, step.value) if present == step.expected else (False, present)
        case "del":
            return present is not None, None
        case "incr":
            after = (present or 0) + 1
            return after, after
        case "getset":
            return present, step.value
        case "getdel":
            return present, None
        case _:
            raise ValueError(f"no command {step.command!r} is known")


def apply_parts(state: Any, operation: RegisterOperation) -> tuple[bool, Any]:
    """Whether an operation on a group gives its answers at this state, and the state after it; for `decide`."""
    cells, answers = list(state), list[Answer]()
    is_known = operation.returned_s is not None
    for part in operation.arguments:
        if isinstance(part, Unchanged):
            if cells[part.cell] != part.value:
                return not is_known, state  # It would not have happened.
        elif isinstance(part, Step):
            answer, cells[part.cell] = apply_step(cells[part.cell], part)
            answers.append(answer)
    return not is_known or operation.result == tuple(answers), tuple(cells)


def operation_of(
    parts: tuple[Part, ...], invoked_s: float, returned_s: float | None, result: tuple[Answer, ...] | None, client: str
) -> RegisterOperation:
    """An operation of a client. One that only reads and has an unknown outcome needs no place in the order."""
    reads_only = all(isinstance(part, Step) and part.is_read for part in parts)
    return RegisterOperation("read" if reads_only else "change", parts, invoked_s, returned_s, result, client)
