"""``triplicate bookie`` with all its subcommands; a module of its own, since each of them imports the group."""

from __future__ import annotations

from triplicate.cli import bookie_rebuild, bookie_status
from triplicate.cli.bookie import bookie

__all__ = ["bookie", "bookie_rebuild", "bookie_status"]
