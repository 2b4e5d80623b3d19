"""Which bookie holds back a full window, for how long, and whether another can take its place."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from triplicate.ledger.held_window import HeldWindow, holder_of, is_replaceable
from triplicate.ledger.placement.network_location import BookieSite
from triplicate.ledger.placement.placement_rules import PlacementRules


@pytest.mark.parametrize(
    ("acked", "confirmed", "full", "expected"),
    [
        ({"a": 100, "b": 1000, "c": 990}, 100, (), "a"),
        ({"a": 100, "b": 1000, "c": 990}, 990, (), None),
        ({"a": 100, "b": 1000, "c": 990}, 990, ("a",), "a"),
        ({"a": 100, "b": 1000, "c": 990}, 990, ("b",), None),
        ({"a": 950, "b": 1000, "c": 990}, 500, (), None),
        ({"a": 100, "b": 1000, "c": 120}, 100, (), None),
        ({"a": 700, "b": 1000, "c": 1000}, 100, (), None),
        ({"a": 1000, "b": 1000, "c": 1000}, 1000, ("a", "b", "c"), None),
        ({"a": 100}, 100, ("a",), None),
    ],
    ids=[
        "confirmation waits for it",
        "beyond the ack quorum",
        "full beyond the ack quorum",
        "another is full",
        "it is not confirmed for another reason",
        "two are slow",
        "not behind the confirmed entries",
        "none is slow",
        "the only one",
    ],
)
def test_one_bookie_holds_the_window_back(acked: dict[str, int], confirmed: int, full: tuple[str, ...], expected: str | None) -> None:
    assert holder_of(acked, confirmed, 1000, full) == expected


def sampled(window: HeldWindow, holders: Sequence[str | None], step_s: float = 0.5) -> list[int]:
    """The numbers of the samples that report a bookie."""
    return [number for number, holder in enumerate(holders) if window.sample(holder, number * step_s)]


def test_a_bookie_is_reported_after_the_limit_and_then_again() -> None:
    assert sampled(HeldWindow(10.0), ["a"] * 45) == [20, 40]


def test_another_bookie_starts_the_time_again() -> None:
    assert sampled(HeldWindow(10.0), ["a"] * 19 + ["b"] + ["a"] * 20) == []


@pytest.mark.parametrize(("gap", "reported"), [(3, True), (4, False)])
def test_a_short_pause_does_not_start_it_again(gap: int, reported: bool) -> None:
    holders: list[str | None] = (["a"] + [None] * gap) * 6
    assert bool(sampled(HeldWindow(10.0), holders)) == reported


def test_a_limit_of_zero_reports_nothing() -> None:
    assert sampled(HeldWindow(0.0), ["a"] * 100) == []


def rules(*machines: str) -> PlacementRules:
    return PlacementRules(3, {bookie_id: BookieSite(machine) for bookie_id, machine in zip("abcde", machines, strict=False)})


@pytest.mark.parametrize(
    ("writable", "avoid", "machines", "expected"),
    [
        ("abcd", (), "1234", True),
        ("abc", (), "1234", False),
        ("abcd", ("d",), "1234", False),
        ("abcd", (), "1231", True),
        ("abcd", (), "1232", False),
    ],
    ids=["a spare", "no spare", "a spare that failed", "on the machine of the slow one", "on the machine of another"],
)
def test_a_slow_bookie_is_replaceable_only_by_a_good_choice(writable: str, avoid: tuple[str, ...], machines: str, expected: bool) -> None:
    found = is_replaceable(("a", "b", "c"), "a", writable, avoid, rules(*machines), random.Random(1))
    assert found == expected
