"""``triplicate ledger``: create, list, show, append, read, tail, check, recover and delete ledgers."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import click

from triplicate.cli.data_commands.entry_text import FORMATS, EntryPrinter
from triplicate.cli.data_commands.ledger_append import append_all, open_source
from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.lazy_subcommands import LazySubcommands
from triplicate.cli.terminal.options import metadata_option
from triplicate.cli.terminal.output import ProgressBar, confirm, print_json, print_table, remarks
from triplicate.client import WRITER_AWAITED, Client, LedgerWriter
from triplicate.errors import ArgumentError, CorruptionError, FormatError, LedgerListed, NoSuchLedger, NoSuchLog
from triplicate.ledger import DigestType, LedgerMetadata
from triplicate.log import LedgerUse, Logs, has_living_writer

Command = TypeVar("Command", bound=Callable[..., Any])

READ_ENTRIES = 1000
"""Entries fetched at a time."""


class LedgerIdParam(click.ParamType[int]):
    """A ledger's id."""

    name = "ledger"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> int:
        if not str(value).isdecimal():
            self.fail(f"{value!r} is no ledger id; give a number, as `triplicate ledger list` shows them", param, context)
        return int(value)


_ledger_id = click.argument("ledger_id", metavar="LEDGER", type=LedgerIdParam())
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_format = click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="How to write entries.")
_ids = click.option("--ids", is_flag=True, help="Put the entry id and a tab before each entry.")


def _password(command: Command) -> Command:
    text = "The ledger's password; the variable TRIPLICATE_LEDGER_PASSWORD keeps it out of the list of processes."
    return click.option("--password", default="", envvar="TRIPLICATE_LEDGER_PASSWORD", help=text)(command)


def _shape_options(command: Command) -> Command:
    """Add the options of a new ledger's quorums and digest."""
    digests = click.Choice([digest.name.lower() for digest in DigestType])
    at_least_one = click.IntRange(min=1)
    for option in (
        click.option("--digest", type=digests, default="crc32c", show_default=True, help="Digest of each entry."),
        click.option(
            "--ack-quorum", type=at_least_one, default=2, show_default=True, help="Copies on disk before an entry is acknowledged."
        ),
        click.option("--write-quorum", type=at_least_one, default=3, show_default=True, help="Copies of each entry."),
        click.option(
            "--ensemble", "ensemble_size", type=at_least_one, default=3, show_default=True, help="Bookies over which the ledger is spread."
        ),
    ):
        command = option(command)
    return command


async def _create(client: Client, digest: str, password: str, shape: Mapping[str, Any], custom: Mapping[str, bytes]) -> LedgerWriter:
    return await client.create(**shape, digest_type=DigestType[digest.upper()], password=password.encode(), custom=custom)


@click.group(cls=LazySubcommands, places={"check": "triplicate.cli.data_commands.ledger_check_command:check"})
def ledger() -> None:
    """Create, append to, read, follow, check, recover and delete ledgers.

    A ledger has one writer, from its first entry to its close, and any number of readers. A writer that dies leaves its ledger open:
    `recover` fences it and closes it at the last confirmed entry.
    """


@ledger.command()
@metadata_option
@_shape_options
@_password
@_json
def create(metadata: str | None, digest: str, password: str, as_json: bool, **shape: int) -> None:
    """Create an empty ledger and print its id. Use `ledger append` to fill it."""

    async def work(client: Client) -> None:
        writer = await _create(client, digest, password, shape, WRITER_AWAITED)
        if as_json:
            print_json(describe(writer.ledger_id, writer.metadata))
        else:
            click.echo(writer.ledger_id)

    run_with_client(metadata, work)


