"""The search for a linear order, held to written histories and to trying every order there is."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from triplicate_simulator.checkers.history import History, Verdict
from triplicate_simulator.checkers.linearizability import (
    Decision,
    Invoked,
    Refused,
    RegisterOperation,
    Returned,
    apply_operation,
    decide,
    judge_registers,
    registers_are_linearizable,
)


def read(value: int, begin: float, end: float) -> RegisterOperation:
    return RegisterOperation("read", (), begin, end, value)


def write(value: int, begin: float, end: float | None) -> RegisterOperation:
    return RegisterOperation("write", (value,), begin, end)


def swap(expected: int, new: int, done: bool, begin: float, end: float | None) -> RegisterOperation:
    return RegisterOperation("swap", (expected, new), begin, end, done if end is not None else None)


def add(result: int | None, begin: float, end: float | None) -> RegisterOperation:
    return RegisterOperation("add", (1,), begin, end, result)


GOOD: dict[str, list[RegisterOperation]] = {
    "nothing": [],
    "a read of the beginning": [read(0, 0, 1)],
    "one after another": [write(1, 0, 1), read(1, 2, 3), write(2, 4, 5), read(2, 6, 7)],
    "a read beside a write sees either": [write(1, 0, 10), read(0, 1, 2), read(1, 3, 4), read(1, 11, 12)],
    "writes beside one another end in either order": [write(1, 0, 10), write(2, 0, 10), read(1, 11, 12)],
    "a write that began earlier takes effect later": [write(1, 0, 10), write(2, 1, 3), read(2, 4, 5), read(1, 6, 7)],
    "an unknown write that nobody sees": [write(1, 0, None), read(0, 5, 6), read(0, 7, 8)],
    "an unknown write that is seen much later": [write(1, 0, None), read(0, 5, 6), write(2, 7, 8), read(2, 9, 10), read(1, 50, 51)],
    "an unknown swap that took effect": [swap(0, 5, True, 0, None), read(5, 1, 2)],
    "an unknown swap that could not take effect any more": [write(1, 0, 1), swap(0, 5, True, 2, None), read(1, 3, 4), write(2, 5, 6)],
    "a swap that failed, as another was first": [swap(0, 1, True, 0, 5), swap(0, 2, False, 0, 5), read(1, 6, 7)],
    "sums beside one another": [add(2, 0, 5), add(1, 0, 5), add(3, 0, 6), read(3, 7, 8)],
    "a sum that was never returned": [add(None, 0, 1), add(None, 0, None), read(1, 2, 3), add(3, 4, 5)],
    "what returns at the instant in which another begins": [write(1, 0, 1), read(0, 1, 2)],
}

BAD: dict[str, list[RegisterOperation]] = {
    "a value that nobody wrote": [read(7, 0, 1)],
    "a stale read": [write(1, 0, 1), read(0, 2, 3)],
    "a lost update": [read(0, 0, 1), read(0, 0, 1), swap(0, 1, True, 2, 3), swap(0, 2, True, 2, 3)],
    "a lost sum": [add(1, 0, 1), add(1, 2, 3)],
    "a read inversion": [write(1, 0, 10), read(1, 1, 2), read(0, 3, 4)],
    "an unknown write that is seen and then unseen": [write(1, 0, None), read(1, 1, 2), read(0, 3, 4)],
    "an unknown write that is seen before it was asked for": [read(1, 0, 1), write(1, 2, None)],
    "an unknown write that happens twice": [write(1, 0, None), read(1, 1, 2), write(2, 3, 4), read(1, 5, 6)],
    "a swap that should have failed": [write(1, 0, 1), swap(0, 2, True, 2, 3)],
    "a swap that should have been done": [swap(0, 2, False, 0, 1)],
    "two readers that disagree on the order": [write(1, 0, 1), write(2, 0, 9), read(2, 2, 3), read(1, 4, 5)],
    "a write undone": [write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)],
}


@pytest.mark.parametrize("name", GOOD)
def test_a_history_with_an_order_is_linearizable(name: str) -> None:
    assert decide(GOOD[name], 0).decision is Decision.LINEARIZABLE


@pytest.mark.parametrize("name", BAD)
def test_a_history_without_an_order_is_not(name: str) -> None:
    finding = decide(BAD[name], 0)
    assert finding.decision is Decision.NOT_LINEARIZABLE
    assert finding.stuck_at in BAD[name]


def test_the_order_found_is_one() -> None:
    for operations in GOOD.values():
        value: Any = 0
        order = decide(operations, 0).order
        for operation in order:
            fits, value = apply_operation(value, operation)
            assert fits
        assert {id(operation) for operation in operations if operation.returned_s is not None} <= {id(operation) for operation in order}


def test_a_search_that_takes_too_long_is_not_decided() -> None:
    operations = [write(number, 0, 100) for number in range(1, 12)] + [read(99, 101, 102)]
    assert decide(operations, 0, steps_max=50).decision is Decision.NOT_DECIDED
    assert decide(operations, 0).decision is Decision.NOT_LINEARIZABLE


def test_many_unknown_outcomes_do_not_hide_an_order() -> None:
    operations = [write(-number, number, None) for number in range(30)]
    for number in range(60):
        operations += [write(number, number, number + 0.5), read(number, number + 0.6, number + 0.9)]
    finding = decide(operations, 0)
    assert finding.decision is Decision.LINEARIZABLE
    assert finding.steps < 2000


def explained(operations: list[RegisterOperation], initial: Hashable) -> bool:
    """By trying every order of all known operations with every choice of unknown ones."""
    known = [operation for operation in operations if operation.returned_s is not None]
    unknown = [operation for operation in operations if operation.returned_s is None]
    for count in range(len(unknown) + 1):
        for choose_recoverers in combinations(unknown, count):
            for order in permutations([*known, *choose_recoverers]):
                if follows_time(order) and runs(order, initial):
                    return True
    return False


def follows_time(order: tuple[RegisterOperation, ...]) -> bool:
    pairs = [(earlier, later) for index, earlier in enumerate(order) for later in order[index + 1 :]]
    return all(later.returned_s is None or later.returned_s >= earlier.invoked_s for earlier, later in pairs)


def runs(order: tuple[RegisterOperation, ...], value: Any) -> bool:
    for operation in order:
        fits, value = apply_operation(value, operation)
        if not fits:
            return False
    return True


def an_operation() -> st.SearchStrategy[RegisterOperation]:
    small = st.integers(0, 2)

    def made(kind: str, one: int, other: int, begin: int, length: int, unknown: bool) -> RegisterOperation:
        end = None if unknown else float(begin + length)
        arguments: dict[str, tuple[int, ...]] = {"read": (), "write": (one,), "swap": (one, other), "add": (1,)}
        results: dict[str, Any] = {"read": one, "write": None, "swap": bool(other), "add": other + 1}
        return RegisterOperation(kind, arguments[kind], float(begin), end, None if unknown else results[kind])

    kinds = st.sampled_from(["read", "write", "swap", "add"])
    return st.builds(made, kinds, small, small, st.integers(0, 6), st.integers(0, 4), st.booleans())


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(an_operation(), max_size=5))
def test_the_search_agrees_with_trying_every_order(operations: list[RegisterOperation]) -> None:
    expected = Decision.LINEARIZABLE if explained(operations, 0) else Decision.NOT_LINEARIZABLE
    assert decide(operations, 0).decision is expected


def test_registers_are_judged_apart_and_refused_operations_count_for_nothing() -> None:
    history = History(
        [
            Invoked(0.0, 1, "a", "x", "write", (5,)),
            Invoked(0.0, 2, "b", "y", "write", (6,)),
            Refused(1.0, 2),
            Returned(1.0, 1),
            Invoked(2.0, 3, "a", "x", "read"),
            Invoked(2.0, 4, "a", "y", "read"),
            Returned(3.0, 3, 5),
            Returned(3.0, 4, 6),
        ]
    )
    verdict = Verdict("registers")
    registers_are_linearizable(history, verdict)
    assert verdict.decided == 3
    assert len(verdict.violations) == 1
    assert "register y" in verdict.violations[0]


def test_events_of_one_instant_happened_in_the_order_of_the_history() -> None:
    def violations(events: list[object]) -> int:
        verdict = Verdict("registers")
        registers_are_linearizable(History(events), verdict)
        return len(verdict.violations)

    write_1 = [Invoked(0.0, 1, "a", "x", "write", (1,)), Returned(1.0, 1)]
    assert violations([*write_1, Invoked(1.0, 2, "a", "x", "read"), Returned(1.0, 2, 0)]) == 1
    assert violations([write_1[0], Invoked(1.0, 2, "b", "x", "read"), write_1[1], Returned(1.0, 2, 0)]) == 0
    entered_late = [
        *write_1,
        Invoked(5.0, 3, "c", "y", "read"),
        Returned(5.0, 3, 0),
        Invoked(1.0, 2, "b", "x", "read"),
        Returned(6.0, 2, 0),
    ]
    assert violations(entered_late) == 0


def test_what_is_not_decided_is_counted_and_not_passed_over() -> None:
    history = History([Invoked(0.0, number, "a", "x", "write", (number,)) for number in range(9)])
    history.events += [Returned(50.0, number) for number in range(9)]
    history.events += [Invoked(60.0, 99, "a", "x", "read"), Returned(61.0, 99, 77)]
    verdict = Verdict("registers")
    judge_registers(history, verdict, {}, steps_max=10)
    assert (verdict.decided, verdict.violations, verdict.undecided) == (0, [], 1)
