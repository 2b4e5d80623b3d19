"""``triplicate log key``: makes the keys of encrypted logs, and lets logs be encrypted under another."""

from __future__ import annotations

import datetime
import os

import click

from triplicate.cli.terminal.client_run import run_with_logs
from triplicate.cli.terminal.options import metadata_option
from triplicate.cli.terminal.output import print_json, remarks
from triplicate.log import Head, Logs, Purpose, PurposeKind, add_key, check_key_id, read_keys

KEY_BYTES = 32

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_file = click.argument("file", metavar="FILE", type=click.Path(dir_okay=False))

key_option = click.option(
    "--key",
    "key_id",
    metavar="ID",
    default="",
    help="Encrypt its records under the key of this id, which is in the file of log_client.keys_file (`triplicate log key new`). A log "
    "that is created without a key stays without.",
)


@click.group()
def key() -> None:
    """Make keys for encrypted logs, list them, and let a log be encrypted under another.

    The records of a log that was created with `--key` are encrypted where they are written and decrypted where they are read. Bookies
    and the metadata store never see a key. Every process that writes or reads such a log gets the key file by log_client.keys_file or
    TRIPLICATE_LOG_CLIENT_KEYS_FILE; it is read again when a key is asked for that it lacked.
    """


@key.command()
@_file
@click.argument("key_id", metavar="[ID]", required=False)
@_json
def new(file: str, key_id: str | None, as_json: bool) -> None:
    """Add a new key to FILE, which is created with mode 0600. The key is not printed, its ID is: by default the day.

    Keep a copy of the file where the records are not: without the key nobody can read them.
    """
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    chosen = add_key(file, None if key_id is None else check_key_id(key_id), day, lambda: os.urandom(KEY_BYTES))
    if as_json:
        print_json({"file": file, "key": chosen})
    else:
        click.echo(chosen)
        remarks.print(f"key {chosen} is in {file}; keep a copy of the file: without the key nobody can read what is encrypted under it")


@key.command("list")
@_file
@_json
def list_keys(file: str, as_json: bool) -> None:
    """List the ids of the keys in FILE, the newest last. No key is printed."""
    ids = list(read_keys(file))
    if as_json:
        print_json(ids)
    else:
        click.echo("".join(f"{key_id}\n" for key_id in ids), nl=False)


@key.command()
@click.argument("name", metavar="LOG")
@click.argument("key_id", metavar="[ID]", required=False)
@metadata_option
@_json
def rotate(name: str, key_id: str | None, metadata: str | None, as_json: bool) -> None:
    """Encrypt what is written to LOG under the key ID from the writer's next segment on; by default under the newest of the key file.

    First give the key to every process that writes or reads the log: add it to their files, they need no restart. Records that the log
    has stay encrypted under their keys, so keep those keys as long as the records.
    """

    async def work(logs: Logs) -> None:
        head = await _acting_for_owner(logs, await logs.head(name)).rotate_key(name, key_id)
        if as_json:
            print_json({"log": name, "key": head.key_id})
        else:
            follows = "; its writer follows at its next segment" if await logs.owner(name) is not None else ""
            remarks.print(f"log {name} is encrypted under key {head.key_id} from now on{follows}")

    run_with_logs(metadata, work)


def _acting_for_owner(logs: Logs, head: Head) -> Logs:
    """A key is the operator's, also that of a database's or a store's log."""
    purpose: Purpose = head.purpose
    return logs.acting_for(purpose) if purpose.kind in (PurposeKind.DATABASE, PurposeKind.KEY_VALUE) else logs