@ledger.command("list")
@metadata_option
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this many.")
@click.option("--bookie", "bookie_id", metavar="BOOKIE_ID", help="Only ledgers that this bookie is to hold entries of.")
@_json
def list_ledgers(metadata: str | None, limit: int | None, bookie_id: str | None, as_json: bool) -> None:
    """List the ledgers of the cluster, by id, with the log, database or store that needs them.

    Behind them are the ledgers that a log lists and that are missing.
    """

    async def work(client: Client) -> None:
        rows: list[dict[str, Any]] = []
        with ProgressBar("ledgers", None) as bar:
            uses = await _uses(client)
            async for ledger_id in client.ledger_ids():
                if limit is not None and len(rows) == limit:
                    break
                found = await client.metadata_of(ledger_id)
                if bookie_id is None or any(bookie_id in segment.ensemble for segment in found.segments):
                    rows.append({**describe(ledger_id, found), "belongs_to": _owner(found, uses.get(ledger_id))})
                bar.advance()
            if limit is None and bookie_id is None:
                rows += await _missing(client, uses, {row["ledger_id"] for row in rows})
        if as_json:
            print_json(rows)
            return
        names = ("ledger_id", "state", "entries", "bytes", "quorums", "digest", "segments", "created", "belongs_to")
        cells = [[_cell(len(row[name]) if name == "segments" else row[name]) for name in names] for row in rows]
        print_table(("ledger", *names[1:-1], "belongs to"), cells, right=("ledger", "entries", "bytes", "segments"))

    run_with_client(metadata, work)


@ledger.command()
@_ledger_id
@metadata_option
@_password
@_json
def show(ledger_id: int, metadata: str | None, password: str, as_json: bool) -> None:
    """Show a ledger's metadata, its last-add-confirmed, and how well its ensembles keep the rules of placement.

    The policy is this command's own (`client.placement_policy`), the machines and racks are the present ones.
    """

    async def work(client: Client) -> None:
        async with await client.open(ledger_id, password=password.encode()) as reader:
            facts = describe(ledger_id, reader.metadata)
            facts["last_add_confirmed"] = await reader.read_last_confirmed()
        verdict = await client.placement.verdict(reader.metadata)
        facts["placement"] = {"adherence": verdict.adherence.name.lower(), "reasons": list(verdict.reasons)}
        if as_json:
            print_json(facts)
            return
        segments = facts.pop("segments")
        custom = facts.pop("custom")
        placement = facts.pop("placement")
        facts["placement"] = placement["adherence"]
        print_table(("ledger", str(ledger_id)), [(name, _cell(value)) for name, value in facts.items() if name != "ledger_id"])
        rows = [(one["first_entry_id"], ", ".join(one["ensemble"])) for one in segments]
        print_table(("from entry", "ensemble"), rows, right=("from entry",))
        if placement["reasons"]:
            print_table(("placement",), [(reason,) for reason in placement["reasons"]])
        if custom:
            print_table(("custom metadata", "value"), list(custom.items()))

    run_with_client(metadata, work)


@ledger.command()
@click.argument("ledger_id", metavar="LEDGER", type=str)
@click.argument("payloads", metavar="[PAYLOAD]...", nargs=-1)
@metadata_option
@click.option(
    "--file", type=click.Path(exists=True, dir_okay=False, allow_dash=True), help="File whose lines are appended; - is standard input."
)
@_shape_options
@_password
@click.option("--ids", is_flag=True, help="Print each entry's id as soon as it is acknowledged.")
@click.option("--leave-open", is_flag=True, help="Do not close the ledger at the end. Only recovery can close it then.")
@_json
def append(ledger_id: str, payloads: tuple[str, ...], metadata: str | None, file: str | None, password: str, **rest: Any) -> None:
    """Append entries and close the ledger.

    LEDGER is an id printed by `ledger create`, or `new` for a new ledger. Each PAYLOAD is an entry. Without payloads, or
    with - as the only one, each line of --file or of standard input is an entry. --digest and the quorums apply to a new ledger.
    """
    if payloads and file:
        raise click.UsageError("give payloads or --file, not both")
    if ledger_id != "new" and not ledger_id.isdecimal():
        raise click.UsageError(f"LEDGER is an id or `new`, not {ledger_id!r}")
    ids, leave_open, as_json, digest = (rest.pop(name) for name in ("ids", "leave_open", "as_json", "digest"))

    async def work(client: Client) -> None:
        if ledger_id == "new":
            writer = await _create(client, digest, password, rest, {})
        else:
            writer = await client.take_up(int(ledger_id), password=password.encode())
        if not (as_json or ids):
            remarks.print(f"ledger {writer.ledger_id}")
        async with open_source(payloads, file) as source:
            appended = await append_all(writer, source, print_ids=ids)
        if not leave_open:
            await writer.close()
        facts = {**appended, "ledger_id": writer.ledger_id, "closed": not leave_open, "ensemble_changes": writer.ensemble_changes}
        if as_json:
            print_json(facts)
        elif not ids:
            state = "left open" if leave_open else "closed"
            click.echo(f"ledger {writer.ledger_id}: {facts['entries']} entries, {facts['bytes']} bytes, {state}")

    run_with_client(metadata, work)


