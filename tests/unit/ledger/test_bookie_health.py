"""Quarantine of bookies that are slow or fail, and the probe that ends it."""

from __future__ import annotations

import pytest

from triplicate.ledger.bookie_health import FORGOTTEN_S, STRIKE_SPACING_S, STRIKES_NEEDED, Ailment, BookieHealth

FIRST_S, MAXIMUM_S = 10.0, 60.0


def health() -> BookieHealth:
    return BookieHealth(FIRST_S, MAXIMUM_S)


def test_a_bookie_in_quarantine_is_read_last_and_a_failing_one_behind_a_slow_one() -> None:
    found = health()
    assert found.order("abc") == ["a", "b", "c"]
    assert found.is_sound
    assert found.quarantine("a", Ailment.FAILING, 0.0)
    assert found.quarantine("b", Ailment.SLOW, 0.0)
    assert found.order("abc") == ["c", "b", "a"]
    assert not found.quarantine("a", Ailment.SLOW, 1.0), "it is in quarantine already"
    assert found.order("ab") == ["b", "a"], "those that are left are read nevertheless"


def test_late_reads_in_a_row_begin_a_quarantine() -> None:
    found = health()
    begun = [found.strike("a", Ailment.SLOW, float(moment)) for moment in range(STRIKES_NEEDED)]
    assert begun == [False] * (STRIKES_NEEDED - 1) + [True]
    assert found.rank("a") == Ailment.SLOW


def test_an_answer_in_time_forgives_late_reads() -> None:
    found = health()
    for moment in range(10 * STRIKES_NEEDED):
        assert not found.strike("a", Ailment.SLOW, float(moment))
        if moment % (STRIKES_NEEDED - 1) == 0:
            found.answered("a")
    assert found.is_sound


def test_reads_that_are_late_at_once_count_once() -> None:
    found = health()
    assert not any(found.strike("a", Ailment.SLOW, STRIKE_SPACING_S * number / 100) for number in range(100))
    assert found.is_sound


def test_a_probe_is_due_when_the_time_is_over_and_there_is_one_at_a_time() -> None:
    found = health()
    found.quarantine("a", Ailment.SLOW, 0.0)
    assert found.begin_probe("ab", FIRST_S - 0.1) is None
    assert found.begin_probe("b", FIRST_S) is None
    assert found.begin_probe("ab", FIRST_S) == "a"
    assert found.begin_probe("ab", FIRST_S + 1) is None
    assert found.rank("a") == Ailment.SLOW, "until the probe is answered"


def test_a_probe_that_is_answered_ends_the_quarantine() -> None:
    found = health()
    found.quarantine("a", Ailment.SLOW, 0.0)
    before = found.version
    found.begin_probe("a", FIRST_S)
    assert found.end_probe("a", None, FIRST_S + 0.1)
    assert found.is_sound
    assert found.order("ab") == ["a", "b"]
    assert found.version > before
    assert found.avoided(FIRST_S + 0.1) == []


def test_each_probe_that_fails_doubles_the_time_up_to_the_maximum() -> None:
    found, now, times = health(), 0.0, []
    found.quarantine("a", Ailment.SLOW, now)
    for _ in range(5):
        began = now
        while found.begin_probe("a", now) is None:
            now += 1.0
        times.append(now - began)
        assert not found.end_probe("a", Ailment.FAILING, now)
    assert times == [10, 20, 40, 60, 60]
    assert found.rank("a") == Ailment.FAILING, "the probe says why"


@pytest.mark.parametrize(("healthy_s", "expected_s"), [(5.0, 2 * FIRST_S), (2 * FIRST_S + 1, FIRST_S)])
def test_a_bookie_that_is_slow_again_soon_stays_longer(healthy_s: float, expected_s: float) -> None:
    found = health()
    found.quarantine("a", Ailment.SLOW, 0.0)
    found.begin_probe("a", FIRST_S)
    found.end_probe("a", None, FIRST_S)
    again = FIRST_S + healthy_s
    found.quarantine("a", Ailment.SLOW, again)
    assert found.begin_probe("a", again + expected_s - 0.1) is None
    assert found.begin_probe("a", again + expected_s) == "a"


def test_ensembles_avoid_a_bookie_until_its_time_is_over() -> None:
    found = health()
    found.quarantine("a", Ailment.FAILING, 0.0)
    assert found.avoided(FIRST_S - 1) == ["a"]
    assert found.avoided(FIRST_S) == [], "a client that reads nothing never probes"


def test_bookies_that_nothing_is_read_from_are_forgotten() -> None:
    found = health()
    for number in range(100):
        found.quarantine(f"gone {number}", Ailment.FAILING, float(number))
    found.quarantine("a", Ailment.SLOW, FORGOTTEN_S + 200)
    assert list(found._quarantines) == ["a"]
    assert not found.rank("gone 1")
