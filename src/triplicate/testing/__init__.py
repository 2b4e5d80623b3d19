"""Clusters for the tests of applications: in the process of the test, and gone at its end.

    async with triplicate.testing.MemoryCluster() as cluster:
        database = await cluster.database()

For pytest, ``pytest_plugins = ["triplicate.testing.plugin"]`` brings the fixtures `triplicate_cluster`, `triplicate_log`,
`triplicate_database` and `triplicate_key_value`. Names are loaded when they are first used, so that a run of pytest without such a test
does not pay for them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from triplicate.testing.memory_cluster import MemoryCluster
    from triplicate.testing.shared_cluster import DatabaseOfTest, KeyValueOfTest, LogOfTest, SharedCluster

__all__ = ["DatabaseOfTest", "KeyValueOfTest", "LogOfTest", "MemoryCluster", "SharedCluster"]

_HOMES = {"memory_cluster": ("MemoryCluster",), "shared_cluster": ("DatabaseOfTest", "KeyValueOfTest", "LogOfTest", "SharedCluster")}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"triplicate.testing.{module}"), name)
    raise AttributeError(f"module 'triplicate.testing' has no attribute {name!r}")
