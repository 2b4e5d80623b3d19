"""A disk port without syncs, for clusters of tests: what is written survives the end of the process, and not of the machine."""

from __future__ import annotations

from triplicate.runtime.ports import File
from triplicate.runtime.real_disk import RealDisk, RealFile


class _UnsyncedFile(RealFile):
    def sync(self) -> None:
        """No effect."""


class UnsyncedDisk(RealDisk):
    """The file system of this machine, with files whose syncs return at once. Never for data that somebody needs."""

    def open(self, path: str, *, create: bool = False, exclusive: bool = False, readonly: bool = False) -> File:
        return self._open(_UnsyncedFile, path, create=create, exclusive=exclusive, readonly=readonly)

    def sync_directory(self, path: str) -> None:
        """No effect."""
