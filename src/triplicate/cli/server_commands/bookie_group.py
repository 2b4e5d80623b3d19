"""``triplicate bookie`` with all its subcommands, in a separate module because each of them imports the group."""

from __future__ import annotations

from triplicate.cli.server_commands import bookie_rebuild, bookie_status
from triplicate.cli.server_commands.bookie_command import bookie

__all__ = ["bookie", "bookie_rebuild", "bookie_status"]
