"""The command line. What it offers to other programs is the local cluster: real processes under one folder."""

from triplicate.cli.cluster_folder import ClusterFolder, Member
from triplicate.cli.local_cluster import LocalCluster, Running, local_cluster, wait_for_orphans
from triplicate.cli.output import Bar, print_json, print_table, remarks
from triplicate.cli.running import run_loop, watch_parent

__all__ = [
    "Bar",
    "ClusterFolder",
    "LocalCluster",
    "Member",
    "Running",
    "local_cluster",
    "print_json",
    "print_table",
    "remarks",
    "run_loop",
    "wait_for_orphans",
    "watch_parent",
]
