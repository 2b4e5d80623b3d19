"""The command ``triplicate``: finds the subcommand, and converts errors to one line with the remedy."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import sys
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import click

from triplicate.cli.terminal.extras import cure_of, is_installed
from triplicate.cli.terminal.pipes import STANDARD_OUTPUT, OutputClosed, discard_output, prepare_standard_streams
from triplicate.errors import NoSuchLedger, SqlError, TriplicateError


class Subcommand(NamedTuple):
    """One subcommand of ``triplicate``."""

    place: str
    """``module:name`` of the click command."""
    summary: str
    """The first sentence of the command's own help. It stands here so that ``--help`` does not import the commands."""


COMMANDS: dict[str, Subcommand] = {
    "up": Subcommand("triplicate.cli.server_commands.up_command:up", "Run a local cluster until Ctrl-C."),
    "bookie": Subcommand("triplicate.cli.server_commands.bookie_command:bookie", "Run a bookie, or inspect and repair its directories."),
    "autorecovery": Subcommand(
        "triplicate.cli.server_commands.autorecovery_command:autorecovery",
        "Find ledgers that lack copies and make the copies again, until SIGTERM or Ctrl-C.",
    ),
    "dump": Subcommand(
        "triplicate.cli.server_commands.dump_command:dump", "Print what the journals, entry logs and index of a bookie hold."
    ),
    "doctor": Subcommand(
        "triplicate.cli.server_commands.doctor_command:doctor",
        "Check a bookie's settings, certificates, disks, cookies, metadata, port and machine.",
    ),
    "cluster": Subcommand(
        "triplicate.cli.server_commands.cluster_command:cluster",
        "Show the state of a cluster, create one, copy its metadata, state racks, or make the copies of lost bookies again.",
    ),
    "cookie": Subcommand("triplicate.cli.server_commands.cookie_command:cookie", "Show, write and delete the cookies of bookies."),
    "ledger": Subcommand(
        "triplicate.cli.data_commands.ledger_command:ledger", "Create, append to, read, follow, check, recover and delete ledgers."
    ),
    "log": Subcommand("triplicate.cli.data_commands.log_command:log", "Create, append to, read, follow, maintain and delete logs."),
    "node": Subcommand(
        "triplicate.cli.server_commands.node_command:node", "Run a database node, or list and drain the nodes of a cluster."
    ),
    "database": Subcommand(
        "triplicate.cli.data_commands.database_command:database",
        "Create, list, show, rename, drop, back up and restore databases.",
    ),
    "sql": Subcommand("triplicate.cli.data_commands.sql_command:sql", "Open a database at a prompt."),
    "kv": Subcommand("triplicate.cli.data_commands.kv_command:kv", "Create, list, show and drop key-value stores."),
    "security": Subcommand(
        "triplicate.cli.server_commands.security_command:security",
        "Make an authority, issue and renew certificates, and show when they expire.",
    ),
    "sim": Subcommand(
        "triplicate_simulator.sim_command:sim",
        "Run whole clusters in virtual time, inject faults drawn from a seed, and judge what their clients saw.",
    ),
    "zookeeper": Subcommand(
        "triplicate.cli.server_commands.zookeeper_command:zookeeper", "Run the ZooKeeper of a local cluster until SIGTERM or Ctrl-C."
    ),
    "demo": Subcommand("triplicate_demo.demo_command:demo", "Run the demonstration on real data."),
}
"""The subcommands by name. A command is imported when it is called, so that it does not pay for the imports of others.

The simulator and the demonstration are separate packages. Their commands are listed if the packages are installed.
"""
HIDDEN = ("zookeeper",)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for name, command in COMMANDS.items() if is_installed(command.place.partition(".")[0])]

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Replaces click's, which imports every command for its summary."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in self.list_commands(context) if name not in HIDDEN])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name].place.partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(self, context: click.Context, arguments: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Extends click's, which suggests only imported commands: the error for an unknown command suggests similar names."""
        name = arguments[0]
        if name not in COMMANDS and not name.startswith("-") and not context.resilient_parsing:
            near = " or ".join(f"'{each}'" for each in difflib.get_close_matches(name, [each for each in COMMANDS if each not in HIDDEN]))
            context.fail(f"No such command '{name}'." + (f" Did you mean {near}?" if near else ""))
        return super().resolve_command(context, arguments)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="triplicate", message="%(prog)s %(version)s")
def cli() -> None:
    """Triplicate: a replicated commit log with Apache BookKeeper's protocol, and the databases and pipelines built on it.

    Commands that are clients of a cluster take settings from variables (TRIPLICATE_CLIENT_…, TRIPLICATE_SECURITY_…) and from a TOML file
    that TRIPLICATE_CONFIG names.
    """


def one_line(error: BaseException) -> str:
    """The message of an error for users: what happened and what to do, without class names and line breaks."""
    if isinstance(error, SqlError):
        return f"{error.message} (SQLSTATE {error.sqlstate})" + (f": {error.hint}" if error.hint else "")
    if isinstance(error, NoSuchLedger):
        return f"{error}; triplicate ledger list shows those that exist, and triplicate ledger undelete restores deleted ones"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command line and end the process.

    Exit codes: 0 done, 1 failed (one line on standard error), 2 wrong usage, 130 interrupted.
    """
    code: object = 0
    prepare_standard_streams()
    try:
        code = cli.main(args=arguments, prog_name="triplicate", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except OutputClosed:
        discard_output()  # The reader of the output has closed the pipe, as `head` does.
    except ModuleNotFoundError as error:
        cure = cure_of(error)
        if cure is None:
            raise
        click.echo(f"triplicate: {cure}", err=True)
        sys.exit(1)
    except (TriplicateError, OSError) as error:
        if isinstance(error, OSError) and error.filename == STANDARD_OUTPUT:
            discard_output()
        with contextlib.suppress(OSError):  # Standard error may be gone, too.
            click.echo(f"triplicate: {one_line(error)}", err=True)
        sys.exit(1)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
