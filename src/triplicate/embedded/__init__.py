"""Databases and key-value stores in the process of an application: a node, and for a folder or the memory its whole cluster."""

from triplicate.embedded.core.targets import MemoryTarget
from triplicate.embedded.database import DEFAULT_NAME, START_LIMIT_S, database
from triplicate.embedded.embedded_database import EmbeddedDatabase, OpenTransaction, QueryResult
from triplicate.embedded.embedded_node import LOCAL_SETTINGS, EmbeddedNode, NodeOptions
from triplicate.embedded.embedded_store import PAGE_KEYS, EmbeddedStore
from triplicate.embedded.in_process_cluster import SIZES_OF_TESTS, ClusterSizes, InProcessCluster
from triplicate.embedded.key_value import key_value
from triplicate.embedded.temporary_folder import temporary_folder

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
