"""``triplicate log alter``, and the options for the settings that a log keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

import click

from triplicate.cli.terminal.client_run import run_with_logs
from triplicate.cli.terminal.options import FiniteRange, metadata_option
from triplicate.cli.terminal.output import print_json, remarks
from triplicate.config.log_settings import LogSettings
from triplicate.log import Logs


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """An option for every setting that a log keeps, with its default."""
    return _options(command, with_defaults=True)


def _options(command: Callable[..., Any], *, with_defaults: bool) -> Callable[..., Any]:
    for field in reversed(fields(LogSettings)):
        info = field.metadata["setting"]
        kind: click.ParamType[Any] = click.Choice(info.choices) if info.choices else FiniteRange(info.low, info.high)
        if isinstance(field.default, int):
            kind = click.IntRange(info.low, info.high)
        unit = f" [{info.unit}]" if info.unit else ""
        flag = "--" + field.name.replace("_", "-")
        default = field.default if with_defaults else None
        command = click.option(flag, field.name, type=kind, default=default, show_default=with_defaults, help=info.help + unit)(command)
    return command


def _changed_settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return _options(command, with_defaults=False)


@click.command()
@click.argument("name", metavar="LOG")
@metadata_option
@_changed_settings_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def alter(name: str, metadata: str | None, as_json: bool, **settings: Any) -> None:
    """Change settings of LOG. Those that are not given stay.

    A living writer uses them from its next segment on; retention applies at once. Segments with fewer copies than are asked for now get
    the others by `triplicate log rewrite`, or by the janitor of database nodes.
    """
    changes = {key: value for key, value in settings.items() if value is not None}
    if not changes:
        raise click.UsageError("give a setting to change; `triplicate log show` shows the present ones")

    async def work(logs: Logs) -> None:
        head = await logs.alter(name, changes)
        if as_json:
            print_json({"log": name, "settings": asdict(head.settings)})
        else:
            remarks.print(f"log {name}: " + ", ".join(f"{key} is {asdict(head.settings)[key]}" for key in changes))

    run_with_logs(metadata, work)
