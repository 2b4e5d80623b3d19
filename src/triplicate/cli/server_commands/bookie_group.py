"""``triplicate bookie`` with all its subcommands, in a separate module because each of them imports the group."""

from __future__ import annotations

from triplicate.cli.server_commands import (
    bookie_decommission,
    bookie_list,
    bookie_read_only,
    bookie_rebuild,
    bookie_status,
    bookie_upkeep,
    bookie_users,
    refill_command,
)
from triplicate.cli.server_commands.bookie_command import bookie

__all__ = [
    "bookie",
    "bookie_decommission",
    "bookie_list",
    "bookie_read_only",
    "bookie_rebuild",
    "bookie_status",
    "bookie_upkeep",
    "bookie_users",
    "refill_command",
]
