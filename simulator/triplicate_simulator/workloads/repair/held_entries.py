"""The entries that single bookies of a simulated cluster hold of a ledger, and those that the metadata promise there."""

from __future__ import annotations

from collections.abc import Iterator

from triplicate.ledger import EnsembleSegment, LedgerMetadata
from triplicate_simulator.cluster.simulated_cluster import BookieNode


def fixed_segments(metadata: LedgerMetadata) -> list[tuple[EnsembleSegment, int]]:
    """The segments whose end is known, each with its last entry."""
    ends = [segment.first_entry_id - 1 for segment in metadata.segments[1:]]
    if metadata.is_closed:
        ends.append(metadata.last_entry_id)
    return [(segment, end) for segment, end in zip(metadata.segments, ends, strict=False)]


def entries_at(segment: EnsembleSegment, last_entry_id: int, position: int, write_quorum: int) -> Iterator[int]:
    """The entries that the bookie at one position of a segment stores."""
    size = len(segment.ensemble)
    for entry_id in range(segment.first_entry_id, last_entry_id + 1):
        if (position - entry_id) % size < write_quorum:
            yield entry_id


def held_entries(node: BookieNode, ledger_id: int) -> set[int] | None:
    """The entries of a ledger that a bookie holds, by its memory and its index; None if it does not serve.

    A run of the index with gaps counts as if it had none.
    """
    if not node.serves or node.bookie is None:
        return None
    storage = node.bookie.storage
    held = set(storage.cache.ids(ledger_id))
    try:
        for _, run in storage.stored.index.runs_of(ledger_id):
            held.update(range(run.first, run.last + 1))
    except OSError:
        # It is being stopped, and its index is closed.
        return None
    return held
