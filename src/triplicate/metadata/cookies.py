"""Cookies bind directories to a bookie of a cluster. A wiped or foreign disk is detected at start.

Source: BookKeeper `Cookie`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf import text_format

from triplicate.errors import BadVersion, FormatError, NodeExists, NoNode
from triplicate.metadata.core.bookie_ids import check_bookie_id
from triplicate.metadata.core.bookkeeper_pb2 import CookieFormat
from triplicate.metadata.core.tree import ANY_VERSION, DeleteNode, Tree, TreeOperation
from triplicate.metadata.retries import retried
from triplicate.runtime import Host

LAYOUT_VERSION = 4
LAYOUT_VERSION_WITH_INDEX = 5
LAYOUT_VERSION_PLAIN = 3


@dataclass(frozen=True, slots=True)
class Cookie:
    """A bookie's identity, stored in each of its directories and in the metadata."""

    bookie_id: str
    journal_dir: str
    """Journal directories as configured, joined with ``,``."""
    ledger_dirs: tuple[str, ...]
    instance_id: str
    """Empty in cookies of very old releases."""
    index_dirs: tuple[str, ...] | None = None
    """None means the same as `ledger_dirs`."""


def encode_cookie(cookie: Cookie) -> bytes:
    """The text form, for the node and for the ``VERSION`` file of each directory.

    The layout is 4, which every release since 4.14 reads. It is 5 only if index directories are named; 4.14 cannot read that layout.
    """
    message = CookieFormat(bookieHost=cookie.bookie_id, journalDir=cookie.journal_dir, ledgerDirs=_encode_directories(cookie.ledger_dirs))
    if cookie.instance_id:
        message.instanceId = cookie.instance_id
    version = LAYOUT_VERSION
    if cookie.index_dirs is not None:
        message.indexDirs = _encode_directories(cookie.index_dirs)
        version = LAYOUT_VERSION_WITH_INDEX
    return f"{version}\n{text_format.MessageToString(message, as_utf8=False)}".encode("ascii")


def decode_cookie(data: bytes) -> Cookie:
    """Decode a cookie of layout 3 (plain lines) or later (protobuf text; unknown fields are ignored).

    Raises:
        FormatError: the data is not a cookie.
    """
    try:
        first, _, rest = data.decode("utf-8").partition("\n")
        if not first.strip().isdecimal():
            raise FormatError(f"not a bookie's cookie: its first line is {first[:40]!r} instead of the number of a layout")
        version = int(first)
        if version < LAYOUT_VERSION_PLAIN:
            raise FormatError(f"cookie of layout {version}: only {LAYOUT_VERSION_PLAIN} and later are known")
        if version == LAYOUT_VERSION_PLAIN:
            bookie_id, journal_dir, ledger_dirs = rest.split("\n")[:3]
            return Cookie(bookie_id, journal_dir, _decode_directories(ledger_dirs), "")
        message = CookieFormat()
        text_format.Parse(rest, message, allow_unknown_field=True)
        if not message.IsInitialized():
            raise FormatError("a cookie without bookieHost, journalDir or ledgerDirs")
        index_dirs = _decode_directories(message.indexDirs) if message.HasField("indexDirs") else None
        return Cookie(message.bookieHost, message.journalDir, _decode_directories(message.ledgerDirs), message.instanceId, index_dirs)
    except (ValueError, text_format.ParseError) as error:
        raise FormatError(f"not a bookie's cookie: {error}") from error


def _encode_directories(directories: tuple[str, ...]) -> str:
    return "\t".join([str(len(directories)), *directories])


def _decode_directories(text: str) -> tuple[str, ...]:
    count, *directories = text.rstrip("\t").split("\t")
    if int(count) != len(directories):
        raise ValueError(f"{count} directories announced, {len(directories)} found")
    return tuple(directories)


class Cookies:
    """The cookies of all bookies that have ever joined the cluster."""

    def __init__(self, tree: Tree, host: Host, root: str) -> None:
        self._tree = tree
        self._host = host
        self._root = f"{root}/cookies"

    async def get(self, bookie_id: str) -> tuple[Cookie, int] | None:
        """The cookie and the version of its node, or None.

        Raises:
            FormatError: the cookie cannot be decoded.
        """
        path = self._path(bookie_id)
        try:
            data, stat = await retried(self._host, lambda: self._tree.get(path))
        except NoNode:
            return None
        return decode_cookie(data), stat.version

    async def put(self, cookie: Cookie, version: int | None = None) -> None:
        """Store a cookie.

        Args:
            version: the version of the cookie to replace; None for a bookie without a cookie.

        Raises:
            NodeExists: `version` is None and the bookie has a different cookie. BadVersion, NoNode: there is no cookie at that version.
        """
        path, data = self._path(cookie.bookie_id), encode_cookie(cookie)
        if version is not None:
            await self._tree.set(path, data, version)
            return
        try:
            await retried(self._host, lambda: self._tree.create(path, data, parents=True))
        except NodeExists:
            found = await self.get(cookie.bookie_id)
            if found is None or found[0] != cookie:
                raise

    async def delete(self, bookie_id: str, version: int = ANY_VERSION, checks: Sequence[TreeOperation] = ()) -> None:
        """Delete a bookie's cookie, if there is one.

        Args:
            checks: operations of the same transaction. If one fails, the cookie is not deleted.

        Raises:
            BadVersion: the version is not `version`, or a check failed.
        """
        path = self._path(bookie_id)
        try:
            await retried(self._host, lambda: self._tree.multi([*checks, DeleteNode(path, version)]))
        except (NoNode, BadVersion) as error:
            if await retried(self._host, lambda: self._tree.exists(path)) is None:
                return
            raise BadVersion(f"{path} stays: it, or what its deletion depends on, has changed ({error})") from error

    async def bookie_ids(self) -> list[str]:
        """Ids of all bookies that have ever joined, sorted."""
        try:
            names, _ = await retried(self._host, lambda: self._tree.children(self._root))
        except NoNode:
            return []
        return names

    def _path(self, bookie_id: str) -> str:
        return f"{self._root}/{check_bookie_id(bookie_id)}"
