"""`triplicate up` without ``--resp`` does not serve clients of Redis, although the folder did."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from triplicate.cli.supervision import cluster_folder
from triplicate.cli.supervision.cluster_folder import ClusterFolder

TESTS = ["tests/unit/cli/supervision/test_cluster_folder.py::test_a_folder_that_serves_clients_of_redis_does_so_until_it_is_forbidden"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    read = cluster_folder.read_folder

    def forgetful(path: Path) -> ClusterFolder | None:
        found = read(path)
        return None if found is None else dataclasses.replace(found, serves_resp=False)

    patch(cluster_folder, "read_folder", forgetful)
