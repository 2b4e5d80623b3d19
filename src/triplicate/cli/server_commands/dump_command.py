"""``triplicate dump``: what the journals, entry logs and index of a bookie hold. Nothing is changed."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any, TypeVar

import click

from triplicate.bookie import DumpChoice, DumpLine, LineKind, copy_index, dump_entry_log, dump_index, dump_journal, dump_mark, is_in_use
from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.output import remarks
from triplicate.cli.terminal.pipes import write_output
from triplicate.errors import ArgumentError, TriplicateError
from triplicate.runtime import Disk, real_host

LINES_AT_ONCE = 256
"""Lines that are written with one call."""
MARK, INDEX, CURRENT = "mark", "index.db", "current"
_RANGE = re.compile(r"([0-9]+)(:([0-9]*))?", re.ASCII)

Lines = Callable[[Disk, str, DumpChoice], Iterator[DumpLine]]
Command = TypeVar("Command", bound=Callable[..., Any])


@click.group("dump")
def dump() -> None:
    """Print what the journals, entry logs and index of a bookie hold.

    The bookie may run. Files are opened for reading only. Damage is reported with its offset, and the dump goes on behind it. Files of
    Apache's bookies are refused. Exit code 1: a file is damaged, or is refused.
    """


def _path(command: Command) -> Command:
    return click.argument("path", type=click.Path(exists=True, path_type=Path))(command)


def _by_entry(command: Command) -> Command:
    """The options of every dump."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line."),
        click.option("--entry", "entry", metavar="ID|FIRST:LAST", help="Only these entries; FIRST: means up to the end."),
        click.option("--ledger", "ledger_id", type=click.IntRange(min=0), metavar="ID", help="Only this ledger."),
    ):
        command = option(command)
    return command


def _by_position(command: Command) -> Command:
    """The options of dumps of files with entries."""
    for option in (
        click.option("--until", "end", type=click.IntRange(min=0), metavar="BYTE", help="Only what begins before this byte of a file."),
        click.option(
            "--from", "start", type=click.IntRange(min=0), default=0, metavar="BYTE", help="Only what begins at this byte or later."
        ),
        click.option("--content", is_flag=True, help="Also print digest and payload of each entry in base64. Implies --entries."),
        click.option("--entries", is_flag=True, help="Also print the entries and ledger states. --ledger and --entry imply it."),
    ):
        command = option(command)
    return command


@dump.command("journal")
@_path
@_by_position
@_by_entry
def dump_journals(path: Path, as_json: bool, **options: Any) -> None:
    """Print the groups of a journal file, or of all journal files in a directory, with the journal's mark."""
    _print_files(_files(path, ".journal", MARK), as_json, choice_of(**options), _journal_or_mark)


def _journal_or_mark(disk: Disk, path: str, choice: DumpChoice) -> Iterator[DumpLine]:
    return dump_mark(disk, path) if path.endswith(f"/{MARK}") else dump_journal(disk, path, choice)


@dump.command("entry-log")
@_path
@_by_position
@_by_entry
def dump_entry_logs(path: Path, as_json: bool, **options: Any) -> None:
    """Print the blocks of an entry log, or of all entry logs in a directory."""
    _print_files(_files(path, ".entries"), as_json, choice_of(**options), dump_entry_log)


@dump.command("index")
@_path
@click.option("--log", "log", type=click.IntRange(min=0), metavar="NUMBER", help="Only runs in this entry log.")
@_by_entry
def dump_indexes(path: Path, as_json: bool, log: int | None, **options: Any) -> None:
    """Print the rows of an index: the entry logs, and each ledger with its runs.

    PATH is the file index.db or its directory. The index of a running bookie is copied into a temporary directory first.
    """
    _print_files(_files(path, INDEX), as_json, choice_of(log=log, **options), _index)


