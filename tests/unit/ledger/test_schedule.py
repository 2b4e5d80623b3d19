from __future__ import annotations

from itertools import combinations, product

import pytest

from triplicate.ledger import absent_answers_needed, is_covered, is_endangered, write_set, write_sets

QUORUMS = [(ensemble, write, ack) for ensemble, write, ack in product(range(1, 7), repeat=3) if ack <= write <= ensemble]


def test_write_sets_use_whole_64_bit_entry_ids() -> None:
    assert write_set(2**31 + 1, 5, 3) == tuple((2**31 + 1 + step) % 5 for step in range(3))
    assert write_set(2**62, 3, 3) == tuple((2**62 + step) % 3 for step in range(3))


@pytest.mark.parametrize(("ensemble", "write"), [(ensemble, write) for ensemble in range(1, 7) for write in range(1, ensemble + 1)])
def test_every_position_holds_its_share(ensemble: int, write: int) -> None:
    held = [position for positions in write_sets(ensemble, write) for position in positions]
    assert sorted(held) == sorted(list(range(ensemble)) * write)
    assert all(len(set(positions)) == write for positions in write_sets(ensemble, write))


@pytest.mark.parametrize(("ensemble", "write", "ack"), QUORUMS)
def test_coverage_means_that_no_ack_quorum_can_hide(ensemble: int, write: int, ack: int) -> None:
    for count in range(ensemble + 1):
        for unknown in combinations(range(ensemble), count):
            can_hide = any(len(set(unknown) & set(write_set(entry, ensemble, write))) >= ack for entry in range(ensemble))
            assert is_covered(unknown, ensemble, write, ack) is not can_hide


@pytest.mark.parametrize(("ensemble", "write", "ack"), QUORUMS)
def test_danger_means_that_an_entry_finds_no_ack_quorum(ensemble: int, write: int, ack: int) -> None:
    for count in range(ensemble + 1):
        for absent in combinations(range(ensemble), count):
            finds = all(len(set(write_set(entry, ensemble, write)) - set(absent)) >= ack for entry in range(ensemble))
            assert is_endangered(absent, ensemble, write, ack) is not finds


def test_coverage_of_a_striped_ledger_is_not_a_count_over_the_ensemble() -> None:
    # Two of six unknown, an ack quorum of two: harmless apart, not side by side.
    assert is_covered({0, 3}, 6, 2, 2)
    assert not is_covered({0, 1}, 6, 2, 2)
    assert not is_covered({5, 0}, 6, 2, 2)


@pytest.mark.parametrize(("ensemble", "write", "ack"), QUORUMS)
def test_enough_absent_answers_leave_no_room_for_an_ack_quorum(ensemble: int, write: int, ack: int) -> None:
    needed = absent_answers_needed(write, ack)
    assert write - needed < ack <= write - (needed - 1)
