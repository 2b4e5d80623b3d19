"""A bookie's directories: locks against a second process, and cookies against a wrong or wiped disk.

Every journal and ledger directory has a sub-directory ``current`` with the data, a ``LOCK`` file, and a ``VERSION`` file that holds
the bookie's cookie; the same cookie stands in the metadata. Source: BookKeeper `Cookie`, `LegacyCookieValidation`.
"""

from __future__ import annotations

from collections.abc import Callable

from triplicate.bookie.files import join, read_file, replace_file
from triplicate.config import BookieSettings
from triplicate.errors import ConfigError, EnvironmentFault, FormatError, WrongCluster
from triplicate.metadata import ClusterMetadata, Cookie, decode_cookie, encode_cookie
from triplicate.runtime import Disk

CURRENT = "current"
VERSION_NAME = "VERSION"
LOCK_NAME = "LOCK"


class Directories:
    """All directories of one bookie."""

    def __init__(self, disk: Disk, settings: BookieSettings) -> None:
        self.configured = list(dict.fromkeys((*settings.journal_directories, *settings.ledger_directories)))
        self._disk = disk
        self._settings = settings
        self._locks: list[Callable[[], None]] = []

    def open(self) -> None:
        """Make what is missing and lock everything. Blocks.

        Raises:
            ConfigError: a directory is named twice. EnvironmentFault: one cannot be used, or another process uses it.
        """
        settings = self._settings
        for kind, names in (("journal", settings.journal_directories), ("ledger", settings.ledger_directories)):
            if not names:
                raise ConfigError(f"bookie.{kind}_directories is empty: name at least one directory")
            if len(set(names)) != len(names):
                raise ConfigError(f"bookie.{kind}_directories names a directory twice: {', '.join(names)}")
        for directory in self.configured:
            current = join(directory, CURRENT)
            try:
                self._disk.mkdir(current)
                self._disk.sync_directory(directory)
                self._locks.append(self._disk.lock(join(current, LOCK_NAME)))
            except BlockingIOError:
                self.close()
                raise EnvironmentFault(f"{directory}: another bookie runs on this directory: stop it, or give this one its own") from None
            except OSError as error:
                self.close()
                reason = error.strerror or str(error)
                raise EnvironmentFault(f"{directory}: cannot be used ({reason}): mount it, or make it writable for this user") from error

    def close(self) -> None:
        """Release the locks. Idempotent."""
        while self._locks:
            self._locks.pop()()

    def _cookie_in(self, directory: str) -> Cookie | None:
        path = join(join(directory, CURRENT), VERSION_NAME)
        if not self._disk.exists(path):
            return None
        try:
            return decode_cookie(read_file(self._disk, path))
        except FormatError as error:
            raise WrongCluster(f"{path}: {error}: restore the file from another directory of this bookie") from error

    def _has_data(self, directory: str) -> bool:
        return any(name not in (LOCK_NAME, VERSION_NAME, VERSION_NAME + ".new") for name in self._disk.names(join(directory, CURRENT)))

    def _stamp(self, directory: str, cookie: Cookie) -> None:
        replace_file(self._disk, join(directory, CURRENT), VERSION_NAME, encode_cookie(cookie))

    async def check_cookies(self, metadata: ClusterMetadata, bookie_id: str) -> None:
        """Compare the cookies, or stamp them where the bookie is new and its directories are empty.

        Raises:
            WrongCluster: a directory belongs to another bookie or cluster, or to this one and has lost its data.
        """
        settings = self._settings
        ours = Cookie(bookie_id, ",".join(settings.journal_directories), settings.ledger_directories, metadata.instance_id)
        known = await metadata.cookies.get(bookie_id)
        in_directories = {directory: self._cookie_in(directory) for directory in self.configured}
        for directory, cookie in in_directories.items():
            if cookie is not None:
                self._refuse_difference(f"{directory}: its VERSION file", cookie, ours)
        if known is not None:
            self._refuse_difference(f"the metadata's cookie of bookie {bookie_id}", known[0], ours)
            for directory, cookie in in_directories.items():
                if cookie is None:
                    raise WrongCluster(
                        f"{directory}: bookie {bookie_id} kept data here and the directory has no VERSION file, so it was wiped or is not "
                        "mounted: mount the right disk; if the data is lost, start a bookie with another bookie_id on empty directories"
                    )
            return
        for directory in self.configured:
            if self._has_data(directory):
                raise WrongCluster(
                    f"{directory}: there is data, but the cluster knows no bookie {bookie_id}: give back the bookie_id and the metadata "
                    "address that wrote it, or use an empty directory"
                )
        # The files first: should this be interrupted, the next start finds empty directories with the same cookie and goes on.
        for directory in self.configured:
            self._stamp(directory, ours)
        await metadata.cookies.put(ours)

    def _refuse_difference(self, where: str, found: Cookie, ours: Cookie) -> None:
        for what, theirs, wanted in (
            ("cluster", found.instance_id, ours.instance_id),
            ("bookie id", found.bookie_id, ours.bookie_id),
            ("journal directories", found.journal_dir, ours.journal_dir),
            ("ledger directories", ",".join(found.ledger_dirs), ",".join(ours.ledger_dirs)),
        ):
            if theirs != wanted:
                raise WrongCluster(f"{where} says {what} {theirs}, the settings say {wanted}: correct the setting, or use the right disk")
