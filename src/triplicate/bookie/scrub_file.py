"""The file that keeps the scrubber's state over restarts. Everything blocks."""

from __future__ import annotations

from triplicate.bookie.core.scrub_state import ScrubState, decode_scrub_state, encode_scrub_state
from triplicate.bookie.files import NO_SPACE, join, read_file, replace_file
from triplicate.runtime import Disk

SCRUB_NAME = "scrub"


class ScrubFile:
    """The state in one directory, the ``current`` one of the first ledger directory."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory

    def read(self) -> ScrubState:
        """The stored state; that before the first pass if there is none. Raises FormatError, OSError."""
        path = join(self._directory, SCRUB_NAME)
        return decode_scrub_state(read_file(self._disk, path)) if self._disk.exists(path) else ScrubState()

    def write(self, state: ScrubState) -> bool:
        """Replace the stored state; False, and nothing is changed, if the disk is full. Raises OSError."""
        try:
            replace_file(self._disk, self._directory, SCRUB_NAME, encode_scrub_state(state))
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            return False
        return True