def _index(disk: Disk, path: str, choice: DumpChoice) -> Iterator[DumpLine]:
    running = is_in_use(disk, path)
    held: AbstractContextManager[str | None] = tempfile.TemporaryDirectory(prefix="triplicate-dump-") if running else nullcontext()
    with held as directory:
        if directory is not None:
            copy_index(disk, path, f"{directory}/{INDEX}")
            path = f"{directory}/{INDEX}"
        yield from dump_index(disk, path, choice)


def choice_of(
    *,
    ledger_id: int | None,
    entry: str | None,
    entries: bool = False,
    content: bool = False,
    start: int = 0,
    end: int | None = None,
    log: int | None = None,
) -> DumpChoice:
    """The choice that the options make. Raises ArgumentError."""
    chosen = DumpChoice(entries=entries or content, content=content, ledger_id=ledger_id, start=start, log=log)
    limits: dict[str, Any] = {} if end is None else {"end": end}
    if entry is not None:
        found = _RANGE.fullmatch(entry)
        if found is None:
            raise ArgumentError(f"--entry {entry}: an id, FIRST:LAST or FIRST: is expected")
        limits["first_entry"] = int(found[1])
        if found[2] is None:
            limits["last_entry"] = int(found[1])
        elif found[3]:
            limits["last_entry"] = int(found[3])
    return dataclasses.replace(chosen, **limits)


def _files(path: Path, *endings: str) -> list[Path]:
    """The file, or the files with these endings in the directory or in its ``current``, sorted.

    Raises:
        ArgumentError: the directory has none.
    """
    if not path.is_dir():
        return [path.absolute()]
    folder = path / CURRENT if (path / CURRENT).is_dir() else path
    found = [each.absolute() for ending in reversed(endings) for each in sorted(folder.iterdir()) if _ends(each.name, ending)]
    if not found:
        raise ArgumentError(f"{folder}: no file of a bookie with the name {' or '.join(endings)} is in this directory")
    return found


def _ends(name: str, ending: str) -> bool:
    return name.endswith(ending) if ending.startswith(".") else name == ending


def _print_files(paths: Iterable[Path], as_json: bool, choice: DumpChoice, lines: Lines) -> None:
    """Print the dumps of files. Ends the process with exit code 1 if any is damaged or refused."""

    async def body() -> bool:
        disk = real_host("dump").disk
        sound = True
        for path in paths:
            try:
                with closing(_Output(path, as_json)) as output:
                    for line in lines(disk, str(path), choice):
                        output.write(line)
                        sound = sound and line.kind is not LineKind.DAMAGE
            except (TriplicateError, OSError) as error:
                sound = False
                remarks.print(f"triplicate: {' '.join(str(error).split())}")
        return sound

    if not run_loop(body()):
        sys.exit(1)


class _Output:
    """Writes the lines of one file in portions."""

    def __init__(self, path: Path, as_json: bool) -> None:
        self._path = str(path)
        self._as_json = as_json
        self._waiting: list[str] = [] if as_json else [f"{path}\n"]

    def write(self, line: DumpLine) -> None:
        self._waiting.append(json_line(self._path, line) if self._as_json else text_line(line))
        if len(self._waiting) >= LINES_AT_ONCE:
            self.close()

    def close(self) -> None:
        """Write what waits."""
        waiting, self._waiting = self._waiting, []
        if waiting:
            write_output("".join(waiting).encode("utf-8", "backslashreplace"))


def json_line(path: str, line: DumpLine) -> str:
    """A line as one JSON object: ``file``, ``offset``, ``kind`` and the facts."""
    return (
        json.dumps({"file": path, "offset": line.offset, "kind": line.kind.value, **line.facts}, ensure_ascii=False, sort_keys=True) + "\n"
    )


def text_line(line: DumpLine) -> str:
    """A line as text: offset, kind and the facts, those that are None or False left out."""
    facts = " ".join(f"{name}={_text(value)}" for name, value in line.facts.items() if value is not None and value is not False)
    return f"{'' if line.offset is None else line.offset:>14}  {line.kind.value:<7} {facts}\n"


def _text(value: object) -> str:
    if value is True:
        return "yes"
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text else text
