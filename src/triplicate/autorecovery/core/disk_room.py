"""Whether the free disk of the bookies that remain suffices for the copies to make. An estimate, decided before anything is copied.

The bytes are those of the payloads, from the lengths of closed ledgers. Bookies of one machine whose disks have the same size may share one
disk. Counted once it gives the free disk that is certain; counted for each bookie, the most that there can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The disk of one bookie.

    Args:
        machine: the host of its registration.
    """

    machine: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True)
class DiskRoom:
    """An estimate.

    Args:
        needed_bytes: payload bytes of the copies to make.
        free_bytes: free disk of all bookies that answered.
        certain_bytes: the same, with disks that may be shared counted once.
        silent: bookies that did not answer.
    """

    needed_bytes: int
    free_bytes: int
    certain_bytes: int
    silent: tuple[str, ...] = ()

    @property
    def is_too_small(self) -> bool:
        """Whether the copies cannot fit, even if no disk is shared."""
        return self.needed_bytes > self.free_bytes and not self.silent

    @property
    def is_doubtful(self) -> bool:
        """Whether the copies may not fit."""
        return self.needed_bytes > self.certain_bytes


def disk_room(needed_bytes: int, spaces: Mapping[str, DiskSpace | None]) -> DiskRoom:
    """Compare the copies with the disks.

    Args:
        spaces: of the writable bookies that remain; None for one that did not answer.
    """
    known = [space for space in spaces.values() if space is not None]
    shared: dict[tuple[str, int], int] = {}
    for space in known:
        disk = (space.machine, space.total_bytes)
        shared[disk] = max(shared.get(disk, 0), space.free_bytes)
    silent = tuple(sorted(name for name, space in spaces.items() if space is None))
    return DiskRoom(needed_bytes, sum(space.free_bytes for space in known), sum(shared.values()), silent)
