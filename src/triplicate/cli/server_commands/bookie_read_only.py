"""``triplicate bookie set-readonly``: request that a bookie be read-only, or withdraw the request."""

from __future__ import annotations

import click

from triplicate.cli.overview.core.cluster_facts import BookieState
from triplicate.cli.server_commands.bookie_command import with_cluster
from triplicate.cli.server_commands.bookie_list import uri_of
from triplicate.cli.terminal.options import limit_option, metadata_option
from triplicate.cli.terminal.output import print_json, remarks
from triplicate.errors import ArgumentError, RequestTimeout
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, sleep

POLL_S = 0.5
ON, OFF = "on", "off"


@click.command("set-readonly")
@click.argument("bookie_id", metavar="BOOKIE_ID")
@click.argument("request", metavar="on|off", type=click.Choice((ON, OFF)))
@metadata_option
@limit_option("Longest time to wait until the bookie has changed its registration; 0: do not wait.", 30.0, least_s=0, most_s=86400)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def set_read_only(context: click.Context, bookie_id: str, request: str, metadata: str | None, limit_s: float, as_json: bool) -> None:
    """Make a bookie read-only, or withdraw that request.

    A read-only bookie serves reads and accepts the copies of recoveries; writers replace it in their ensembles. The request is kept in the
    metadata, so it outlasts a restart of the bookie. Bookies of Apache's do not read it.
    """

    async def work(host: Host, cluster: ClusterMetadata) -> BookieState:
        return await change_request(host, cluster, bookie_id, request == ON, limit_s)

    state = with_cluster("bookie-set-readonly", uri_of(context, metadata), work)
    if as_json:
        print_json({"bookie": bookie_id, "requested": request == ON, "state": state.value})
    elif state is BookieState.LOST:
        remarks.print(f"bookie {bookie_id} is not registered; it reads the request when it starts")
    else:
        remarks.print(f"bookie {bookie_id} is {state.value}")


async def change_request(host: Host, cluster: ClusterMetadata, bookie_id: str, wanted: bool, limit_s: float) -> BookieState:
    """Make or withdraw the request, and wait until the bookie has changed its registration. Returns its state.

    Raises:
        ArgumentError: the cluster does not know the bookie.
        RequestTimeout: the registration did not change within `limit_s`. The request stays as it was changed.
    """
    state = await state_of(cluster, bookie_id)
    if state is BookieState.LOST and await cluster.cookies.get(bookie_id) is None:
        names = ", ".join(await cluster.cookies.bookie_ids()) or "none"
        raise ArgumentError(f"the cluster knows no bookie {bookie_id}; there are: {names}")
    if not wanted and state is not BookieState.LOST and await cluster.cookies.get(bookie_id) is None:
        raise ArgumentError(f"bookie {bookie_id} has no cookie: it was decommissioned; stop it, empty its disks, and start it as a new one")
    requests = cluster.read_only_requests
    await (requests.request(bookie_id) if wanted else requests.withdraw(bookie_id))
    expected = BookieState.READ_ONLY if wanted else BookieState.WRITABLE
    deadline = host.clock.monotonic() + limit_s
    while (state := await state_of(cluster, bookie_id)) not in (expected, BookieState.LOST) and limit_s:
        if host.clock.monotonic() >= deadline:
            raise RequestTimeout(_unchanged(bookie_id, wanted, limit_s))
        await sleep(host.clock, POLL_S)
    return state


async def state_of(cluster: ClusterMetadata, bookie_id: str) -> BookieState:
    """Where the bookie is registered."""
    registered = await cluster.bookies.registered()
    if bookie_id in registered.readonly:
        return BookieState.READ_ONLY
    if bookie_id in registered.unreadable:
        return BookieState.UNREADABLE
    return BookieState.WRITABLE if bookie_id in registered.writable else BookieState.LOST


def _unchanged(bookie_id: str, wanted: bool, limit_s: float) -> str:
    if wanted:
        return (
            f"bookie {bookie_id} is still writable {limit_s:g} s after the request, which stays; a bookie of Apache's does not read it: "
            "use its HTTP endpoint /api/v1/bookie/state/readonly"
        )
    return (
        f"bookie {bookie_id} is still read-only {limit_s:g} s after the request was withdrawn; its disks may be full: "
        f"`triplicate bookie status --bookie-id {bookie_id}`"
    )
