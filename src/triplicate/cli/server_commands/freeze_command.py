"""``triplicate cluster freeze-ensembles``: keep all ledgers on the bookies that they have, for a while."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import click

from triplicate.cli.overview.core.cluster_problems import age_text
from triplicate.cli.process.serving import run_loop
from triplicate.cli.terminal.options import FiniteRange, cluster_uri, metadata_access, metadata_option
from triplicate.cli.terminal.output import print_json
from triplicate.metadata import FREEZE_S_MAX, EnsembleFreeze, EnsembleFreezes, open_cluster
from triplicate.runtime import real_host

Result = TypeVar("Result")

DEFAULT_MINUTES = 60.0

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("freeze-ensembles")
def freeze_ensembles() -> None:
    """Freeze changes of ensembles in the whole cluster, end the freeze, or show it.

    While ensembles are frozen, writers and recoveries replace no bookie. A writer whose entries keep their ack quorum continues without the
    bookies that failed, and resumes those that come back. One that lacks an ack quorum for `client.add_timeout_s` fails, and its error
    names the freeze. New ledgers are created as before, and replication workers copy as before. Clients read the freeze before each
    change, so it holds at once; after its end they change ensembles within ten seconds. Clients of Apache's do not read it.
    """


def _run(metadata: str | None, work: Callable[[EnsembleFreezes], Awaitable[Result]]) -> Result:
    async def body() -> Result:
        host = real_host("freeze-ensembles")
        async with await open_cluster(cluster_uri(metadata), host, access=metadata_access(host)) as cluster:
            return await work(cluster.ensemble_freezes)

    return run_loop(body())


@freeze_ensembles.command("on")
@click.option("--reason", required=True, help="Why, for the errors of writers and for other operators.")
@click.option(
    "--minutes",
    type=FiniteRange(0, FREEZE_S_MAX / 60, min_open=True),
    default=DEFAULT_MINUTES,
    show_default=True,
    help="The freeze ends by itself after this time.",
)
@metadata_option
@_json
def on(reason: str, minutes: float, metadata: str | None, as_json: bool) -> None:
    """Freeze ensembles; a freeze under way gets the new reason and end."""
    by = f"{getpass.getuser()}@{socket.gethostname()}"
    _print(_run(metadata, lambda freezes: freezes.begin(reason, by, minutes * 60)), as_json)


@freeze_ensembles.command("off")
@metadata_option
@_json
def off(metadata: str | None, as_json: bool) -> None:
    """End the freeze."""
    was_active = _run(metadata, lambda freezes: freezes.end())
    if as_json:
        print_json({"frozen": False, "changed": was_active})
    else:
        click.echo("the freeze of ensembles has ended" if was_active else "ensembles were not frozen")


@freeze_ensembles.command("status")
@metadata_option
@_json
def status(metadata: str | None, as_json: bool) -> None:
    """Show whether ensembles are frozen, until when, by whom and why."""
    _print(_run(metadata, lambda freezes: freezes.read()), as_json)


def _print(freeze: EnsembleFreeze | None, as_json: bool) -> None:
    if as_json:
        print_json(freeze_json(freeze))
    elif freeze is None:
        click.echo("ensembles are not frozen")
    else:
        left = "" if freeze.until_ms is None else f" ({age_text(freeze.until_ms - time.time_ns() // 1_000_000)} left)"
        click.echo(f"ensembles are frozen {freeze.text}{left}")


def freeze_json(freeze: EnsembleFreeze | None) -> dict[str, Any]:
    """A freeze for JSON; None: there is none."""
    if freeze is None:
        return {"frozen": False}
    return {"frozen": True, "reason": freeze.reason, "by": freeze.by, "since_ms": freeze.since_ms, "until_ms": freeze.until_ms}
