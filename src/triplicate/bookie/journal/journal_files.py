"""The files of a journal directory: which comes next, and what becomes of those that a flush has covered.

Writing a block for the first time makes the file system change what it knows of the file, so that each sync waits for its journal, and
with it for the data of other files; writing over a block that was written before does not. So a finished file is kept as a spare
(``<number>.spare``) and used again: its header is written anew with a new number, synced, the file renamed, the directory synced. That is
done ahead, on a worker; where there is no spare, one is made in the background by writing zeros.

What a crash leaves at each step: a spare whose header says the new number (no group of that number is in it; it is a spare like others);
or a journal file without groups. A name is given back for use only after the directory's sync, so a file that a mark needs is never
written over.
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
"""A spare that is being written."""
PIECE_BYTES = 1024 * 1024
"""Zeros that are written and synced at once."""
PREPARED_USAGE_MAX = 0.9
"""Fraction of the disk in use beyond which no spare is made."""


class JournalFiles:
    """See the module's text. Everything blocks.

    The device's thread asks `start_next`; one worker at a time makes files ready, another retires and gives back. What they share is
    changed by single steps that the interpreter does whole.

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
        """Durable under these names."""
        self._ready: NextFile | None = None
        self._numbers = count(1)
        self._short = False

    def journals(self) -> dict[int, str]:
        """Journal files by number, ascending."""
        return numbered_files(self._disk, self.directory, SUFFIX)

    def highest_number(self) -> int:
        """Of journal files and spares; none of them holds groups of a higher one."""
        return max([0, *self.journals(), *numbered_files(self._disk, self.directory, SPARE_SUFFIX)])

    def open(self, highest: int) -> None:
        """Find the spares, and delete what cannot be one. Files get numbers above `highest`."""
        self._numbers = count(highest + 1)
        found = list(numbered_files(self._disk, self.directory, SPARE_SUFFIX).values())
        kept = [path for path in found if self._is_full(path)][: self._spares_max]
        self._spares = deque(kept)
        prepared = join(self.directory, PREPARED_NAME)
        self._delete([*(path for path in found if path not in kept), *([prepared] if self._disk.exists(prepared) else [])])

    # Which file comes next.

    @property
    def spares(self) -> int:
        """How many there are."""
        return len(self._spares)

    @property
    def may_prepare(self) -> bool:
        """Whether one is to be made where there is none."""
        return self._spares_max > 0 and not self._short

    def ready_after(self, number: int) -> NextFile | None:
        """The file made ready to follow that of this number."""
        ready = self._ready
        return ready if ready is not None and ready.number > number else None

    def start_next(self, number: int) -> tuple[NextFile, File]:
        """A file to follow that of this number, and the same open: one made ready, else a spare, else a new one. Raises OSError."""
        chosen = self.ready_after(number)
        if chosen is not None:
            try:
                return chosen, self._disk.open(chosen.path)
            except FileNotFoundError:
                # Nothing was in it. Somebody took it for rubbish.
                self._ready = None
        chosen = self._from_spare() or self._make_new()
        return chosen, self._disk.open(chosen.path)

    def make_ready(self, number: int) -> bool:
        """Make a spare ready to follow the file of this number, where none is. Returns False where there is no spare. Raises OSError."""
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
                continue  # A spare is nothing that anybody must keep.
            try:
                former = self._former_number(file, path)
                number = next(self._numbers)
                if former is not None and former < number:
                    self._begin(file, number, held=former > 0)
                    return self._take_over(path, number, held=former > 0)
            except OSError as error:
                # A file system that never writes in place needs space for this too.
                if error.errno not in NO_SPACE:
                    raise
            finally:
                file.close()
            self._delete([path])
        return None

    def _former_number(self, file: File, path: str) -> int | None:
        """The number that a spare had: no group in it has a higher one. 0: it holds only zeros. None: it is not to be used."""
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
        """Write the header of another life, and where the file holds groups of an earlier one also that none follows yet."""
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
            # The header and the name must be durable before any group is, or replay would not find it.
            file.sync()
            self._disk.sync_directory(self.directory)
        except OSError:
            self._disk.delete(path)
            raise
        finally:
            file.close()
        return NextFile(number, path, self._first_bytes, 0, False)

    # What becomes of files that a flush has covered.

    def retire(self, before: int, number: int) -> None:
        """Keep the files of numbers lower than `before` as spares, or delete them: the mark has passed them. `number`: the one in use."""
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
        # Only now may they be written over: no crash brings their old names back.
        self._spares.extend(kept)

    def set_short_of_space(self, short: bool, number: int) -> None:
        """While space is wanted elsewhere, only the file to follow that of this number is kept, and none is made."""
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

    # A spare where there is none.

    def begin_preparing(self) -> bool:
        """Take the space for a spare. Returns False where none is wanted, or the disk is too full."""
        if not self.may_prepare or self._spares or len(self.journals()) > self._spares_max + 1:
            # With so many files that no flush has covered yet, what is made now would be deleted after its first use.
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
        """Write zeros from `offset` on, `PIECE_BYTES` of them at most. Returns False where it was given up."""
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
        """Make what was prepared a spare."""
        # No file has this number, and groups of none are in it.
        spare = join(self.directory, numbered_name(0, SPARE_SUFFIX))
        self._disk.rename(join(self.directory, PREPARED_NAME), spare)
        self._disk.sync_directory(self.directory)
        self._spares.append(spare)

    def _give_up(self, error: OSError) -> bool:
        if error.errno not in (*NO_SPACE, errno.ENOENT):
            raise error
        self._delete([join(self.directory, PREPARED_NAME)])
        return False
