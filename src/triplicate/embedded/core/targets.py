"""The places where an embedded database may be."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from triplicate.errors import ArgumentError

MEMORY = "memory:"


@dataclass(frozen=True, slots=True)
class MemoryTarget:
    """A cluster of its own, gone at the end."""


@dataclass(frozen=True, slots=True)
class FolderTarget:
    """A folder: a cluster of its own, or one of `triplicate up`."""

    path: str
    """Absolute."""


@dataclass(frozen=True, slots=True)
class FleetTarget:
    """The metadata of a cluster of other processes."""

    uri: str


Target = MemoryTarget | FolderTarget | FleetTarget


def parse_target(text: str, working_directory: str) -> Target:
    """The place that a text names: ``memory:``, the URI of a cluster's metadata, or the path of a folder.

    Raises:
        ArgumentError: the text is empty, or looks like a URI of an unknown kind.
    """
    if text in (MEMORY, ":memory:"):
        return MemoryTarget()
    if text.startswith(("sqlite:///", "zk://", "zk+")):
        return FleetTarget(text)
    if not text or "\0" in text or "://" in text:
        raise ArgumentError(
            f"{text!r} is no place of a database: give the path of a folder, memory:, or the metadata of a cluster as sqlite:///… or zk://…"
        )
    return FolderTarget(posixpath.normpath(posixpath.join(working_directory, text)))
