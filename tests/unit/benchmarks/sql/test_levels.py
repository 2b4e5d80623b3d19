"""Each level is read with its parameters on the node where clients would read at it."""

from __future__ import annotations

from benchmarks.sql.levels import CLIENTS, LEVELS, named
from triplicate.sql.core.read_levels import DEFAULTS, ReadLevel, checked_read_parameter


def test_the_levels_are_those_of_the_database() -> None:
    assert {one.name for one in LEVELS} == {level.value for level in ReadLevel} - {"default"}


def test_the_parameters_of_a_session_are_ones_that_the_database_takes() -> None:
    for level in LEVELS:
        settings = [word.partition("=") for word in level.options(41).split() if word != "-c"]
        assert settings[0] == ("triplicate.read_level", "=", level.name)
        assert [name for name, _, _ in settings if name not in DEFAULTS] == []
        assert [checked_read_parameter(name, value) for name, _, value in settings] == [value for _, _, value in settings]


def test_only_the_level_of_sessions_takes_the_token() -> None:
    assert [one.name for one in LEVELS if "41" in one.options(41)] == ["session"]


def test_linearizable_reads_go_to_the_leader_and_the_others_to_a_follower() -> None:
    assert [one.name for one in LEVELS if not one.follower] == ["linearizable"]


def test_each_level_has_a_case_for_each_number_of_clients() -> None:
    names = [name for name, _, _ in named()]
    assert len(set(names)) == len(names) == len(LEVELS) * len(CLIENTS)
    assert "read_bounded_64" in names
