"""Which ledger directory the next entry log goes to. Blocks; only the writer's worker asks."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.runtime import Disk

FREED_BYTES = 1024 * 1024
"""A directory that had no space is tried before others again once so much more of it is free, or once something could be written."""


class LedgerDirs:
    """Ledger directories in turn, those above the threshold after those below it, those without space at the end.

    Args:
        usage_threshold: fraction in use from which a directory is only taken when all others are as full.
        first: which of them is the first one's turn.
    """

    def __init__(self, disk: Disk, directories: Sequence[str], usage_threshold: float, first: int = 0) -> None:
        self._disk = disk
        self._directories = list(directories)
        self._threshold = usage_threshold
        self._turn = first % len(self._directories)
        self._without_space: dict[str, int] = {}
        """Bytes that were free when a write failed for want of space."""

    def in_turn(self, needed_bytes: int = 0) -> list[str]:
        """All directories, in the order in which they are to be tried, those with so much room first. Counts as a turn."""
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
        """0 where that cannot be found out."""
        return self._space(directory)[0]

    def _space(self, directory: str) -> tuple[int, int]:
        try:
            return self._disk.free_space(directory)
        except OSError:
            # Whoever writes there will hear what is wrong with it.
            return 0, 0

    def pass_over(self, directory: str) -> bool:
        """A write in this directory found no space. Returns whether there is another of which that is not known."""
        self._without_space[directory] = self.free_bytes(directory)
        return len(self._without_space) < len(self._directories)

    def worked(self, directory: str) -> None:
        """Something was written there."""
        self._without_space.pop(directory, None)
