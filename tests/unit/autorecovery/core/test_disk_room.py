"""The copies to make against the free disk of the bookies that get them."""

from __future__ import annotations

import pytest

from triplicate.autorecovery.core.disk_room import DiskSpace, disk_room

SPACES = {"a": DiskSpace("m1", 1000, 300), "b": DiskSpace("m1", 1000, 290), "c": DiskSpace("m2", 1000, 100)}


@pytest.mark.parametrize(
    ("needed_bytes", "is_too_small", "is_doubtful"),
    [(0, False, False), (400, False, False), (401, False, True), (690, False, True), (691, True, True)],
)
def test_disks_that_may_be_shared_count_once_for_certainty(needed_bytes: int, is_too_small: bool, is_doubtful: bool) -> None:
    room = disk_room(needed_bytes, SPACES)
    assert (room.free_bytes, room.certain_bytes) == (690, 400)
    assert (room.is_too_small, room.is_doubtful) == (is_too_small, is_doubtful)


def test_a_bookie_that_does_not_answer_makes_it_uncertain() -> None:
    room = disk_room(10_000, {**SPACES, "d": None})
    assert room.silent == ("d",)
    assert not room.is_too_small
    assert room.is_doubtful
