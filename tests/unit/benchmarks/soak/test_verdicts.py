"""The verdicts of a soak run: what is right passes, and each way to break a promise is reported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.soak.connections import Descriptors
from benchmarks.soak.verdicts import (
    CheckedLedger,
    LogHistory,
    ProcessSamples,
    Sample,
    growth_of,
    judge_growth,
    judge_ledgers,
    judge_order,
    judge_records,
    slope,
    together,
)

FINAL = [(0, 10), (1, 11), (3, 12), (4, 13)]
"""Record 12 lies behind an offset of a control record; nobody knows the outcome of record 13."""
HISTORY = LogHistory("plain", {0: 10, 1: 11, 3: 12}, frozenset({10, 11, 12, 13, 14}), FINAL, {"one": FINAL, "two": FINAL})


def test_a_log_without_losses_passes() -> None:
    assert judge_records(HISTORY).is_kept
    assert judge_order(HISTORY).is_kept


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (replace(HISTORY, final=FINAL[:2]), "not at their offsets"),
        (replace(HISTORY, final=[(0, 10), (1, 12), (3, 11)]), "not at their offsets"),
        (replace(HISTORY, final=[*FINAL, (5, 13)]), "there twice"),
        (replace(HISTORY, final=[*FINAL, (5, 99)]), "never sent"),
        (replace(HISTORY, acknowledged={}), "no append was acknowledged"),
    ],
)
def test_a_log_with_losses_is_reported(changed: LogHistory, words: str) -> None:
    (evidence,) = judge_records(changed).evidence
    assert words in evidence


@pytest.mark.parametrize(
    ("got", "words"),
    [
        ([FINAL[0], *FINAL[2:]], "record 2 is (3, 12), and the log has (1, 11)"),
        (FINAL[:-1], "got 3 records, and the log has 4"),
        ([*FINAL, FINAL[-1]], "got 5 records"),
        ([FINAL[1], FINAL[0], *FINAL[2:]], "record 1 is (1, 11)"),
        ([(0, 10), (1, 99), *FINAL[2:]], "record 2 is (1, 99)"),
    ],
)
def test_a_tailer_that_misses_doubles_or_exchanges_records_is_reported(got: list[tuple[int, int]], words: str) -> None:
    (evidence,) = judge_order(replace(HISTORY, tailers={"one": FINAL, "two": got})).evidence
    assert evidence.startswith("two: ")
    assert words in evidence


def test_a_log_without_tailers_is_reported() -> None:
    assert judge_order(replace(HISTORY, tailers={})).evidence


HOSTS = {"a": "one", "b": "two", "c": "three", "d": "one"}
LEDGER = CheckedLedger(5, (), 3, (("a", "b", "c"), ("d", "b", "c")))


@pytest.mark.parametrize(
    ("changed", "marked", "reduced", "words"),
    [
        (replace(LEDGER, problems=("c lacks 2 copies",)), (), (), "c lacks 2 copies"),
        (replace(LEDGER, segments=(("a", "b", "c"), ("a", "b", "d"))), (), (), "a on one, b on two, d on one"),
        (LEDGER, (5,), (), "still marked"),
        (LEDGER, (), ("ledger 5 of log plain",), "lacks copies"),
    ],
)
def test_a_ledger_without_a_copy_is_reported(changed: CheckedLedger, marked: tuple[int, ...], reduced: tuple[str, ...], words: str) -> None:
    assert judge_ledgers([LEDGER], HOSTS, (), ()).is_kept
    (evidence,) = judge_ledgers([LEDGER, changed], HOSTS, marked, reduced).evidence
    assert words in evidence


def test_no_ledger_is_no_proof() -> None:
    assert not judge_ledgers([], HOSTS, (), ()).is_kept


@pytest.mark.parametrize(
    ("ensemble", "write_quorum", "is_shared"),
    [
        (("a", "b", "d", "c"), 2, False),
        (("a", "d", "b", "c"), 2, True),
        (("a", "b", "c", "d"), 2, True),
        (("gone", "b", "c"), 3, False),
        (("a",), 1, False),
    ],
)
def test_copies_of_an_entry_on_one_host(ensemble: tuple[str, ...], write_quorum: int, is_shared: bool) -> None:
    assert bool(together(ensemble, write_quorum, HOSTS)) is is_shared


Reading = Callable[[float], float]


def samples(
    kind: str,
    resident: Reading,
    descriptors: Reading = lambda _: 40,
    *,
    connections: Reading = lambda _: 0,
    most_to_one: Reading = lambda _: 3,
    most_of_one: Reading = lambda _: 9,
    seconds: int = 600,
) -> ProcessSamples:
    ages = range(0, seconds, 2)
    found = [
        Sample(
            float(age),
            resident(age),
            Descriptors(int(descriptors(age)), int(connections(age)), int(most_to_one(age)), 0, int(most_of_one(age))),
        )
        for age in ages
    ]
    return ProcessSamples(f"{kind} (7)", kind, tuple(found))


STEADY = samples("bookie", lambda age: min(100.0, 60 + age) + (age % 14) / 7)


def test_a_process_that_warms_up_and_wavers_is_flat() -> None:
    verdict = judge_growth([STEADY], ["bookie"], 600)
    assert verdict.is_kept
    assert verdict.is_due


@pytest.mark.parametrize(
    ("process", "words"),
    [
        (samples("bookie", lambda age: 100 + age / 10), "memory grows by 29.8"),
        (samples("bookie", lambda _: 100, lambda age: 40 + age / 5), "descriptors other than connections and repeated files grow by 60"),
        (samples("bookie", lambda _: 100, most_to_one=lambda _: 9), "9 connections to one server, and 4 are allowed"),
        (samples("bookie", lambda _: 100, most_of_one=lambda _: 30), "30 descriptors of one file, and 12 are allowed"),
    ],
)
def test_a_process_that_leaks_is_reported(process: ProcessSamples, words: str) -> None:
    (evidence,) = judge_growth([STEADY, process], ["bookie"], 600).evidence
    assert words in evidence


def test_connections_of_further_clients_are_no_growth() -> None:
    process = samples("bookie", lambda _: 100, lambda age: 40 + age / 5, connections=lambda age: age / 5)
    assert judge_growth([process], ["bookie"], 600).is_kept


def test_a_single_peak_is_no_growth() -> None:
    assert judge_growth([samples("bookie", lambda age: 500 if 500 < age < 520 else 100)], ["bookie"], 600).is_kept


def test_each_kind_must_have_a_process_that_lived_long_enough() -> None:
    brief = samples("node", lambda _: 100, seconds=120)
    assert growth_of(brief) is None
    (evidence,) = judge_growth([STEADY, brief], ["bookie", "node"], 600).evidence
    assert "kind node" in evidence


def test_a_short_run_is_not_judged() -> None:
    verdict = judge_growth([], ["bookie"], 60)
    assert verdict.is_kept
    assert verdict.word == "not judged"


def test_a_slope_of_no_points_is_none() -> None:
    assert slope([], []) == 0.0
    assert slope([0, 1, 2, 3], [1, 2, 3, 4]) == 1.0
