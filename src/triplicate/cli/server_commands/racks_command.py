"""``triplicate cluster racks``: the network locations of bookies, and the table that states them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from triplicate.cli.terminal.client_run import run_with_client
from triplicate.cli.terminal.options import metadata_option
from triplicate.cli.terminal.output import print_json, print_table, remarks
from triplicate.client import Client
from triplicate.errors import ConfigError
from triplicate.ledger import SiteTable

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_name = click.argument("name", metavar="BOOKIE_OR_HOST")


@click.group()
def racks() -> None:
    """Show, set and remove the racks of bookies.

    Clients with the rack-aware or region-aware policy use them within about ten seconds (`client.placement_policy`).
    """


@racks.command()
@metadata_option
@_json
def show(metadata: str | None, as_json: bool) -> None:
    """Show machine, network location and its source for each registered bookie."""

    async def work(client: Client) -> None:
        facts = await read_racks(client)
        if as_json:
            print_json(facts)
            return
        names = ("bookie", "machine", "location", "source")
        print_table(names, [[row[name] for name in names] for row in facts["bookies"]])
        for name, location in facts["not_registered"].items():
            remarks.print(f"{name} has location {location} in the table, and no registered bookie has this id or host")
        for problem in facts["problems"]:
            remarks.print(f"not used: {problem}")

    run_with_client(metadata, work)


@racks.command("set")
@_name
@click.argument("location", metavar="LOCATION")
@metadata_option
def set_rack(name: str, location: str, metadata: str | None) -> None:
    """State the location of a bookie, or of all bookies of a host, as /region/rack or /rack.

    It precedes `client.placement_script` and the bookie's own setting `bookie.network_location`.
    """

    async def work(client: Client) -> None:
        await client.metadata.network_locations.set(name, location)
        facts = await read_racks(client)
        if name in facts["not_registered"]:
            remarks.print(f"{name} is stored, and no registered bookie has this id or host")
        for problem in facts["problems"]:
            remarks.print(f"not used: {problem}")

    run_with_client(metadata, work)


@racks.command()
@_name
@metadata_option
def unset(name: str, metadata: str | None) -> None:
    """Remove the location of a bookie or host from the table."""

    async def work(client: Client) -> None:
        if not await client.metadata.network_locations.unset(name):
            raise ConfigError(f"the table has no location of {name}; `triplicate cluster racks show` lists them")

    run_with_client(metadata, work)


async def read_racks(client: Client) -> dict[str, Any]:
    """The locations for JSON."""
    bookies = client.metadata.bookies
    infos = {**await bookies.readonly(), **await bookies.writable()}
    table = (await client.metadata.network_locations.read()).locations
    return describe_racks(await client.placement.locate(infos), table)


def describe_racks(found: SiteTable, table: Mapping[str, str]) -> dict[str, Any]:
    """Sites and the entries of the table for JSON."""
    used = {*found.sites, *(site.host for site in found.sites.values())}
    return {
        "bookies": [
            {"bookie": bookie_id, "machine": site.host, "location": str(site.location), "source": found.sources[bookie_id]}
            for bookie_id, site in sorted(found.sites.items())
        ],
        "not_registered": {name: location for name, location in sorted(table.items()) if name not in used},
        "problems": list(found.problems),
    }
