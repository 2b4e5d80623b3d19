"""Command groups whose subcommands are imported when they are called.

Every server and every command is a process that imports its modules first, which takes most of the time of a short command. A group that
imports all its subcommands would have each of them, and its server, pay for the modules of all others.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazySubcommands(click.Group):
    """A group that imports some of its commands only when they are called, or for a list of all.

    Args:
        places: ``module:name`` of such commands, by the command's name.
    """

    def __init__(self, *arguments: Any, places: Mapping[str, str], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.places = dict(places)

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*self.places, *self.commands})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        place = self.places.get(name)
        if place is not None and name not in self.commands:
            module, _, attribute = place.partition(":")
            command: click.Command = getattr(importlib.import_module(module), attribute)
            self.add_command(command, name)
        return self.commands.get(name)
