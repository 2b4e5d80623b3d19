"""The list of the replicas of one kind, such as databases or stores: what hosting them needs to know of it."""

from __future__ import annotations

from typing import Protocol, TypeVar

from triplicate.replica.core.placement import Placement


class ReplicaInfo(Protocol):
    """The entry of one replica in the list."""

    @property
    def name(self) -> str: ...

    @property
    def identity(self) -> bytes:
        """16 bytes. A replica that is created again under the same name has another identity."""

    @property
    def log(self) -> str:
        """Name of its log."""

    @property
    def placement(self) -> Placement:
        """The nodes that are to have copies."""


Info = TypeVar("Info", bound=ReplicaInfo)


class ReplicaDirectory(Protocol[Info]):
    """The replicas of one kind in a cluster, and the places of their copies on this node."""

    @property
    def kind(self) -> str:
        """``database`` or ``store``: the label of a name in traces and metrics."""

    @property
    def list_path(self) -> str:
        """The node of the metadata that has the entries beneath it."""

    def entry_path(self, name: str) -> str:
        """The node of an entry."""

    def copy_file(self, name: str) -> str:
        """The path of a file that every copy has, in the folder of the copy on this node."""

    async def names(self) -> list[str]:
        """Names of all entries, sorted."""

    async def read(self, name: str) -> Info | None:
        """An entry, or None if nodes are to have no copy of this name.

        Raises:
            FormatError: it cannot be read. MetadataError: the metadata do not answer.
        """

    async def is_dropped(self, info: Info) -> bool:
        """Whether a replica that is not in the list was dropped, so that copies of it are worth nothing."""
