"""The command line. Other programs can use the local cluster (real processes under one folder) and `main`, the command.

Names are loaded at their first use: a server process needs neither tables nor progress bars.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triplicate.cli import main
    from triplicate.cli.process.serving import run_loop, watch_parent
    from triplicate.cli.supervision.cluster_folder import ClusterFolder, ClusterMember, locked, write_json
    from triplicate.cli.supervision.local_processes import LocalCluster, RunningProcess, local_cluster, wait_for_orphans
    from triplicate.cli.terminal.extras import require
    from triplicate.cli.terminal.output import ProgressBar, print_json, print_table, remarks

__all__ = [
    "ClusterFolder",
    "ClusterMember",
    "LocalCluster",
    "ProgressBar",
    "RunningProcess",
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
    "supervision.cluster_folder": ("ClusterFolder", "ClusterMember", "locked", "write_json"),
    "terminal.extras": ("require",),
    "supervision.local_processes": ("LocalCluster", "RunningProcess", "local_cluster", "wait_for_orphans"),
    "terminal.output": ("ProgressBar", "print_json", "print_table", "remarks"),
    "process.serving": ("run_loop", "watch_parent"),
}


def __getattr__(name: str) -> Any:
    if name == "main":
        return importlib.import_module("triplicate.cli.main")
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"triplicate.cli.{module}"), name)
    raise AttributeError(f"module 'triplicate.cli' has no attribute {name!r}")
