"""The command ``triplicate``: finds the subcommand, and turns errors into one line that says what to do."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

from triplicate.cli.terminal.extras import cure_of, is_installed
from triplicate.cli.terminal.pipes import OutputClosed
from triplicate.errors import SqlError, TriplicateError

COMMANDS: dict[str, str] = {
    "up": "triplicate.cli.server_commands.up_command:up",
    "bookie": "triplicate.cli.server_commands.bookie_group:bookie",
    "doctor": "triplicate.cli.server_commands.doctor_command:doctor",
    "cluster": "triplicate.cli.server_commands.cluster_command:cluster",
    "ledger": "triplicate.cli.data_commands.ledger_command:ledger",
    "log": "triplicate.cli.data_commands.log_command:log",
    "node": "triplicate.cli.server_commands.node_command:node",
    "database": "triplicate.cli.data_commands.database_command:database",
    "sql": "triplicate.cli.data_commands.sql_command:sql",
    "sim": "triplicate_simulator.sim_command:sim",
    "zookeeper": "triplicate.cli.server_commands.zookeeper_command:zookeeper",
    "demo": "triplicate_demo.demo_command:demo",
}
"""Subcommand → ``module:name``; imported when used, so that one command does not pay for another's imports.

The simulator and the demonstration are packages of their own: their commands are listed where these are installed.
"""
HIDDEN = ("zookeeper",)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called or listed."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for name, place in COMMANDS.items() if is_installed(place.partition(".")[0])]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(self, context: click.Context, arguments: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Extends click's, which knows only commands that are imported: the error for an unknown command proposes similar names."""
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-") and not context.resilient_parsing:
            near = " or ".join(f"'{each}'" for each in difflib.get_close_matches(name, [each for each in COMMANDS if each not in HIDDEN]))
            context.fail(f"No such command '{name}'." + (f" Did you mean {near}?" if near else ""))
        return super().resolve_command(context, arguments)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="triplicate", message="%(prog)s %(version)s")
def cli() -> None:
    """Triplicate: a replicated commit log that speaks Apache BookKeeper's protocol, and what is built on it."""


def one_line(error: BaseException) -> str:
    """The error for a person: what happened and what to do, without class names and line breaks."""
    if isinstance(error, SqlError):
        return f"{error.message} (SQLSTATE {error.sqlstate})"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and end the process.

    Exit codes: 0 done, 1 failed (one line on standard error), 2 wrong usage, 130 interrupted.
    """
    code: object = 0
    try:
        code = cli.main(args=arguments, prog_name="triplicate", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except OutputClosed:
        # Whoever reads our output has seen enough, as `head` does. What is left of it goes nowhere, also at the interpreter's end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ModuleNotFoundError as error:
        cure = cure_of(error)
        if cure is None:
            raise
        click.echo(f"triplicate: {cure}", err=True)
        sys.exit(1)
    except (TriplicateError, OSError) as error:
        click.echo(f"triplicate: {one_line(error)}", err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
