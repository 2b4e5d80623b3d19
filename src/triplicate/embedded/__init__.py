"""Databases and key-value stores in the process of an application: a node, and for a folder or the memory its whole cluster.

The classes for key-value stores are loaded at their first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from triplicate.embedded.core.targets import MemoryTarget
from triplicate.embedded.database import DEFAULT_NAME, START_LIMIT_S, database
from triplicate.embedded.embedded_database import EmbeddedDatabase, OpenTransaction, QueryResult
from triplicate.embedded.embedded_node import LOCAL_SETTINGS, EmbeddedNode, NodeOptions
from triplicate.embedded.in_process_cluster import SIZES_OF_TESTS, ClusterSizes, InProcessCluster
from triplicate.embedded.temporary_folder import temporary_folder

if TYPE_CHECKING:
    from triplicate.embedded.embedded_store import PAGE_KEYS, EmbeddedStore
    from triplicate.embedded.store_opening import key_value

__all__ = [
    "DEFAULT_NAME",
    "LOCAL_SETTINGS",
    "PAGE_KEYS",
    "SIZES_OF_TESTS",
    "START_LIMIT_S",
    "ClusterSizes",
    "EmbeddedDatabase",
    "EmbeddedNode",
    "EmbeddedStore",
    "InProcessCluster",
    "MemoryTarget",
    "NodeOptions",
    "OpenTransaction",
    "QueryResult",
    "database",
    "key_value",
    "temporary_folder",
]

_LAZY_EXPORTS = {"embedded_store": ("PAGE_KEYS", "EmbeddedStore"), "store_opening": ("key_value",)}


def __getattr__(name: str) -> Any:
    for module, names in _LAZY_EXPORTS.items():
        if name in names:
            return getattr(importlib.import_module(f"triplicate.embedded.{module}"), name)
    raise AttributeError(f"module 'triplicate.embedded' has no attribute {name!r}")
