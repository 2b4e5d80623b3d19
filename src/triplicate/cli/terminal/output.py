"""What commands print: data to standard output, progress and remarks to standard error."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

remarks = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
"""For everything that is not data. Lines are not broken, since paths and addresses in them are there to be copied."""


def print_json(value: object) -> None:
    """One JSON value on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, sort_keys=True) + "\n")
    sys.stdout.flush()


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = (), title: str | None = None) -> None:
    """A table; columns named in `right` are aligned to the right, as numbers should be."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    for row in rows:
        # Text, because a plain string would be read as markup, and cells hold what users wrote.
        table.add_row(*(Text(str(cell)) for cell in row))
    # A pipe has no width: a table cut to 80 columns would lose data that nobody sees missing.
    Console(width=None if sys.stdout.isatty() else 160, highlight=False).print(table)


class Bar:
    """A progress bar on standard error, shown only on a terminal and only when the work takes a moment.

    `advance` may be called once per item: it draws at most ten times a second.
    """

    DRAW_S = 0.1

    def __init__(self, what: str, total: int | None) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=remarks,
            transient=True,
            disable=not sys.stderr.isatty(),
            auto_refresh=False,
        )
        self._task = self._progress.add_task(what, total=total)
        self._waiting = 0
        self._drawn = time.monotonic()

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._draw()
        self._progress.stop()

    def advance(self, count: int = 1) -> None:
        """`count` more items are done."""
        self._waiting += count
        if time.monotonic() - self._drawn >= self.DRAW_S:
            self._draw()

    def _draw(self) -> None:
        self._progress.update(self._task, advance=self._waiting, refresh=True)
        self._waiting = 0
        self._drawn = time.monotonic()
