"""Chooses the ledger directory of the next entry log. Blocks; only the writer's worker uses it. Source: BookKeeper `LedgerDirsManager`."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.runtime import Disk

FREED_BYTES = 1024 * 1024
"""A directory that had no space is preferred again once this much more of it is free, or once a write succeeded."""


class LedgerDirs:
    """Ledger directories in round-robin order: those below the threshold first, then those above it, then those without space.

    Args:
        usage_threshold: fraction in use from which a directory is chosen only if all others are as full.
        first: index of the directory to start with.
    """

    def __init__(self, disk: Disk, directories: Sequence[str], usage_threshold: float, first: int = 0) -> None:
        self._disk = disk
        self._directories = list(directories)
        self._threshold = usage_threshold
        self._turn = first % len(self._directories)
        self._without_space: dict[str, int] = {}
        """Free bytes, by directory, when a write failed for lack of space."""

    def in_turn(self, needed_bytes: int = 0) -> list[str]:
        """All directories in the order in which to try them; those with this much room come first. Advances the round-robin."""
        start, self._turn = self._turn, (self._turn + 1) % len(self._directories)
        order = self._directories[start:] + self._directories[:start]
        if len(order) == 1:
            return order
        ranks: list[tuple[int, int, int]] = []
        for index, directory in enumerate(order):
            free, total = self._space(directory)
            if directory in self._without_space and free >= self._without_space[directory] + FREED_BYTES:
                del self._without_space[directory]
            full = free < needed_bytes or total == 0 or 1 - free / total >= self._threshold
            rank = 2 if directory in self._without_space else int(full)
            ranks.append((rank, -free if rank else index, index))
        return [order[index] for _, _, index in sorted(ranks)]

    def free_bytes(self, directory: str) -> int:
        """Free bytes; 0 if they cannot be measured."""
        return self._space(directory)[0]

    def _space(self, directory: str) -> tuple[int, int]:
        try:
            return self._disk.free_space(directory)
        except OSError:
            # The write itself will report the error.
            return 0, 0

    def pass_over(self, directory: str) -> bool:
        """Record that a write found no space here. Returns whether another directory is not known to be full."""
        self._without_space[directory] = self.free_bytes(directory)
        return len(self._without_space) < len(self._directories)

    def worked(self, directory: str) -> None:
        """Record a successful write."""
        self._without_space.pop(directory, None)
