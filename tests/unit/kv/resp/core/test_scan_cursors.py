"""Cursors are numbers, stay good, and belong to a store."""

from __future__ import annotations

from triplicate.kv.resp.core.scan_cursors import CURSORS_MAX, Cursors


def test_a_cursor_stays_good_for_its_store_until_many_newer_ones_are_used() -> None:
    cursors = Cursors()
    first = cursors.give("shop", b"k")
    assert [cursors.find(*each) for each in (("shop", first), ("shop", first), ("other", first), ("shop", 99))] == [b"k", b"k", None, None]
    for number in range(CURSORS_MAX - 1):
        cursors.give("shop", b"%d" % number)
    assert cursors.find("shop", first) == b"k"
    for number in range(CURSORS_MAX):
        cursors.give("shop", b"%d" % number)
    assert cursors.find("shop", first) is None
    assert len(cursors) == CURSORS_MAX
