"""The files of a journal directory: creates the next one, and reuses or deletes those that a flush has covered.

The first write to a block changes the file system's metadata, so each sync waits for the file system's journal, and with it for the data of
other files. A write over a block that was written before does not. A finished file is therefore kept as a spare (``<number>.spare``) and
used again: its header is written again with a new number and synced, the file is renamed, and the directory is synced. A worker does this
ahead of need. If there is no spare, one is made in the background by writing zeros.

A crash between these steps leaves a spare with the new number in its header (it holds no group of that number and is a spare like any
other), or a journal file without groups. A name is released for reuse only after the directory's sync, so a file that a mark needs is
never overwritten.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Sequence
from itertools import count

from triplicate.bookie.core.file_header import HEADER_BYTES, JOURNAL_MAGIC, FileIdentity, decode_file_header, encode_file_header
from triplicate.bookie.core.journal_format import ALIGNMENT, END_BLOCK, REUSED_KEY
from triplicate.bookie.core.journal_machine import NextFile
from triplicate.bookie.files import NO_SPACE, join, numbered_files, numbered_name
from triplicate.errors import CorruptionError, FormatError
from triplicate.runtime import Buffer, Disk, File

SUFFIX = ".journal"
SPARE_SUFFIX = ".spare"
PREPARED_NAME = "prepared.new"
"""Name of a spare that is being written."""
PIECE_BYTES = 1024 * 1024
"""Bytes of zeros written and synced at once."""
PREPARED_USAGE_MAX = 0.9
"""Fraction of the disk in use beyond which no spare is made."""


class JournalFiles:
    """See the module's text. Everything blocks.

    The device's thread calls `start_next`; one worker at a time makes files ready, another retires and deletes files. Shared attributes are
    changed by operations that are atomic in the interpreter.

    Args:
        file_bytes: the size of a file; only files of exactly this size are kept.
        spares_max: how many finished files are kept beside the one made ready; 0: none, and none is made ready.
    """

    def __init__(
        self, disk: Disk, directory: str, identity: FileIdentity, *, preallocate_bytes: int, file_bytes: int, spares_max: int
    ) -> None:
        self.directory = directory
        self.file_bytes = file_bytes // ALIGNMENT * ALIGNMENT
        self._disk = disk
        self._identity = identity
        self._first_bytes = max(HEADER_BYTES, min(preallocate_bytes, self.file_bytes))
        self._spares_max = spares_max
        self._spares: deque[str] = deque()
        """Paths of the spares, durable under these names."""
        self._ready: NextFile | None = None
        self._numbers = count(1)
        self._short = False

    def journals(self) -> dict[int, str]:
        """Journal files by number, ascending."""
        return numbered_files(self._disk, self.directory, SUFFIX)

    def highest_number(self) -> int:
        """The highest number of journal files and spares. No group in them has a higher one."""
        return max([0, *self.journals(), *numbered_files(self._disk, self.directory, SPARE_SUFFIX)])

    def open(self, highest: int) -> None:
        """Find the spares, and delete files that cannot be one. New files get numbers above `highest`."""
        self._numbers = count(highest + 1)
        found = list(numbered_files(self._disk, self.directory, SPARE_SUFFIX).values())
        kept = [path for path in found if self._is_full(path)][: self._spares_max]
        self._spares = deque(kept)
        prepared = join(self.directory, PREPARED_NAME)
        self._delete([*(path for path in found if path not in kept), *([prepared] if self._disk.exists(prepared) else [])])

    # Which file comes next.

    @property
    def spares(self) -> int:
        """Number of spares."""
        return len(self._spares)

    @property
    def may_prepare(self) -> bool:
        """Whether a spare may be made if there is none."""
        return self._spares_max > 0 and not self._short

    def ready_after(self, number: int) -> NextFile | None:
        """The file made ready to follow the file of this number, if there is one."""
        ready = self._ready
        return ready if ready is not None and ready.number > number else None

    def start_next(self, number: int) -> tuple[NextFile, File]:
        """The next file after this number, and the same file opened: one made ready, else a spare, else a new one. Raises OSError."""
        chosen = self.ready_after(number)
        if chosen is not None:
            try:
                return chosen, self._disk.open(chosen.path)
            except FileNotFoundError:
                # It was empty, and has been deleted from outside.
                self._ready = None
        chosen = self._from_spare() or self._make_new()
        return chosen, self._disk.open(chosen.path)

    def make_ready(self, number: int) -> bool:
        """Make a spare ready to follow the file of this number, if none is. Returns False if there is no spare. Raises OSError."""
        if self.ready_after(number) is None:
            ready = self._from_spare()
            if ready is None:
                return False
            self._ready = ready
        return True

    def _from_spare(self) -> NextFile | None:
        while self._spares:
            try:
                path = self._spares.popleft()
            except IndexError:
                return None  # Another thread took the last one.
            try:
                file = self._disk.open(path)
            except FileNotFoundError:
                continue  # Spares may be deleted from outside at any time.
            try:
                former = self._former_number(file, path)
                number = next(self._numbers)
                if former is not None and former < number:
                    self._begin(file, number, held=former > 0)
                    return self._take_over(path, number, held=former > 0)
            except OSError as error:
                # A copy-on-write file system needs space for this too.
                if error.errno not in NO_SPACE:
                    raise
            finally:
                file.close()
            self._delete([path])
        return None

    def _former_number(self, file: File, path: str) -> int | None:
        """The number that a spare had: no group in it has a higher one. 0: it holds only zeros. None: it is not usable."""
        if file.size() != self.file_bytes:
            return None
        header = file.pread(HEADER_BYTES, 0)
        if header.count(0) == HEADER_BYTES:
            return 0
        try:
            former = decode_file_header(header, JOURNAL_MAGIC, path)
        except (CorruptionError, FormatError):
            return None
        ours = self._identity
        return former.number if (former.bookie_id, former.instance_id) == (ours.bookie_id, ours.instance_id) else None

    def _begin(self, file: File, number: int, *, held: bool) -> None:
        """Write the header with the new number. If the file holds old groups, also write an `END_BLOCK` behind it."""
        ours = self._identity
        identity = FileIdentity(ours.bookie_id, ours.instance_id, number, ours.incarnation, {REUSED_KEY: True} if held else {})
        buffers: list[Buffer] = [encode_file_header(JOURNAL_MAGIC, identity)]
        if held:
            buffers.append(END_BLOCK)
        file.pwrite(buffers, 0)
        file.sync()

    def _take_over(self, spare: str, number: int, *, held: bool) -> NextFile:
        path = join(self.directory, numbered_name(number, SUFFIX))
        self._disk.rename(spare, path)
        self._disk.sync_directory(self.directory)
        return NextFile(number, path, self.file_bytes, self.file_bytes if held else 0, True)

    def _make_new(self) -> NextFile:
        number = next(self._numbers)
        path = join(self.directory, numbered_name(number, SUFFIX))
        file = self._disk.open(path, create=True, exclusive=True)
        try:
            ours = self._identity
            identity = FileIdentity(ours.bookie_id, ours.instance_id, number, ours.incarnation)
            file.pwrite([encode_file_header(JOURNAL_MAGIC, identity)], 0)
            file.allocate(0, self._first_bytes)
            # Header and name must be durable before any group is, or replay would not find the group.
            file.sync()
            self._disk.sync_directory(self.directory)
        except OSError:
            self._disk.delete(path)
            raise
        finally:
            file.close()
        return NextFile(number, path, self._first_bytes, 0, False)

    # Files that a flush has covered.

    def retire(self, before: int, number: int) -> None:
        """Keep the files below `before` as spares, or delete them: the mark has passed them. `number`: the file in use."""
        most = self._kept_at_most(number)
        behind = [(number, path) for number, path in self.journals().items() if number < before]
        kept: list[str] = []
        unwanted: list[str] = []
        for number, path in behind:
            if len(self._spares) + len(kept) < most and self._is_full(path):
                spare = join(self.directory, numbered_name(number, SPARE_SUFFIX))
                self._disk.rename(path, spare)
                kept.append(spare)
            else:
                unwanted.append(path)
        for path in unwanted:
            self._disk.delete(path)
        if behind:
            self._disk.sync_directory(self.directory)
        # Only now may they be overwritten: no crash brings their old names back.
        self._spares.extend(kept)

    def set_short_of_space(self, short: bool, number: int) -> None:
        """While space is short, keep only the file that follows this number, and make none."""
        self._short = short
        if short:
            self._delete(self._surplus(self._kept_at_most(number)))

    def _surplus(self, most: int) -> list[str]:
        surplus: list[str] = []
        while len(self._spares) > most:
            try:
                surplus.append(self._spares.pop())
            except IndexError:
                break  # Another thread took it.
        return surplus

    def _kept_at_most(self, number: int) -> int:
        if not self._short:
            return self._spares_max
        return 0 if self.ready_after(number) is not None else min(self._spares_max, 1)

    def _delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self._disk.delete(path)
        if paths:
            self._disk.sync_directory(self.directory)

    def _is_full(self, path: str) -> bool:
        file = self._disk.open(path, readonly=True)
        try:
            return file.size() == self.file_bytes
        finally:
            file.close()

    # Making a spare.

    def begin_preparing(self) -> bool:
        """Reserve the space of a spare. Returns False if none is wanted, or the disk is too full."""
        if not self.may_prepare or self._spares or len(self.journals()) > self._spares_max + 1:
            # Unflushed files beyond the limit: the new spare would be deleted after its first use.
            return False
        free, total = self._disk.free_space(self.directory)
        if free < 2 * self.file_bytes or total - free + self.file_bytes > PREPARED_USAGE_MAX * total:
            return False
        path = join(self.directory, PREPARED_NAME)
        try:
            file = self._disk.open(path, create=True)
            try:
                file.allocate(0, self.file_bytes)
            finally:
                file.close()
        except OSError as error:
            return self._give_up(error)
        return True

    def prepare_piece(self, offset: int) -> bool:
        """Write up to `PIECE_BYTES` zeros at `offset`. Returns False if the spare was given up."""
        if self._short:
            self._delete([join(self.directory, PREPARED_NAME)])
            return False
        try:
            file = self._disk.open(join(self.directory, PREPARED_NAME))
            try:
                file.pwrite([bytes(min(PIECE_BYTES, self.file_bytes - offset))], offset)
                file.sync()
            finally:
                file.close()
        except OSError as error:
            return self._give_up(error)
        return True

    def finish_preparing(self) -> None:
        """Turn the prepared file into a spare."""
        # No file has number 0, and no group belongs to it.
        spare = join(self.directory, numbered_name(0, SPARE_SUFFIX))
        self._disk.rename(join(self.directory, PREPARED_NAME), spare)
        self._disk.sync_directory(self.directory)
        self._spares.append(spare)

    def _give_up(self, error: OSError) -> bool:
        if error.errno not in (*NO_SPACE, errno.ENOENT):
            raise error
        self._delete([join(self.directory, PREPARED_NAME)])
        return False
