"""Rows of text in columns that fit a width and a number of lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

GAP = "  "
COLUMN_LEAST = 4
"""Characters that a column keeps however narrow the screen is."""
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row. `urgent` rows are kept where rows must be left out."""

    cells: tuple[str, ...]
    urgent: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the screen: its title, and a table."""

    title: str
    headings: tuple[str, ...] = ()
    rows: tuple[TableRow, ...] = ()
    right: tuple[str, ...] = ()
    """Headings of the columns that are aligned to the right."""
    command: str = ""
    """The command that lists every row."""

    @property
    def frame_lines(self) -> int:
        """Lines without the rows: title and headings."""
        return 2 if self.rows else 1


def cut_text(text: str, width: int) -> str:
    """The text in at most `width` characters; the last one is an ellipsis if it was cut."""
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"


def section_lines(section: Section, room: int, width: int) -> list[str]:
    """The lines of a section with at most `room` lines of rows. Omitted rows are counted in the last line."""
    lines = [cut_text(section.title, width)]
    if not section.rows:
        return lines
    shown, omitted = kept_rows(section.rows, room)
    widths = column_widths(section.headings, shown, width - 2)
    lines += ["  " + _line(section, cells, widths) for cells in (section.headings, *(row.cells for row in shown))]
    if omitted:
        command = f": {section.command}" if section.command else ""
        lines.append(cut_text(f"  … and {omitted} more{command}", width))
    return lines


def kept_rows(rows: Sequence[TableRow], room: int) -> tuple[list[TableRow], int]:
    """The rows that fit in `room` lines in their order, urgent ones first, and the number of the others, which needs a line."""
    if len(rows) <= room:
        return list(rows), 0
    places = sorted(range(len(rows)), key=lambda place: (not rows[place].urgent, place))[: max(0, room - 1)]
    return [rows[place] for place in sorted(places)], len(rows) - len(places)


def column_widths(headings: Sequence[str], rows: Sequence[TableRow], width: int) -> list[int]:
    """The width of each column. The widest columns become narrower until all fit."""
    widths = [max(len(heading), *(len(row.cells[place]) for row in rows), 0) for place, heading in enumerate(headings)]
    room = width - len(GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > COLUMN_LEAST:
        widths[widths.index(max(widths))] -= 1
    return widths


def divide_room(wanted: Sequence[int], room: int) -> list[int]:
    """Divide `room` lines: each part gets what it wants, or an equal share and what the others leave. Each gets at least one line."""
    given = [min(1, want) for want in wanted]
    left = room - sum(given)
    while left > 0 and any(have < want for have, want in zip(given, wanted, strict=True)):
        for place, want in enumerate(wanted):
            if given[place] < want and left > 0:
                given[place] += 1
                left -= 1
    return given


def _line(section: Section, cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = []
    for heading, cell, width in zip(section.headings, cells, widths, strict=True):
        text = cut_text(cell, width)
        padded.append(text.rjust(width) if heading in section.right else text.ljust(width))
    return GAP.join(padded).rstrip()


def size_text(size: float) -> str:
    """Bytes with a binary unit."""
    for unit in UNITS[:-1]:
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} {UNITS[-1]}"


def counted(number: int, one: str, more: str = "") -> str:
    """A number with its noun, which is `more` where there is not one, by default with an s."""
    return f"{number} {one if number == 1 else more or f'{one}s'}"
