"""A group lists only those of its commands that are imported."""

from __future__ import annotations

from collections.abc import Callable

TESTS = ["tests/unit/cli/terminal/test_lazy_subcommands.py::test_every_place_is_a_command_of_that_name"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    import click

    from triplicate.cli.terminal.lazy_subcommands import LazySubcommands

    patch(LazySubcommands, "list_commands", click.Group.list_commands)
