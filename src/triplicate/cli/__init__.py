"""The command line. What it offers to other programs is the local cluster: real processes under one folder; and `main`, the command.

Names are loaded when they are first used: a server process needs neither tables nor progress bars.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triplicate.cli import main
    from triplicate.cli.cluster_folder import ClusterFolder, Member, locked, write_json
    from triplicate.cli.extras import require
    from triplicate.cli.local import LocalCluster, Running, local_cluster, wait_for_orphans
    from triplicate.cli.output import Bar, print_json, print_table, remarks
    from triplicate.cli.running import run_loop, watch_parent

__all__ = [
    "Bar",
    "ClusterFolder",
    "LocalCluster",
    "Member",
    "Running",
    "local_cluster",
    "locked",
    "main",
    "print_json",
    "print_table",
    "remarks",
    "require",
    "run_loop",
    "wait_for_orphans",
    "watch_parent",
    "write_json",
]

_HOMES = {
    "cluster_folder": ("ClusterFolder", "Member", "locked", "write_json"),
    "extras": ("require",),
    "local": ("LocalCluster", "Running", "local_cluster", "wait_for_orphans"),
    "output": ("Bar", "print_json", "print_table", "remarks"),
    "running": ("run_loop", "watch_parent"),
}


def __getattr__(name: str) -> Any:
    if name == "main":
        return importlib.import_module("triplicate.cli.main")
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"triplicate.cli.{module}"), name)
    raise AttributeError(f"module 'triplicate.cli' has no attribute {name!r}")
