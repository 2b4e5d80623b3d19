"""The bookie: journal, write cache, entry logs, index, and the server in front of them."""

from triplicate.bookie.bookie import Bookie
from triplicate.bookie.formatting import Replacement, bookie_id_of, mark_visited
from triplicate.bookie.inspection import Facts, Inspection, port_problem
from triplicate.bookie.memory import Bound, memory_bounds
from triplicate.bookie.rebuild import RebuildReport, rebuild_index

__all__ = [
    "Bookie",
    "Bound",
    "Facts",
    "Inspection",
    "RebuildReport",
    "Replacement",
    "bookie_id_of",
    "mark_visited",
    "memory_bounds",
    "port_problem",
    "rebuild_index",
]
