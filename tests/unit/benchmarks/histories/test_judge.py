"""The judge of histories: what is right passes, and each way to be wrong is reported."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.histories.judge import (
    Noted,
    Report,
    Seen,
    Statement,
    Transfer,
    judge_copies,
    judge_keys,
    judge_lists,
    judge_transfers,
)
from triplicate_simulator.checkers.linearizability import RegisterOperation

INITIAL: dict[str, tuple[()] | None] = {"register": None, "list": ()}


def operation(kind: str, arguments: tuple[int, ...], begin: float, end: float | None, result: object = None) -> RegisterOperation:
    return RegisterOperation(kind, arguments, begin, end, result, "client")


def judged(key: str, *operations: RegisterOperation) -> Report:
    report = Report()
    judge_keys({key: operations}, INITIAL, report)
    return report


WRITE = operation("write", (1,), 0, 1)
UNKNOWN = operation("write", (2,), 2, None)


@pytest.mark.parametrize(
    ("operations", "is_sound"),
    [
        ((WRITE, operation("read", (), 2, 3, 1)), True),
        ((operation("read", (), 0, 3, None), WRITE), True),
        ((WRITE, operation("read", (), 2, 3, None)), False),
        ((WRITE, operation("read", (), 2, 3, 7)), False),
        # An outcome that nobody knows may be seen or not, and not be taken back once it was seen.
        ((WRITE, UNKNOWN, operation("read", (), 3, 4, 2)), True),
        ((WRITE, UNKNOWN, operation("read", (), 3, 4, 1), operation("read", (), 5, 6, 2)), True),
        ((WRITE, UNKNOWN, operation("read", (), 3, 4, 2), operation("read", (), 5, 6, 1)), False),
        ((WRITE, operation("swap", (1, 3), 2, 3, True), operation("read", (), 4, 5, 3)), True),
        ((WRITE, operation("swap", (1, 3), 2, 3, True), operation("swap", (1, 4), 2, 3, True)), False),
        ((WRITE, operation("swap", (5, 3), 2, 3, True)), False),
    ],
)
def test_registers(operations: tuple[RegisterOperation, ...], is_sound: bool) -> None:
    assert judged("register-1", *operations).is_sound is is_sound


FIRST, SECOND = operation("append", (1,), 0, 1, (1,)), operation("append", (2,), 2, 3, (1, 2))


@pytest.mark.parametrize(
    ("operations", "is_sound"),
    [
        ((FIRST, SECOND, operation("read", (), 4, 5, (1, 2))), True),
        ((FIRST, replace(SECOND, result=(2,))), False),
        ((FIRST, SECOND, operation("read", (), 4, 5, (2, 1))), False),
        ((FIRST, SECOND, operation("read", (), 4, 5, (1,))), False),
        ((FIRST, SECOND, operation("read", (), 4, 5, (1, 2, 2))), False),
        ((FIRST, operation("append", (2,), 2, None), operation("read", (), 4, 5, (1,))), True),
        ((FIRST, operation("append", (2,), 2, None), operation("read", (), 4, 5, (1, 2, 2))), False),
    ],
)
def test_lists(operations: tuple[RegisterOperation, ...], is_sound: bool) -> None:
    assert judged("list-1", *operations).is_sound is is_sound


def test_a_key_for_which_the_search_gives_up_is_not_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.histories.judge.STEPS_MAX", 1)
    report = judged("register-1", WRITE, operation("read", (), 2, 3, 1))
    assert report.undecided
    assert not report.is_sound


@pytest.mark.parametrize(
    ("held", "words"),
    [((1, 2), ""), ((1, 2, 3), ""), ((1,), "lost"), ((1, 2, 2), "twice"), ((1, 2, 9), "never appended")],
)
def test_items_of_lists_at_the_end(held: tuple[int, ...], words: str) -> None:
    report = Report()
    judge_lists({"list-1": [FIRST, SECOND, operation("append", (3,), 4, None)]}, {"list-1": held}, report)
    assert bool(report.violations) is bool(words)
    assert all(words in violation for violation in report.violations)


# Transfers.

ACCOUNTS = {"ann": 10, "bob": 10}
ONE = Transfer(1, "ann", "bob", 4, 0.0, 1.0)
TWO = Transfer(2, "bob", "ann", 3, 2.0, 3.0)
OPEN = Transfer(3, "ann", "bob", 1, 2.0, None)
REFUSED = Transfer(4, "ann", "bob", 5, 2.0, None, refused=True)
NOTED_ONE, NOTED_TWO, NOTED_OPEN = Noted(1, "ann", "bob", 4), Noted(2, "bob", "ann", 3), Noted(3, "ann", "bob", 1)
MIDDLE = Statement(1.5, 1.6, {"ann": 6, "bob": 14}, 1)
LAST = Statement(4.0, 4.1, {"ann": 9, "bob": 11}, 2)
FINAL = {"ann": 9, "bob": 11}


def books(
    transfers: tuple[Transfer, ...] = (ONE, TWO, OPEN, REFUSED),
    statements: tuple[Statement, ...] = (MIDDLE, LAST),
    noted: tuple[Noted, ...] = (NOTED_ONE, NOTED_TWO),
    final: dict[str, int] = FINAL,
) -> list[str]:
    report = Report()
    judge_transfers(Seen({}, list(transfers), list(statements)), noted, ACCOUNTS, final, report)
    return report.violations


def test_transfers_that_happened_in_the_order_of_their_places_pass() -> None:
    assert books() == []
    assert books(noted=(NOTED_ONE, NOTED_TWO, NOTED_OPEN), final={"ann": 8, "bob": 12}) == [], "its outcome was unknown"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"noted": (NOTED_TWO,), "final": {"ann": 13, "bob": 7}, "statements": ()}, "are lost"),
        ({"noted": (NOTED_ONE, NOTED_TWO, NOTED_TWO), "final": {"ann": 12, "bob": 8}}, "twice"),
        ({"noted": (NOTED_ONE, NOTED_TWO, Noted(4, "ann", "bob", 5)), "final": {"ann": 4, "bob": 16}}, "were refused"),
        ({"noted": (NOTED_ONE, NOTED_TWO, Noted(9, "ann", "bob", 1)), "final": {"ann": 8, "bob": 12}}, "as nobody asked"),
        ({"noted": (NOTED_ONE, replace(NOTED_TWO, amount=2)), "final": {"ann": 8, "bob": 12}, "statements": ()}, "as nobody asked"),
        ({"final": {"ann": 9, "bob": 12}}, "at the end"),
        # The sum is right, and yet no instant had these balances.
        ({"statements": (replace(MIDDLE, balances={"ann": 5, "bob": 15}),)}, "shows"),
        ({"statements": (replace(MIDDLE, balances={"ann": 9, "bob": 11}),)}, "shows"),
        # Old: it began after the second had ended.
        ({"statements": (replace(MIDDLE, invoked_s=3.5, returned_s=3.6),)}, "had ended"),
        # From the future: it ended before the second began.
        ({"statements": (replace(LAST, invoked_s=1.5, returned_s=1.6),)}, "began later"),
        ({"statements": (replace(LAST, transfers=7),)}, "were noted in all"),
        ({"noted": (NOTED_TWO, NOTED_ONE), "statements": ()}, "had ended before"),
        (
            {
                "transfers": (replace(ONE, amount=7), replace(TWO, source="ann", target="bob", amount=7, invoked_s=0.0)),
                "noted": (replace(NOTED_ONE, amount=7), Noted(2, "ann", "bob", 7)),
                "statements": (),
                "final": {"ann": -4, "bob": 24},
            },
            "had less",
        ),
    ],
)
def test_transfers_that_did_not_are_reported(changed: dict[str, object], words: str) -> None:
    violations = books(**changed)  # type: ignore[arg-type]
    assert any(words in violation for violation in violations), violations


def test_copies_that_differ_are_reported() -> None:
    report = Report()
    judge_copies({"node-1": {"t": [1]}, "node-2": {"t": [1]}}, report)
    assert report.is_sound
    judge_copies({"node-1": {"t": [1]}, "node-2": {"t": [2]}}, report)
    assert report.violations == ["node-2 and node-1 hold different rows"]
