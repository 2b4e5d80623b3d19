"""The bookie: journal, write cache, entry logs, index, and the server in front of them."""

from triplicate.bookie.bookie import Bookie
from triplicate.bookie.formatting import Replacement, bookie_id_of, mark_visited

__all__ = ["Bookie", "Replacement", "bookie_id_of", "mark_visited"]
