"""The sides alternate, and every figure that a target or the table needs comes from a planned case."""

from __future__ import annotations

from benchmarks.sql.plain_sqlite import CASES as PLAIN_CASES
from benchmarks.sql.plan import FULL, PLAIN, QUICK, RESTART, WARM_UP, Planned, case_names, turns
from benchmarks.sql.report import CASES
from benchmarks.sql.targets import BEFORE, NOW, POSTGRES, SIDES, SLOW, SQLITE, TARGETS


def names_of(planned: Planned) -> set[str]:
    return {name + planned.end for name, _ in planned.cases}


def test_before_and_now_take_turns() -> None:
    for sizes, rounds in ((FULL, 2), (QUICK, 1)):
        found = [(one.side, one.round) for one in turns(sizes) if not one.is_slow]
        assert found == [(side, number) for number in range(1, rounds + 1) for side in (BEFORE, NOW, NOW, POSTGRES, SQLITE)]


def test_restarts_have_a_log_of_their_own() -> None:
    with_restarts = [one.cases for one in turns(QUICK) if "restart" in names_of(one)]
    assert with_restarts == [RESTART]
    assert len(RESTART) == 1


def test_a_turn_has_the_chosen_cases_and_is_left_out_where_it_has_none() -> None:
    chosen = [turn for one in turns(QUICK) if (turn := one.only({"copy", "ten_1"})) is not None]
    assert [(one.side, [name for name, _ in one.cases]) for one in chosen] == [
        (BEFORE, [WARM_UP, "copy"]),
        (NOW, [WARM_UP, "ten_1", "copy"]),
        (POSTGRES, [WARM_UP, "ten_1", "copy"]),
        (SQLITE, ["ten_1"]),
    ]
    assert [one.only(set()) for one in turns(QUICK)] == list(turns(QUICK))


def test_the_names_of_cases_are_those_of_the_table() -> None:
    assert case_names() == set(CASES)


def test_plain_sqlite_has_the_cases_that_are_planned_for_it() -> None:
    assert {name for name, _ in PLAIN} == set(PLAIN_CASES)


def test_slower_syncs_come_after_all_rounds_at_this_disk() -> None:
    found = [one.is_slow for one in turns(FULL)]
    assert found == sorted(found)


def test_every_figure_of_a_target_comes_from_a_planned_case() -> None:
    planned = {(one.side, name) for one in turns(QUICK) for name in names_of(one)}
    needed = {(place.side, place.case) for target in TARGETS for place in (target.measured, target.base) if place is not None}
    assert needed <= planned


def test_every_planned_case_has_a_row_in_the_table() -> None:
    planned = {name.removesuffix(SLOW) for one in turns(QUICK) for name in names_of(one)}
    assert planned - {WARM_UP} == set(CASES)
    assert {one.side for one in turns(QUICK)} == set(SIDES)


def test_memory_is_measured_before_other_loads_and_the_take_over_comes_last() -> None:
    for one in turns(QUICK):
        names = [name for name, _ in one.cases]
        if "idle_200" in names:
            assert names[:2] == [WARM_UP, "idle_200"]
            assert names[-1] == "take_over"
