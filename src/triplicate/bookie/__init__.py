"""The bookie: journal, write cache, entry logs, index, and the server in front of them."""

from triplicate.bookie.bookie import Bookie
from triplicate.bookie.formatting import Replacement, bookie_id_of, mark_visited
from triplicate.bookie.rebuild import RebuildReport, rebuild_index

__all__ = ["Bookie", "RebuildReport", "Replacement", "bookie_id_of", "mark_visited", "rebuild_index"]
