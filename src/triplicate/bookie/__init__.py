"""The bookie: journal, write cache, entry logs, index, and the server in front of them."""

from triplicate.bookie.bookie import Bookie
from triplicate.bookie.limits import MemoryLimit, memory_limits
from triplicate.bookie.offline.door_report import DoorReport, door_report
from triplicate.bookie.offline.dump_lines import DumpChoice, DumpLine, LineKind
from triplicate.bookie.offline.entry_log_dump import dump_entry_log
from triplicate.bookie.offline.index_dump import copy_index, dump_index, is_in_use
from triplicate.bookie.offline.inspection import Inspection, InspectionReport, port_problem
from triplicate.bookie.offline.journal_dump import dump_journal, dump_mark
from triplicate.bookie.offline.rebuild import RebuildReport, rebuild_index
from triplicate.bookie.offline.replacement import Replacement, bookie_id_of, mark_visited

__all__ = [
    "Bookie",
    "DoorReport",
    "DumpChoice",
    "DumpLine",
    "Inspection",
    "InspectionReport",
    "LineKind",
    "MemoryLimit",
    "RebuildReport",
    "Replacement",
    "bookie_id_of",
    "copy_index",
    "door_report",
    "dump_entry_log",
    "dump_index",
    "dump_journal",
    "dump_mark",
    "is_in_use",
    "mark_visited",
    "memory_limits",
    "port_problem",
    "rebuild_index",
]
