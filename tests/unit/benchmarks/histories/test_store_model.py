"""Histories of groups of keys: what a store may answer passes, and each answer that it must not give is reported."""

from __future__ import annotations

import pytest

from benchmarks.histories.judge import Report, judge_keys
from benchmarks.histories.store_model import Answer, Part, Step, Unchanged, apply_parts, apply_step, empty_group, operation_of
from triplicate_simulator.checkers.linearizability import RegisterOperation

KEYS = 2
LEASE_S = 1.0
Operations = tuple[RegisterOperation, ...]


def did(begin: float, end: float | None, *parts: Part, answers: tuple[Answer, ...] = ()) -> RegisterOperation:
    return operation_of(parts, begin, end, None if end is None else answers, "client")


def judged(*operations: RegisterOperation) -> Report:
    report = Report()
    judge_keys({"group-1-0-0": operations}, {"group": empty_group(KEYS)}, report, apply_parts)
    return report


GET = Step("get", 0)
SET = did(0, 1, Step("set", 0, 1000), answers=(True,))
BOTH = did(0, 1, Step("set", 0, 1000), Step("set", 1, 1000), answers=(True, True))
INCREMENT = did(2, None, Step("incr", 0))


@pytest.mark.parametrize(
    ("step", "present", "answer", "after"),
    [
        (Step("get", 0), 7, 7, 7),
        (Step("get", 0), None, None, None),
        (Step("set", 0, 1000), 7, True, 1000),
        (Step("setnx", 0, 1000), 7, False, 7),
        (Step("setnx", 0, 1000), None, True, 1000),
        (Step("cas", 0, 1000, 7), 7, True, 1000),
        (Step("cas", 0, 1000, 7), 8, False, 8),
        (Step("cas", 0, 1000, 7), None, False, None),
        (Step("del", 0), 7, True, None),
        (Step("del", 0), None, False, None),
        (Step("incr", 0), 7, 8, 8),
        (Step("incr", 0), None, 1, 1),
        (Step("getset", 0, 1000), 7, 7, 1000),
        (Step("getdel", 0), 7, 7, None),
    ],
)
def test_a_step_answers_and_leaves_behind(step: Step, present: int | None, answer: Answer, after: int | None) -> None:
    assert apply_step(present, step) == (answer, after)


@pytest.mark.parametrize(
    "operations",
    [
        (SET, did(2, 3, GET, answers=(1000,))),
        (SET, did(0.5, 3, GET, answers=(None,))),
        (SET, INCREMENT, did(3, 4, GET, answers=(1001,)), did(5, 6, GET, answers=(1001,))),
        (SET, INCREMENT, did(3, 4, GET, answers=(1000,)), did(5, 6, GET, answers=(1001,))),
        (BOTH, did(0.5, 3, GET, Step("get", 1), answers=(None, None))),
        (SET, did(2, 3, Unchanged(0, 1000), Step("set", 0, 2000), answers=(True,)), did(4, 5, GET, answers=(2000,))),
        # A watched transaction of unknown outcome does not happen after a change of its key.
        (SET, did(2, None, Unchanged(0, 1000), Step("set", 1, 2000)), did(3, 4, Step("del", 0), answers=(True,))),
    ],
)
def test_what_a_store_may_answer_passes(operations: Operations) -> None:
    assert judged(*operations).is_sound


def of_a_lease_that_ended() -> Operations:
    """A leader that was stopped for longer than its lease answers a read with what its successor has replaced meanwhile."""
    replaced = did(5, 6, Step("set", 0, 2000), answers=(True,))
    return SET, replaced, did(6 + LEASE_S, 7 + LEASE_S, GET, answers=(1000,))


def of_a_compare_and_set_that_does_not_compare() -> Operations:
    """Two clients replace one value, and both get the answer that they did."""
    first, second = (did(2, 3, Step("cas", 0, value, 1000), answers=(True,)) for value in (2000, 3000))
    return SET, first, second, did(4, 5, GET, answers=(3000,))


def of_a_compare_and_set_that_is_denied() -> Operations:
    """A client gets the answer that it did not replace the value, which it did."""
    return SET, did(2, 3, Step("cas", 0, 2000, 1000), answers=(False,)), did(4, 5, GET, answers=(2000,))


def of_a_batch_that_is_seen_in_part() -> Operations:
    return BOTH, did(0.5, 0.8, GET, Step("get", 1), answers=(1000, None))


def of_a_watched_key_that_is_not_watched() -> Operations:
    """EXEC runs although another client has changed the watched key after it was read."""
    return SET, did(2, 3, Step("set", 0, 2000), answers=(True,)), did(4, 5, Unchanged(0, 1000), Step("incr", 1), answers=(1,))


def of_an_acknowledged_change_that_is_lost() -> Operations:
    return SET, did(2, 3, Step("incr", 0), answers=(1001,)), did(4, 5, GET, answers=(1000,))


def of_a_change_that_happens_twice() -> Operations:
    return SET, INCREMENT, did(3, 4, GET, answers=(1001,)), did(5, 6, GET, answers=(1002,))


def of_a_refused_change_that_happened() -> Operations:
    """A refused operation is not in the history, and its value is read."""
    return SET, did(2, 3, GET, answers=(5000,))


def of_a_deleted_key_that_comes_back() -> Operations:
    deleted = did(2, 3, Step("del", 0), answers=(True,))
    return SET, deleted, did(4, 5, GET, answers=(None,)), did(6, 7, GET, answers=(1000,))


@pytest.mark.parametrize(
    "history",
    [
        of_a_lease_that_ended,
        of_a_compare_and_set_that_does_not_compare,
        of_a_compare_and_set_that_is_denied,
        of_a_batch_that_is_seen_in_part,
        of_a_watched_key_that_is_not_watched,
        of_an_acknowledged_change_that_is_lost,
        of_a_change_that_happens_twice,
        of_a_refused_change_that_happened,
        of_a_deleted_key_that_comes_back,
    ],
    ids=lambda history: history.__name__,
)
def test_what_a_store_must_not_answer_is_reported(history: object) -> None:
    assert callable(history)
    report = judged(*history())
    assert len(report.violations) == 1
    assert not report.undecided
