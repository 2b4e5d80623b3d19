"""``triplicate cookie``: show, write and delete the cookies of bookies in the metadata."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from triplicate.autorecovery import names_any, walk_ledgers
from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import metadata_option
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.client import Client
from triplicate.errors import ArgumentError, NodeExists
from triplicate.metadata import ClusterMetadata, Cookie, decode_cookie, encode_cookie

ROWS_MAX = 50
"""Ledgers that a refusal lists; JSON has all."""

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_bookie_id = click.argument("bookie_id", metavar="BOOKIE_ID")
_file = click.argument("path", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group()
def cookie() -> None:
    """Show, write and delete the cookies of bookies.

    A cookie binds the directories of a bookie to its id and to the cluster. The metadata and the file VERSION in each directory have it. A
    bookie starts only if all of them agree with each other and with its settings.
    """


@cookie.command()
@click.argument("bookie_id", metavar="[BOOKIE_ID]", required=False)
@metadata_option
@_json
def show(bookie_id: str | None, metadata: str | None, as_json: bool) -> None:
    """Print the cookie of a bookie as its VERSION file has it, or list all cookies."""

    async def work(client: Client) -> None:
        if bookie_id is not None:
            found = await cookie_of(client.metadata, bookie_id)
            if as_json:
                print_json(cookie_facts(found))
            else:
                click.echo(encode_cookie(found), nl=False)
            return
        names = await client.metadata.cookies.bookie_ids()
        cookies = [await cookie_of(client.metadata, name) for name in names]
        if as_json:
            print_json([cookie_facts(one) for one in cookies])
        else:
            rows = [(one.bookie_id, one.journal_dir, ", ".join(one.ledger_dirs)) for one in cookies]
            print_table(("bookie", "journal directories", "ledger directories"), rows)

    run_with_client(metadata, work)


@cookie.command()
@_bookie_id
@metadata_option
@_json
def delete(bookie_id: str, metadata: str | None, as_json: bool) -> None:
    """Delete the cookie of a bookie that is gone.

    Refused while the bookie is registered or a ledger names it: then use `triplicate bookie decommission`. Exit code 1 if refused.
    """

    async def work(client: Client) -> None:
        refusal = await delete_cookie(client, bookie_id)
        if as_json:
            print_json({"bookie": bookie_id, "deleted": not refusal, "registered": refusal.is_registered, "ledgers": list(refusal.ledgers)})
        elif refusal:
            _print_refusal(bookie_id, refusal)
        else:
            remarks.print(f"the cookie of bookie {bookie_id} is deleted; empty its directories before it is started again")
        if refusal:
            sys.exit(1)

    run_with_client(metadata, work)


@cookie.command()
@_bookie_id
@click.option("--journal", "journals", multiple=True, required=True, metavar="DIRECTORY", help="A journal directory; may be repeated.")
@click.option("--ledgers", "ledgers", multiple=True, required=True, metavar="DIRECTORY", help="A ledger directory; may be repeated.")
@metadata_option
def generate(bookie_id: str, journals: tuple[str, ...], ledgers: tuple[str, ...], metadata: str | None) -> None:
    """Print the cookie that a bookie with these directories has in this cluster. Nothing is stored."""

    async def work(client: Client) -> None:
        made = Cookie(bookie_id, ",".join(journals), ledgers, client.metadata.instance_id)
        click.echo(encode_cookie(made), nl=False)

    run_with_client(metadata, work)


@cookie.command()
@_bookie_id
@_file
@metadata_option
def create(bookie_id: str, path: Path, metadata: str | None) -> None:
    """Store the cookie of FILE for a bookie that has none, for example one that was deleted by mistake."""
    data = path.read_bytes()

    async def work(client: Client) -> None:
        await store_cookie(client.metadata, bookie_id, data, replaces=False)

    run_with_client(metadata, work)


@cookie.command()
@_bookie_id
@_file
@metadata_option
def update(bookie_id: str, path: Path, metadata: str | None) -> None:
    """Replace the cookie of a bookie by that of FILE, for example after its directories were mounted elsewhere.

    Put the same file as VERSION into the folder `current` of each directory, and change the settings, before the bookie starts.
    """
    data = path.read_bytes()

    async def work(client: Client) -> None:
        await store_cookie(client.metadata, bookie_id, data, replaces=True)

    run_with_client(metadata, work)


@dataclass(frozen=True, slots=True)
class CookieRefusal:
    """Why a cookie cannot be deleted; false if it can.

    Args:
        ledgers: the ledgers that name the bookie, and those whose metadata cannot be decoded.
    """

    is_registered: bool = False
    ledgers: tuple[int, ...] = field(default=())

    def __bool__(self) -> bool:
        return self.is_registered or bool(self.ledgers)


async def delete_cookie(client: Client, bookie_id: str) -> CookieRefusal:
    """Delete a cookie unless its bookie is in use.

    Raises:
        ArgumentError: there is no such cookie. BadVersion: it was changed meanwhile.
    """
    cluster = client.metadata
    found = await cluster.cookies.get(bookie_id)
    if found is None:
        raise await _unknown(cluster, bookie_id)
    async with aclosing(walk_ledgers(client)) as walked:
        ledgers = [ledger.ledger_id async for ledger in walked if ledger.metadata is None or names_any(ledger.metadata, (bookie_id,))]
    registered = await cluster.bookies.registered()
    refusal = CookieRefusal(bookie_id in registered, tuple(ledgers))
    if not refusal:
        await cluster.cookies.delete(bookie_id, found[1])
    return refusal


async def store_cookie(cluster: ClusterMetadata, bookie_id: str, data: bytes, *, replaces: bool) -> None:
    """Store a cookie in its text form.

    Args:
        replaces: whether the bookie must have a cookie already; otherwise it must have none.

    Raises:
        ArgumentError: it is that of another bookie or cluster, or the bookie has a cookie, or none. FormatError: it is no cookie.
        BadVersion: the cookie was changed meanwhile.
    """
    given = decode_cookie(data)
    for what, theirs, ours in (("bookie", given.bookie_id, bookie_id), ("cluster", given.instance_id, cluster.instance_id)):
        if theirs != ours:
            raise ArgumentError(f"this is the cookie of {what} {theirs or 'without an id'}, not of {ours}")
    found = await cluster.cookies.get(bookie_id) if replaces else None
    if replaces and found is None:
        raise await _unknown(cluster, bookie_id)
    try:
        await cluster.cookies.put(given, None if found is None else found[1])
    except NodeExists:
        raise ArgumentError(f"bookie {bookie_id} has another cookie already; `triplicate cookie update` replaces it") from None


async def cookie_of(cluster: ClusterMetadata, bookie_id: str) -> Cookie:
    """The cookie of a bookie.

    Raises:
        ArgumentError: it has none. FormatError: it cannot be decoded.
    """
    found = await cluster.cookies.get(bookie_id)
    if found is None:
        raise await _unknown(cluster, bookie_id)
    return found[0]


async def _unknown(cluster: ClusterMetadata, bookie_id: str) -> ArgumentError:
    names: Sequence[str] = await cluster.cookies.bookie_ids()
    return ArgumentError(f"bookie {bookie_id} has no cookie; there are those of: {', '.join(names) or 'none'}")


def cookie_facts(found: Cookie) -> dict[str, Any]:
    """A cookie for JSON."""
    return {
        "bookie": found.bookie_id,
        "cluster": found.instance_id,
        "journal_directories": found.journal_dir.split(","),
        "ledger_directories": list(found.ledger_dirs),
        "index_directories": None if found.index_dirs is None else list(found.index_dirs),
    }


def _print_refusal(bookie_id: str, refusal: CookieRefusal) -> None:
    reasons = ["it is registered"] if refusal.is_registered else []
    if refusal.ledgers:
        named = ", ".join(map(str, refusal.ledgers[:ROWS_MAX]))
        more = f" and {len(refusal.ledgers) - ROWS_MAX} more" if len(refusal.ledgers) > ROWS_MAX else ""
        reasons.append(f"{len(refusal.ledgers)} ledgers name it or cannot be decoded: {named}{more}")
    click.echo(f"the cookie of bookie {bookie_id} stays: {'; '.join(reasons)}; use `triplicate bookie decommission {bookie_id}`")
