"""Output of commands: data to standard output, progress and remarks to standard error."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console


class Remarks:
    """All output that is not data, on standard error. Lines are not wrapped, so that paths and addresses can be copied.

    rich is imported where it draws something, here and below: its import takes a tenth of the start of a short command or a bookie.
    """

    def __init__(self) -> None:
        self._console: Console | None = None

    def console(self) -> Console:
        """The console of a progress bar. Remarks appear above the bar."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)
        return self._console

    def print(self, text: str) -> None:
        """Print one remark. It is dropped where standard error is gone, for example with the terminal: the work goes on."""
        with contextlib.suppress(OSError):
            if self._console is None:
                click.echo(text, err=True)
            else:
                self._console.print(text)


remarks = Remarks()


def confirm(question: str) -> None:
    """Ask before something is destroyed.

    Raises:
        click.Abort: the answer is no. click.UsageError: standard input ended without an answer, as it does without a terminal.
    """
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            click.echo(err=True)
            raise click.UsageError("standard input ended without an answer, and nothing was done; give --yes to go on unasked") from None
        remarks.print("nothing was done")
        raise


def print_json(value: object) -> None:
    """Print one JSON value on one line."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, sort_keys=True) + "\n")
    sys.stdout.flush()


def print_table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, right: Sequence[str] = (), title: str | None = None) -> None:
    """Print a table. Columns named in `right`, such as numbers, are aligned to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", overflow="fold")
    for row in rows:
        # rich parses plain strings as markup, and cells contain users' text.
        table.add_row(*(Text(str(cell)) for cell in row))
    # A pipe has no width: a table cut to 80 columns would silently lose data.
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    if title is not None:
        # As a line of its own: the table's own title would be wrapped to the width of the table.
        console.print(Text(title), soft_wrap=True)
    console.print(table)


class ProgressBar:
    """A progress bar on standard error, shown only on a terminal.

    `advance` may be called for each item: it draws at most ten times a second.
    """

    DRAW_S = 0.1

    def __init__(self, what: str, total: int | None) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=remarks.console(),
            transient=True,
            disable=not sys.stderr.isatty(),
            auto_refresh=False,
        )
        self._task = self._progress.add_task(what, total=total)
        self._waiting = 0
        self._drawn = time.monotonic()

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._draw()
        self._progress.stop()

    def advance(self, count: int = 1) -> None:
        """Add `count` finished items."""
        self._waiting += count
        if time.monotonic() - self._drawn >= self.DRAW_S:
            self._draw()

    def _draw(self) -> None:
        self._progress.update(self._task, advance=self._waiting, refresh=True)
        self._waiting = 0
        self._drawn = time.monotonic()
