"""``triplicate log``: create, list, show, append to, read, follow, truncate, rewrite, sweep, repair and delete logs."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import click

from triplicate.cli.data_commands.ledger_append import open_source
from triplicate.cli.data_commands.log_consumers import consumer, consumers
from triplicate.cli.data_commands.log_keys import key, key_option
from triplicate.cli.data_commands.log_records import FORMATS, RecordPrinter
from triplicate.cli.data_commands.log_settings_options import alter, settings_options
from triplicate.cli.data_commands.log_upkeep import repair, sweep
from triplicate.cli.data_commands.position_param import PositionParam
from triplicate.cli.overview.core.text_table import counted
from triplicate.cli.terminal.client_run import run_with_logs
from triplicate.cli.terminal.options import metadata_option
from triplicate.cli.terminal.output import ProgressBar, confirm, print_json, print_table, remarks
from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, OffsetTruncated
from triplicate.log import EARLIEST, LATEST, Head, Logs, LogSegment, LogWriter, Position, SegmentState

_name = click.argument("name", metavar="LOG")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_format = click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="How to write records.")
_offsets = click.option("--offsets", is_flag=True, help="Put the offset and a tab before each record.")


@click.group()
def log() -> None:
    """Create, append to, read, follow, maintain and delete logs.

    A log is an endless sequence of records with offsets 0, 1, 2 …, stored in ledgers one after another. One writer appends at a
    time; a new writer takes over and fences the one before. Everyone may read.
    """


@log.command()
@_name
@metadata_option
@key_option
@settings_options
@_json
def create(name: str, metadata: str | None, key_id: str, as_json: bool, **settings: Any) -> None:
    """Create an empty log."""

    async def work(logs: Logs) -> None:
        head = await logs.create(name, LogSettings(**settings), key_id=key_id)
        if as_json:
            print_json(_facts(name, head, [], 0))
        else:
            remarks.print(f"log {name} is there, empty")

    run_with_logs(metadata, work)


@log.command("list")
@metadata_option
@_json
def list_logs(metadata: str | None, as_json: bool) -> None:
    """List the logs of the cluster, by name."""

    async def work(logs: Logs) -> None:
        rows: list[dict[str, Any]] = []
        names = await logs.names()
        with ProgressBar("logs", len(names)) as bar:
            for name in names:
                rows.append(await _describe(logs, name))
                bar.advance()
        if as_json:
            print_json(rows)
            return
        columns = ("log", "purpose", "first_offset", "end_offset", "segments", "bytes", "epoch", "owner")
        cells = [[_cell(len(row[name]) if name == "segments" else row[name]) for name in columns] for row in rows]
        headings = ("log", "belongs to", "first", "end", "segments", "bytes", "epoch", "owner")
        print_table(headings, cells, right=("first", "end", "segments", "bytes", "epoch"))

    run_with_logs(metadata, work)


@log.command()
@_name
@metadata_option
@_json
def show(name: str, metadata: str | None, as_json: bool) -> None:
    """Show a log: its offsets, its writer, its settings, its segments."""

    async def work(logs: Logs) -> None:
        facts = await _describe(logs, name)
        if as_json:
            print_json(facts)
            return
        segments, settings = facts.pop("segments"), facts.pop("settings")
        print_table(("log", name), [(key, _cell(value)) for key, value in facts.items() if key != "log"])
        print_table(("setting", "value"), list(settings.items()))
        columns = ("first_offset", "end_offset", "ledger_id", "state", "copies", "records", "bytes", "entries", "from", "to")
        full = settings["write_quorum"]
        rows = [
            [_cell({**segment, "copies": (segment["reduced"] or {}).get("write_quorum", full)}[column]) for column in columns]
            for segment in segments
        ]
        headings = ("first", "end", "ledger", "state", "copies", "records", "bytes", "entries", "from", "to")
        print_table(headings, rows, right=("first", "end", "ledger", "copies", "records", "bytes", "entries"))

    run_with_logs(metadata, work)


@log.command()
@_name
@click.argument("values", metavar="[VALUE]...", nargs=-1)
@metadata_option
@click.option(
    "--file", type=click.Path(exists=True, dir_okay=False, allow_dash=True), help="Append each line of this file; - is standard input."
)
@click.option("--owner", default="triplicate log append", show_default=True, help="Name of this writer, shown to others.")
@click.option("--take-over", is_flag=True, help="Fence a live writer instead of refusing.")
@click.option("--offsets", is_flag=True, help="Print each record's offset once it is acknowledged.")
@_json
def append(
    name: str, values: tuple[str, ...], metadata: str | None, file: str | None, owner: str, take_over: bool, offsets: bool, as_json: bool
) -> None:
    """Append records: each VALUE, or each line of --file or of standard input (also for the single VALUE -)."""
    if values and file:
        raise click.UsageError("give values or --file, not both")

    async def work(logs: Logs) -> None:
        async with await logs.writer(name, owner=owner, take_over=take_over) as writer:
            with ProgressBar("appended", None) as bar, report_on_interrupt(name, writer):
                async with open_source(values, file) as source:
                    while batch := await source.next_batch():
                        appended = await writer.append_many(batch)
                        bar.advance(len(appended))
                        if offsets:
                            click.echo("\n".join(map(str, appended)))
            facts: dict[str, Any] = {
                "log": name,
                "epoch": writer.epoch,
                "first_offset": writer.start_offset,
                "end_offset": writer.next_offset,
                "records": writer.next_offset - writer.start_offset - writer.admitted,
            }
        if as_json:
            print_json(facts)
        elif not offsets:
            click.echo(f"log {name}: {counted(facts['records'], 'record')}, offsets from {facts['first_offset']}")

    run_with_logs(metadata, work)


@contextlib.contextmanager
def report_on_interrupt(name: str, writer: LogWriter) -> Iterator[None]:
    """On Ctrl-C print the number of acknowledged records."""
    try:
        yield
    except asyncio.CancelledError:
        records = writer.acknowledged_offset - writer.start_offset - writer.admitted
        remarks.print(f"log {name}: interrupted after {counted(records, 'record')}, offsets from {writer.start_offset}")
        raise


@log.command()
@_name
@metadata_option
@click.option("--from", "start", type=PositionParam(), default=EARLIEST, show_default=True, help="First offset, `earliest`, or a time.")
@click.option("--to", "end", type=PositionParam(), default=LATEST, show_default=True, help="Offset or time to stop before, or `latest`.")
@click.option("--count", type=click.IntRange(min=0), help="Stop after this many records.")
@_format
@_offsets
def read(name: str, metadata: str | None, start: Position, end: Position, count: int | None, form: str, offsets: bool) -> None:
    """Read the records that exist now."""

    if isinstance(start, int) and isinstance(end, int) and end < start:
        raise click.UsageError(f"--to {end} is before --from {start}; records are read in the order of their offsets")

    async def work(logs: Logs) -> None:
        first = await logs.offset_at(name, start)
        last = await logs.offset_at(name, LATEST)
        if first > last:
            raise ArgumentError(
                f"log {name!r} ends at offset {last}, {first} is not there yet; `triplicate log tail {name}` waits for more"
            )
        last = min(last, await logs.offset_at(name, end))
        if count is not None:
            last = min(last, first + count)
        printer = RecordPrinter(form, with_offsets=offsets)
        head = await logs.head(name)
        if first < head.first_offset:
            raise OffsetTruncated(f"log {name!r} begins at offset {head.first_offset}; {first} was truncated")
        with ProgressBar("records", max(0, last - first)) as bar:
            for planned in await logs.plan(name, first, max(first, last), max(1, last - first)):
                async with logs.read_range(planned) as reading:
                    async for entry in reading:
                        printer.write(entry)
                        bar.advance(entry.count)

    run_with_logs(metadata, work)


@log.command()
@_name
@metadata_option
@click.option("--from", "start", type=PositionParam(), default=LATEST, show_default=True, help="Offset or time, `earliest`, `latest`.")
@_format
@_offsets
def tail(name: str, metadata: str | None, start: Position, form: str, offsets: bool) -> None:
    """Follow a log: print records as they become readable, until Ctrl-C."""

    async def work(logs: Logs) -> None:
        printer = RecordPrinter(form, with_offsets=offsets)
        async with await logs.reader(name, await logs.offset_at(name, start)) as reader:
            async for entry in reader:
                printer.write(entry)

    run_with_logs(metadata, work)


@log.command()
@_name
@click.argument("offset", type=PositionParam())
@metadata_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def truncate(name: str, offset: Position, metadata: str | None, yes: bool) -> None:
    """Delete the records before OFFSET (`latest`: all records). Space is freed by whole segments."""
    if not yes:
        confirm(f"delete the records of log {name} before offset {offset}?")

    async def work(logs: Logs) -> None:
        first = await logs.truncate(name, await logs.offset_at(name, offset))
        remarks.print(f"log {name} begins at offset {first}")

    run_with_logs(metadata, work)


@log.command()
@_name
@metadata_option
@click.option("--force", is_flag=True, help="Fence a live writer instead of refusing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(name: str, metadata: str | None, force: bool, yes: bool) -> None:
    """Delete a log and all its ledgers permanently."""
    if not yes:
        confirm(f"delete log {name} and everything in it?")

    async def work(logs: Logs) -> None:
        await logs.delete(name, force=force)
        remarks.print(f"log {name} is deleted")

    run_with_logs(metadata, work)


@log.command()
@_name
@metadata_option
@click.option("--merge", is_flag=True, help="Merge small neighbouring segments instead.")
@click.option("--dry-run", is_flag=True, help="Print what would be rewritten, and change nothing.")
@_json
def rewrite(name: str, metadata: str | None, merge: bool, dry_run: bool, as_json: bool) -> None:
    """Rewrite segments that were written while bookies were short, so that they have all copies; or, with --merge, small ones.

    The records, their offsets and their times stay as they are, and readers and the writer go on. The old ledgers are deleted when the
    new ones have been read back. Segments stay as they are while too few bookies are writable; run it again then.
    """

    async def work(logs: Logs) -> None:
        if dry_run:
            _print_runs(await logs.rewritable(name, merge=merge), as_json)
            return
        done = await (logs.merge_small(name) if merge else logs.raise_copies(name))
        if as_json:
            print_json({"log": name, **asdict(done)})
            return
        text = f"log {name}: {done.segments} segments rewritten into {done.ledgers}"
        remarks.print(text + (f", {done.postponed} left as they are: bookies are short, or the log changed" if done.postponed else ""))

    run_with_logs(metadata, work)


def _print_runs(runs: list[tuple[LogSegment, ...]], as_json: bool) -> None:
    rows = [
        {
            "first_offset": run[0].first_offset,
            "end_offset": run[-1].end_offset,
            "ledgers": [segment.ledger_id for segment in run],
            "bytes": sum(segment.size_bytes for segment in run),
        }
        for run in runs
    ]
    if as_json:
        print_json(rows)
        return
    cells = [[row["first_offset"], row["end_offset"], len(run), row["bytes"]] for row, run in zip(rows, runs, strict=True)]
    print_table(("first", "end", "segments", "bytes"), cells, right=("first", "end", "segments", "bytes"))


log.add_command(alter)
log.add_command(consumers)
log.add_command(consumer)
log.add_command(sweep)
log.add_command(repair)
log.add_command(key)


async def _describe(logs: Logs, name: str) -> dict[str, Any]:
    head = await logs.head(name)
    owner = await logs.owner(name)
    facts = _facts(name, head, await logs.segments(name), await logs.end_offset(name))
    return {**facts, "owner": owner.name if owner is not None else None}


def _facts(name: str, head: Head, segments: list[LogSegment], end_offset: int) -> dict[str, Any]:
    """A log for JSON."""
    return {
        "log": name,
        "log_id": head.log_id,
        "purpose": str(head.purpose),
        "key": head.key_id or None,
        "first_offset": head.first_offset,
        "end_offset": end_offset,
        "epoch": head.epoch,
        "owner": None,
        "bytes": sum(segment.size_bytes for segment in segments),
        "created": _time(head.created_ms * 1000),
        "settings": asdict(head.settings),
        "segments": [_segment(segment) for segment in segments],
    }


def _segment(segment: LogSegment) -> dict[str, Any]:
    is_open = segment.state is SegmentState.OPEN
    return {
        "ledger_id": segment.ledger_id,
        "state": segment.state.value,
        "first_offset": segment.first_offset,
        "end_offset": None if is_open else segment.end_offset,
        "records": None if is_open else segment.records,
        "bytes": None if is_open else segment.size_bytes,
        "entries": None if is_open else segment.last_entry + 1,
        "reduced": None if segment.reduced is None else asdict(segment.reduced),
        "from": None if is_open else _time(segment.min_time_us),
        "to": None if is_open else _time(segment.max_time_us),
    }


def _time(time_us: int) -> str:
    return datetime.datetime.fromtimestamp(time_us / 1_000_000, datetime.UTC).isoformat(timespec="milliseconds")


def _cell(value: object) -> object:
    return "-" if value is None else value