@ledger.command()
@_ledger_id
@metadata_option
@_password
@click.option("--first", type=click.IntRange(min=0), default=0, show_default=True, help="First entry.")
@click.option("--last", type=click.IntRange(min=0), help="Last entry. Default: the last that can be read now.")
@_format
@_ids
def read(ledger_id: int, metadata: str | None, password: str, first: int, last: int | None, form: str, ids: bool) -> None:
    """Read entries of a ledger, up to the last confirmed one if it is open. Reading does not fence."""

    async def work(client: Client) -> None:
        printer = EntryPrinter(form, with_ids=ids)
        async with await client.open(ledger_id, password=password.encode()) as reader:
            end = last if last is not None else await reader.read_last_confirmed()
            with ProgressBar("entries", max(0, end - first + 1)) as bar:
                for start in range(first, end + 1, READ_ENTRIES):
                    entries = await reader.read(start, min(end, start + READ_ENTRIES - 1))
                    printer.write(entries)
                    bar.advance(len(entries))

    run_with_client(metadata, work)


@ledger.command()
@_ledger_id
@metadata_option
@_password
@click.option("--first", type=click.IntRange(min=0), default=0, show_default=True, help="First entry.")
@_format
@_ids
def tail(ledger_id: int, metadata: str | None, password: str, first: int, form: str, ids: bool) -> None:
    """Follow a ledger: print entries when they are confirmed, until the ledger is closed or Ctrl-C."""

    async def work(client: Client) -> None:
        printer = EntryPrinter(form, with_ids=ids)
        async with await client.open(ledger_id, password=password.encode()) as reader:
            following = reader.tail(first)
            try:
                async for entry in following:
                    printer.write([entry])
            finally:
                await following.aclose()

    run_with_client(metadata, work)


def _force(text: str) -> Callable[[Command], Command]:
    return click.option("--force", is_flag=True, help=text)


@ledger.command()
@_ledger_id
@metadata_option
@_password
@_force("Also if the ledger is a log's and the log's writer lives.")
@_json
def recover(ledger_id: int, metadata: str | None, password: str, force: bool, as_json: bool) -> None:
    """Fence a ledger's writer and close the ledger at the last confirmed entry.

    After it no writer can append, and all readers see the same end. A closed ledger does not change.
    """

    async def work(client: Client) -> None:
        found = await client.metadata_of(ledger_id)
        if not force and not found.is_closed and await has_living_writer(Logs(client), found):
            raise ArgumentError(
                f"ledger {ledger_id} is the {_owner(found, None)}, whose writer lives and would have to begin a new one; "
                "--force recovers the ledger all the same"
            )
        async with await client.recover(ledger_id, password=password.encode()) as reader:
            facts = describe(ledger_id, reader.metadata)
        if as_json:
            print_json(facts)
        else:
            click.echo(f"ledger {ledger_id}: closed with {facts['entries']} entries, {facts['bytes']} bytes")

    run_with_client(metadata, work)


