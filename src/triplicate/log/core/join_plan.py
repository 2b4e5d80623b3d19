"""Which small staging ledgers of a batch are joined before they are published. Pure."""

from __future__ import annotations

from collections.abc import Sequence

JOIN_LEAST = 8
"""Least number of neighbouring ledgers that are joined."""
JOIN_BYTES_MAXIMUM = 64 * 1024 * 1024
"""Most bytes of one batch that are copied."""
SMALL_SHARE = 0.5
"""A ledger with less than this share of the target is small."""


def runs_to_join(sizes: Sequence[int], target_bytes: int) -> list[range]:
    """Runs of neighbouring small ledgers, as ranges of indexes in `sizes`. Each run is to become one ledger of at most `target_bytes`.

    The ledgers keep their order. If not all runs can be copied, small ones are preferred, since they remove the most ledgers per byte.

    Args:
        sizes: bytes of the ledgers, in order.
        target_bytes: 0 joins nothing.
    """
    runs: list[range] = []
    most_bytes = min(target_bytes, JOIN_BYTES_MAXIMUM)
    start, total = 0, 0
    for place, size in enumerate([*sizes, target_bytes]):
        is_small = size < target_bytes * SMALL_SHARE
        if not is_small or total + size > most_bytes:
            runs.append(range(start, place))
            start, total = (place, 0) if is_small else (place + 1, 0)
        total += size if is_small else 0
    wanted = sorted((sum(sizes[run.start : run.stop]) / len(run), run.start, run) for run in runs if len(run) >= JOIN_LEAST)
    chosen: list[range] = []
    copied = 0
    for _, _, run in wanted:
        copied += sum(sizes[run.start : run.stop])
        if copied > JOIN_BYTES_MAXIMUM:
            break
        chosen.append(run)
    return sorted(chosen, key=lambda run: run.start)
