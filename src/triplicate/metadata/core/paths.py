"""Paths of the tree, and BookKeeper's paths of ledger metadata below its root."""

from __future__ import annotations

import re
from typing import Protocol

from triplicate.errors import ArgumentError

SHORT_IDS_END = 2147483647
"""The hierarchical layout uses the long form for ids from this one on. The first id generator overflows here, too."""

LEDGER_ID_MAX = 2**63 - 1

DATA_BYTES_MAX = 1_000_000
"""Maximum size of a node's data. ZooKeeper's limit of 1,048,575 bytes applies to the whole packet, including the path."""


def check_path(path: str) -> str:
    """Return the path if it is absolute, has no empty, ``.`` or ``..`` part and no NUL.

    Raises:
        ArgumentError: the path is not valid.
    """
    if path == "/":
        return path
    if not path.startswith("/") or "\0" in path or any(part in ("", ".", "..") for part in path[1:].split("/")):
        raise ArgumentError(f"{path!r} is not a path of the metadata tree: absolute, no trailing slash, no empty or dotted part")
    return path


def check_data(path: str, data: bytes) -> bytes:
    """Return the data if a node can hold it.

    Raises:
        ArgumentError: more than `DATA_BYTES_MAX`.
    """
    if len(data) > DATA_BYTES_MAX:
        raise ArgumentError(f"{path}: {len(data)} bytes are more than a metadata node holds ({DATA_BYTES_MAX})")
    return data


def parent_of(path: str) -> str:
    """The path without its last part; the parent of a top node is ``/``."""
    return path.rpartition("/")[0] or "/"


def name_of(path: str) -> str:
    """The last part."""
    return path.rpartition("/")[2]


def join(parent: str, name: str) -> str:
    """The path of a child."""
    return f"/{name}" if parent == "/" else f"{parent}/{name}"


def ancestors_of(path: str) -> list[str]:
    """The paths above, from the top down, without ``/``."""
    parts = path[1:].split("/")[:-1]
    return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]


def sequence_suffix(counter: int) -> str:
    """Ten decimal digits of a parent's counter. The counter is a signed 32-bit number and becomes negative after 2^31 - 1.

    Source: ZooKeeper `PrepRequestProcessor`, `String.format("%010d", parentCVersion)`.
    """
    wrapped = (counter + 2**31) % 2**32 - 2**31
    return f"{wrapped:010d}"


class LedgerPaths(Protocol):
    """The paths of ledger metadata in a layout, relative to the cluster's root."""

    manager: str
    """Name of the layout as it appears in a service URI."""

    id_prefix: str
    """Path prefix of the id generator's sequential nodes, relative to the root."""

    long_ids: bool
    """Whether the 63-bit id generator is used once the first one overflows."""

    def path(self, ledger_id: int) -> str:
        """Path of a ledger's node, beginning with a slash. Raises ArgumentError for an id outside the layout's range."""

    def subdirectories(self, relative: str, names: list[str]) -> list[str]:
        """Children of the node at `relative` ("" is the root) that lead to ledgers, in the order of the ids below them."""

    def ledgers(self, relative: str, names: list[str]) -> list[int]:
        """Ids of the children of the node at `relative` that are ledgers, ascending."""


def _check_id(ledger_id: int, end: int) -> int:
    if not 0 <= ledger_id < end:
        raise ArgumentError(f"ledger id {ledger_id} is outside 0 to {end - 1}")
    return ledger_id


def short_path(ledger_id: int) -> str:
    """``/aa/bbbb/Lcccc`` of the id's ten digits. Source: BookKeeper `StringUtils.getShortHierarchicalLedgerPath`."""
    digits = f"{_check_id(ledger_id, 10**10):010d}"
    return f"/{digits[:2]}/{digits[2:6]}/L{digits[6:]}"


def long_path(ledger_id: int) -> str:
    """``/aaa/bbbb/cccc/dddd/Leeee`` of the id's nineteen digits. Source: BookKeeper `StringUtils.getLongHierarchicalLedgerPath`."""
    digits = f"{_check_id(ledger_id, LEDGER_ID_MAX + 1):019d}"
    return f"/{digits[:3]}/{digits[3:7]}/{digits[7:11]}/{digits[11:15]}/L{digits[15:]}"


_FOUR_DIGITS = re.compile(r"[0-9]{4}", re.ASCII)
_LEAF = re.compile(r"L[0-9]{4}", re.ASCII)


class HierarchicalPaths:
    """BookKeeper's default: the short form for ids below 2147483647, the long form for the others.

    Source: BookKeeper `HierarchicalLedgerManager`, `LegacyHierarchicalLedgerManager`, `LongHierarchicalLedgerManager`.
    """

    manager = "hierarchical"
    id_prefix = "/idgen/ID-"
    long_ids = True
    _tops: tuple[str, ...] = (r"[0-9]{2}", r"[0-9]{3}")

    def path(self, ledger_id: int) -> str:
        return short_path(ledger_id) if 0 <= ledger_id < SHORT_IDS_END else long_path(ledger_id)

    def subdirectories(self, relative: str, names: list[str]) -> list[str]:
        parts = relative.split("/")[1:]
        if not parts:
            # Every id in the short form is smaller than every id in the long form.
            return [name for top in self._tops for name in sorted(names) if re.fullmatch(top, name)]
        levels = 2 if len(parts[0]) == 2 else 4
        return [] if len(parts) >= levels else [name for name in sorted(names) if _FOUR_DIGITS.fullmatch(name)]

    def ledgers(self, relative: str, names: list[str]) -> list[int]:
        parts = relative.split("/")[1:]
        if not parts or len(parts) != (2 if len(parts[0]) == 2 else 4):
            return []
        above = "".join(parts)
        return [int(above + name[1:]) for name in sorted(names) if _LEAF.fullmatch(name)]


class LongHierarchicalPaths(HierarchicalPaths):
    """The long form for every id. Source: BookKeeper `LongHierarchicalLedgerManager`."""

    manager = "longhierarchical"
    _tops = (r"[0-9]{3}",)

    def path(self, ledger_id: int) -> str:
        return long_path(ledger_id)


class FlatPaths:
    """All ledgers directly under the root; deprecated upstream. Source: BookKeeper `FlatLedgerManager`."""

    manager = "flat"
    id_prefix = "/ID-"
    long_ids = False

    def path(self, ledger_id: int) -> str:
        return f"/L{_check_id(ledger_id, LEDGER_ID_MAX + 1):010d}"

    def subdirectories(self, relative: str, names: list[str]) -> list[str]:
        return []

    def ledgers(self, relative: str, names: list[str]) -> list[int]:
        return sorted(int(name[1:]) for name in names if re.fullmatch(r"L[0-9]{10,19}", name, re.ASCII)) if not relative else []


def underreplicated_path(ledger_id: int) -> str:
    """Path below ``underreplication/ledgers`` of an under-replicated ledger.

    Source: BookKeeper `ZkLedgerUnderreplicationManager.getParentZnodePath`.
    """
    digits = f"{_check_id(ledger_id, LEDGER_ID_MAX + 1):016x}"
    return f"/{digits[:4]}/{digits[4:8]}/{digits[8:12]}/{digits[12:]}/urL{ledger_id:010d}"
