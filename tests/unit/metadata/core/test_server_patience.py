"""Which servers a client waits for, how long, and which it passes over."""

from __future__ import annotations

import pytest

from triplicate.metadata.core.server_patience import FORGOTTEN_S, FORGOTTEN_WAITS, GROWTH, PASSED_OVER_WAITS, ServerPatience

FIRST_S, LONGEST_S = 0.25, 10.0


@pytest.fixture
def patience() -> ServerPatience[str]:
    return ServerPatience(FIRST_S, LONGEST_S)


def test_a_server_that_was_silent_is_passed_over_for_a_while_and_then_gets_more_time(patience: ServerPatience[str]) -> None:
    patience.waited_in_vain("b", 100.0)
    assert patience.to_try(["a", "b", "c"], 100.0) == ["a", "c"]
    assert patience.to_try(["a", "b", "c"], 100.0 + PASSED_OVER_WAITS * FIRST_S) == ["a", "b", "c"]
    assert patience.limit_s("b", 101.0) == GROWTH * FIRST_S
    assert patience.limit_s("a", 101.0) == FIRST_S, "a server that is alive is not waited for any longer"


def test_servers_that_were_all_silent_are_all_tried(patience: ServerPatience[str]) -> None:
    for server in "abc":
        patience.waited_in_vain(server, 100.0)
    assert patience.to_try(["b", "a", "c"], 100.0) == ["b", "a", "c"]


def test_a_slow_server_gets_as_much_time_as_it_takes_and_no_more_than_the_longest(patience: ServerPatience[str]) -> None:
    waits = []
    for number in range(5):
        waits.append(patience.limit_s("a", 100.0 + number))
        patience.waited_in_vain("a", 100.0 + number)
    assert waits == [FIRST_S, GROWTH * FIRST_S, GROWTH**2 * FIRST_S, LONGEST_S, LONGEST_S]


def test_an_answer_makes_good_for_all_waits_in_vain(patience: ServerPatience[str]) -> None:
    patience.waited_in_vain("a", 100.0)
    patience.answered("a")
    assert patience.limit_s("a", 100.0) == FIRST_S
    assert patience.to_try(["a", "b"], 100.0) == ["a", "b"]


def test_a_wait_in_vain_of_long_ago_is_forgotten(patience: ServerPatience[str]) -> None:
    patience.waited_in_vain("a", 100.0)
    long_ago = 100.0 + FORGOTTEN_WAITS * FIRST_S + FORGOTTEN_S
    assert patience.limit_s("a", long_ago) == GROWTH * FIRST_S
    assert patience.limit_s("a", long_ago + 0.1) == FIRST_S
