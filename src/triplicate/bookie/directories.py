"""A bookie's directories: locks against a second process, and cookies against a wrong or wiped disk.

Every journal and ledger directory has a sub-directory ``current`` with the data, a ``LOCK`` file, and a ``VERSION`` file with the bookie's
cookie. The metadata has the same cookie. Source: BookKeeper `Cookie`, `LegacyCookieValidation`. Directories that replaced lost ones also
have a file ``INCARNATION``, which identifies the old disk if it ever returns.

All directories are checked before anything is changed: a refusal leaves the disks unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator

from triplicate.bookie.files import join, make_directory, nearest, read_file, replace_file
from triplicate.config import BookieSettings
from triplicate.errors import ConfigError, EnvironmentFault, FormatError, TriplicateError, WrongCluster
from triplicate.metadata import ClusterMetadata, Cookie, Incarnation, decode_cookie, encode_cookie
from triplicate.runtime import Disk

CURRENT = "current"
VERSION_NAME = "VERSION"
INCARNATION_NAME = "INCARNATION"
LOCK_NAME = "LOCK"
RESERVE_NAME = "RESERVE"
NO_DATA = frozenset(
    [LOCK_NAME, VERSION_NAME, INCARNATION_NAME, RESERVE_NAME, VERSION_NAME + ".new", INCARNATION_NAME + ".new", RESERVE_NAME + ".new"]
)
"""Names in a directory that holds no data yet."""
FORMAT_VERSION = 1
REPLACE = "`triplicate bookie format --config FILE --replace`"


class Directories:
    """All directories of one bookie."""

    def __init__(self, disk: Disk, settings: BookieSettings) -> None:
        self.configured = list(dict.fromkeys((*settings.journal_directories, *settings.ledger_directories)))
        self._disk = disk
        self._settings = settings
        self._locks: list[Callable[[], None]] = []

    async def open(
        self,
        metadata: ClusterMetadata,
        bookie_id: str,
        incarnation: Incarnation,
        check_more: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Compare the cookies and lock everything; stamp the directories of a new bookie.

        Args:
            check_more: raises other reasons not to start; awaited before anything is changed.

        Raises:
            ConfigError: a directory is named twice. EnvironmentFault: one cannot be used, or another process uses it.
            WrongCluster: one belongs to another bookie or cluster, or to this one and has lost its data.
        """
        found = await metadata.cookies.get(bookie_id)
        known = found[0] if found is not None else None
        ours = self.cookie(metadata, bookie_id)
        for problem in self.problems(ours, known, incarnation.number):
            raise problem
        if known is None and check_more is not None:
            # Locking creates the directories of a new bookie. Those of an old one are locked first, so that another process which uses
            # them is
            # reported rather than the port that it holds.
            await check_more()
        self.lock(make=known is None)
        try:
            # Once more, now that no other process can change them.
            for problem in self.problems(ours, known, incarnation.number):
                raise problem
            if known is None:
                # A request without a cookie was for an earlier bookie of this id, which was decommissioned while it ran.
                await metadata.read_only_requests.withdraw(bookie_id)
                await self.stamp(metadata, ours, incarnation.number, None)
            elif check_more is not None:
                await check_more()
        except BaseException:
            self.close()
            raise

    def cookie(self, metadata: ClusterMetadata, bookie_id: str) -> Cookie:
        """The cookie for these settings."""
        settings = self._settings
        return Cookie(bookie_id, ",".join(settings.journal_directories), settings.ledger_directories, metadata.instance_id)

    def problems(self, ours: Cookie, known: Cookie | None, incarnation: int) -> Iterator[TriplicateError]:
        """Reasons why the bookie cannot use its directories; changes nothing. Blocks.

        Args:
            ours: the cookie for the settings. known: the cookie in the metadata; None: it knows no such bookie.
        """
        yield from self.settings_problems()
        if known is not None:
            yield from _difference(f"the metadata's cookie of bookie {ours.bookie_id}", known, ours)
        for directory in self.configured:
            try:
                yield from self._problems_of(directory, ours, known, incarnation)
            except OSError as error:
                yield cannot_be_used(directory, error)
            except (FormatError, WrongCluster) as error:
                yield error

    def settings_problems(self) -> Iterator[ConfigError]:
        """Directories that the settings name twice, and missing settings."""
        settings = self._settings
        for kind, names in (("journal", settings.journal_directories), ("ledger", settings.ledger_directories)):
            if not names:
                yield ConfigError(f"bookie.{kind}_directories is empty: name at least one directory")
            if len(set(names)) != len(names):
                yield ConfigError(f"bookie.{kind}_directories names a directory twice: {', '.join(names)}: name each once")

    def _problems_of(self, directory: str, ours: Cookie, known: Cookie | None, incarnation: int) -> Iterator[TriplicateError]:
        cookie, life = self.cookie_in(directory), self.incarnation_in(directory)
        if cookie is not None:
            yield from _difference(f"{directory}: its VERSION file", cookie, ours)
        current = join(directory, CURRENT)
        found = nearest(self._disk, current)
        if known is None or found in (directory, current):
            # Something other than a directory may stand in the path, or this user may not enter it and would find it empty: OSError.
            self._disk.names(found)
        if known is not None and cookie is None:
            what = "has no VERSION file" if found == current else "is not there"
            yield WrongCluster(
                f"{directory}: it {what}, and bookie {ours.bookie_id} kept data in it, so it was wiped or is not mounted: mount the right "
                f"disk; if the data is lost, run {REPLACE}"
            )
        elif cookie is not None and known is not None and life != incarnation:
            yield WrongCluster(
                f"{directory}: it is of incarnation {life} of bookie {ours.bookie_id}, whose disks were replaced since (now "
                f"{incarnation}): mount the disks that were formatted then, or empty this one and run {REPLACE}"
            )
        if known is None and self.data_in(directory):
            yield WrongCluster(
                f"{directory}: there is data, but the cluster knows no bookie {ours.bookie_id}: if the bookie was decommissioned, its data "
                "is no longer needed, so empty the directory; otherwise give back the bookie_id and the metadata address that wrote it"
            )

    def lock(self, *, make: bool) -> None:
        """Lock every directory. With `make`, create missing ones. Blocks.

        Raises:
            EnvironmentFault: one cannot be used, or another process uses it.
        """
        for directory in self.configured:
            current = join(directory, CURRENT)
            try:
                if make:
                    make_directory(self._disk, current)
                self._locks.append(self._disk.lock(join(current, LOCK_NAME)))
            except BlockingIOError:
                self.close()
                raise in_use(directory) from None
            except OSError as error:
                self.close()
                raise cannot_be_used(directory, error) from error

    def close(self) -> None:
        """Release the locks. Idempotent."""
        while self._locks:
            self._locks.pop()()

    async def stamp(self, metadata: ClusterMetadata, cookie: Cookie, incarnation: int, version: int | None) -> None:
        """Write the cookie into every directory and into the metadata.

        Args:
            version: of the metadata's cookie that is replaced; None: there is none.

        Raises:
            OSError. NodeExists, BadVersion: another process has changed the metadata's cookie.
        """
        # The files first: after an interruption the next start finds empty directories with the same cookie, and continues.
        for directory in self.configured:
            current = join(directory, CURRENT)
            if incarnation > 1:
                replace_file(self._disk, current, INCARNATION_NAME, _encode_incarnation(cookie.bookie_id, incarnation))
            replace_file(self._disk, current, VERSION_NAME, encode_cookie(cookie))
        await metadata.cookies.put(cookie, version)

    def data_in(self, directory: str) -> list[str]:
        """Names in a directory that are data. Raises OSError."""
        current = join(directory, CURRENT)
        return [name for name in self._disk.names(current) if name not in NO_DATA] if self._disk.exists(current) else []

    def cookie_in(self, directory: str) -> Cookie | None:
        """A directory's cookie. Raises WrongCluster: it is unreadable; OSError."""
        path = join(join(directory, CURRENT), VERSION_NAME)
        if not self._disk.exists(path):
            return None
        try:
            return decode_cookie(read_file(self._disk, path))
        except FormatError as error:
            raise WrongCluster(f"{path}: {error}: restore the file from another directory of this bookie") from error

    def incarnation_in(self, directory: str) -> int:
        """The incarnation for which a directory was made. Raises FormatError, WrongCluster, OSError."""
        path = join(join(directory, CURRENT), INCARNATION_NAME)
        if not self._disk.exists(path):
            return 1
        try:
            fields = json.loads(read_file(self._disk, path))
            if fields["v"] != FORMAT_VERSION:
                raise FormatError(f"{path}: of format {fields['v']}, this release knows {FORMAT_VERSION}: start the release that wrote it")
            return int(fields["incarnation"])
        except (ValueError, KeyError, TypeError) as error:
            raise WrongCluster(f"{path}: not a bookie's incarnation: restore the file from another directory of this bookie") from error


def in_use(directory: str) -> EnvironmentFault:
    return EnvironmentFault(f"{directory}: another bookie runs on this directory: stop it, or give this one its own")


def cannot_be_used(directory: str, error: OSError) -> EnvironmentFault:
    reason = error.strerror or str(error)
    return EnvironmentFault(f"{directory}: cannot be used ({reason}): mount it, or make it writable for this user")


def _encode_incarnation(bookie_id: str, incarnation: int) -> bytes:
    return json.dumps({"v": FORMAT_VERSION, "bookie_id": bookie_id, "incarnation": incarnation}, sort_keys=True).encode() + b"\n"


def _difference(where: str, found: Cookie, ours: Cookie) -> Iterator[WrongCluster]:
    for what, theirs, wanted in (
        ("cluster", found.instance_id, ours.instance_id),
        ("bookie id", found.bookie_id, ours.bookie_id),
        ("journal directories", found.journal_dir, ours.journal_dir),
        ("ledger directories", ",".join(found.ledger_dirs), ",".join(ours.ledger_dirs)),
    ):
        if theirs != wanted:
            yield WrongCluster(f"{where} says {what} {theirs}, the settings say {wanted}: correct the setting, or use the right disk")
            return
