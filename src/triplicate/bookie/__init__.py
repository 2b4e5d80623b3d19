"""The bookie: journal, write cache, entry logs, index, and the server in front of them."""

from triplicate.bookie.bookie import Bookie

__all__ = ["Bookie"]
