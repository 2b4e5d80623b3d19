"""Columns that fit a width, rows that fit a number of lines."""

from __future__ import annotations

import pytest

from triplicate.cli.overview.core.text_table import (
    Section,
    TableRow,
    column_widths,
    cut_text,
    divide_room,
    kept_rows,
    section_lines,
    size_text,
)


def test_a_cut_text_ends_with_an_ellipsis() -> None:
    assert [cut_text("abcdef", width) for width in (6, 5, 1)] == ["abcdef", "abcd…", "…"]


def test_rows_that_do_not_fit_are_counted_and_urgent_ones_stay() -> None:
    rows = tuple(TableRow((str(number),), number == 8) for number in range(10))
    shown, omitted = kept_rows(rows, 4)
    assert ([row.cells[0] for row in shown], omitted) == (["0", "1", "8"], 7)
    assert kept_rows(rows, 10) == (list(rows), 0)


def test_a_section_says_how_many_rows_it_omits() -> None:
    section = Section("THINGS 3", ("name",), tuple(TableRow((name,)) for name in "abc"), command="triplicate things")
    assert section_lines(section, 2, 40) == ["THINGS 3", "  name", "  a", "  … and 2 more: triplicate things"]


def test_a_section_without_rows_is_its_title() -> None:
    assert section_lines(Section("THINGS 0", ("name",)), 2, 40) == ["THINGS 0"]


def test_the_widest_columns_become_narrower() -> None:
    assert column_widths(("a", "b"), [TableRow(("x" * 30, "y" * 10))], 22) == [10, 10]
    assert column_widths(("a", "b"), [TableRow(("x", "y"))], 22) == [1, 1]


@pytest.mark.parametrize(("wanted", "room", "given"), [([1, 9, 9], 10, [1, 5, 4]), ([2, 2], 10, [2, 2]), ([5, 0], 0, [1, 0])])
def test_lines_are_divided_equally_and_rests_are_used(wanted: list[int], room: int, given: list[int]) -> None:
    assert divide_room(wanted, room) == given


def test_sizes_have_binary_units() -> None:
    assert [size_text(size) for size in (0, 1023, 1536, 5 * 1024**4, 5000 * 1024**4)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 TiB",
        "5000.0 TiB",
    ]
