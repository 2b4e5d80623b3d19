"""Subcommands are imported when they are called, so that a server or a short command does not import the modules of others."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from triplicate.cli.data_commands.ledger_command import ledger
from triplicate.cli.server_commands.bookie_command import bookie
from triplicate.cli.server_commands.cluster_command import cluster
from triplicate.cli.terminal.lazy_subcommands import LazySubcommands


@pytest.mark.parametrize("group", [bookie, cluster, ledger], ids=lambda group: str(group.name))
def test_every_place_is_a_command_of_that_name(group: LazySubcommands) -> None:
    context = click.Context(group)
    assert set(group.places) <= set(group.list_commands(context))
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        assert command.name == name
    assert group.get_command(context, "unknown") is None


def imported_by(statement: str) -> set[str]:
    """The rooms that a new process has imported behind a statement."""
    text = f"import sys\n{statement}\nprint(*{{name.split('.')[1] for name in sys.modules if name.startswith('triplicate.')}})"
    return set(subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout.split())


def test_a_bookie_does_not_import_the_client() -> None:
    rooms = imported_by("from triplicate.cli.server_commands import bookie_command")
    assert "bookie" in rooms
    assert not rooms & {"client", "autorecovery", "log", "sql"}


def test_a_short_command_imports_neither_bookies_nor_recovery() -> None:
    found = "cluster.get_command(click.Context(cluster), 'racks')"
    rooms = imported_by(f"import click\nfrom triplicate.cli.server_commands.cluster_command import cluster\nassert {found}")
    assert "client" in rooms
    assert not rooms & {"bookie", "autorecovery", "log", "sql"}
