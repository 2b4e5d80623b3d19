"""The bookie: journal, write cache, entry logs, index, and the server in front of them."""

from triplicate.bookie.bookie import Bookie
from triplicate.bookie.limits import MemoryLimit, memory_limits
from triplicate.bookie.offline.inspection import Inspection, InspectionReport, port_problem
from triplicate.bookie.offline.rebuild import RebuildReport, rebuild_index
from triplicate.bookie.offline.replacement import Replacement, bookie_id_of, mark_visited

__all__ = [
    "Bookie",
    "Inspection",
    "InspectionReport",
    "MemoryLimit",
    "RebuildReport",
    "Replacement",
    "bookie_id_of",
    "mark_visited",
    "memory_limits",
    "port_problem",
    "rebuild_index",
]
