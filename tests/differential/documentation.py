"""The table "Differences from PostgreSQL" of docs/sql.md. Pure except for reading the page."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sql.md"
HEADING = "## Differences from PostgreSQL"
COLUMNS = ("id", "construct", "PostgreSQL", "here", "reason")
_BAR = re.compile(r"(?<!\\)\|")


def read_ids(page: str) -> list[str]:
    """The ids of the table's rows, in order.

    Raises:
        ValueError: the section or the table is missing, or a row is not whole.
    """
    if HEADING not in page:
        raise ValueError(f"docs/sql.md has no section {HEADING!r}")
    section = page.split(HEADING, 1)[1].split("\n## ", 1)[0]
    rows = [[cell.strip() for cell in _BAR.split(line)[1:-1]] for line in section.splitlines() if line.startswith("|")]
    if not rows or tuple(rows[0]) != COLUMNS:
        raise ValueError(f"the table of differences has the columns {', '.join(COLUMNS)}")
    for row in rows[2:]:
        if len(row) != len(COLUMNS) or not all(row):
            raise ValueError(f"the row {row} of the table of differences is not whole")
    return [row[0].strip("`") for row in rows[2:]]
