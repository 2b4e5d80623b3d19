"""``triplicate cluster`` with all its subcommands, in a separate module because each of them imports the group."""

from __future__ import annotations

from triplicate.cli.server_commands import cluster_audit, cluster_autorecovery, cluster_recovery
from triplicate.cli.server_commands.cluster_command import cluster
from triplicate.cli.server_commands.cluster_status import cluster_status
from triplicate.cli.server_commands.freeze_command import freeze_ensembles
from triplicate.cli.server_commands.safe_to_stop import safe_to_stop
from triplicate.cli.server_commands.secure_metadata import secure_metadata

__all__ = ["cluster", "cluster_audit", "cluster_autorecovery", "cluster_recovery"]

cluster.add_command(cluster_status)
cluster.add_command(safe_to_stop)
cluster.add_command(freeze_ensembles)
cluster.add_command(secure_metadata)