@ledger.command()
@_ledger_id
@metadata_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@_force("Also if a log, a database or a store needs it, which then lacks its records.")
def delete(ledger_id: int, metadata: str | None, yes: bool, force: bool) -> None:
    """Delete a ledger. `ledger undelete` can restore it for most of a day (`client.trash_period_s`). Then its space is freed.

    Refused if a log, a database or a key-value store needs the ledger.
    """

    owner = ""

    async def check(client: Client) -> None:
        nonlocal owner
        # A wrong id must be an error, though the deletion of a missing ledger succeeds.
        owner = _owner(await client.metadata_of(ledger_id), None)
        if not force:
            await Logs(client).require_unlisted(ledger_id)

    async def work(client: Client) -> None:
        await (client.delete(ledger_id) if force else Logs(client).delete_ledger(ledger_id))
        remarks.print(f"ledger {ledger_id} is deleted")

    try:
        run_with_client(metadata, check)
        if not yes:
            confirm(f"delete ledger {ledger_id} ({owner}) and everything in it?")
        run_with_client(metadata, work)
    except LedgerListed as error:
        raise LedgerListed(f"{error}; only in a broken cluster: --force deletes the ledger all the same") from error


@ledger.command()
@_ledger_id
@metadata_option
@_json
def undelete(ledger_id: int, metadata: str | None, as_json: bool) -> None:
    """Restore a deleted ledger while its entries are certain to exist."""

    async def work(client: Client) -> None:
        facts = describe(ledger_id, await client.undelete(ledger_id))
        if as_json:
            print_json(facts)
        else:
            click.echo(f"ledger {ledger_id} is back: {facts['state']}, {facts['quorums']}")

    run_with_client(metadata, work)


def describe(ledger_id: int, metadata: LedgerMetadata) -> dict[str, Any]:
    """A ledger's metadata for JSON. Values unknown while it is open are None."""
    closed = metadata.is_closed
    created = datetime.datetime.fromtimestamp(metadata.ctime_ms / 1000, datetime.UTC) if metadata.ctime_ms is not None else None
    return {
        "ledger_id": ledger_id,
        "state": metadata.state.name.lower(),
        "entries": metadata.last_entry_id + 1 if closed else None,
        "last_entry_id": metadata.last_entry_id if closed else None,
        "bytes": metadata.length if closed else None,
        "quorums": f"{metadata.ensemble_size}/{metadata.write_quorum}/{metadata.ack_quorum}",
        "digest": metadata.digest_type.name.lower(),
        "created": created.isoformat(timespec="seconds") if created else None,
        "segments": [{"first_entry_id": one.first_entry_id, "ensemble": list(one.ensemble)} for one in metadata.segments],
        "custom": {name: value.decode("utf-8", "backslashreplace") for name, value in sorted(metadata.custom.items())},
    }


async def _uses(client: Client) -> dict[int, LedgerUse]:
    """The ledgers that the logs of the cluster need. The standard error names logs whose lists cannot be read."""
    logs, found = Logs(client), dict[int, LedgerUse]()
    for name in await logs.names():
        try:
            found.update(await logs.ledger_uses(name))
        except NoSuchLog:
            continue  # Deleted in the meantime.
        except (FormatError, CorruptionError) as error:
            remarks.print(f"the ledgers of log {name} are not known: {error}")
    return found


async def _missing(client: Client, uses: Mapping[int, LedgerUse], there: Collection[int]) -> list[dict[str, Any]]:
    """Rows of the ledgers that logs need and that are neither among those `there` nor now in the metadata."""
    rows: list[dict[str, Any]] = []
    for ledger_id in sorted(uses.keys() - there):
        try:
            await client.metadata_of(ledger_id)
        except NoSuchLedger:
            names = ("entries", "last_entry_id", "bytes", "quorums", "digest", "created")
            rows.append({"ledger_id": ledger_id, "state": "missing", **dict.fromkeys(names), "segments": [], "custom": {}})
            rows[-1]["belongs_to"] = str(uses[ledger_id])
    return rows


def _owner(metadata: LedgerMetadata, use: LedgerUse | None) -> str:
    """The owner of a ledger: the log that lists it, or what its creator has noted."""
    if use is not None:
        return str(use)
    noted = {name: metadata.custom[name].decode("utf-8", "backslashreplace") for name in ("log", "application") if name in metadata.custom}
    if "log" in noted:
        return f"{'open ledger' if not metadata.is_closed else 'ledger'} of log {noted['log']!r}"
    return (
        f"ledger of application {noted['application']!r}" if noted.get("application", "triplicate") != "triplicate" else "ledger of no log"
    )


def _cell(value: object) -> object:
    return "-" if value is None else value
