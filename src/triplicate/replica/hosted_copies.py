"""The copies of one kind that a node hosts, as its servers see them. Empty before the node's start."""

from __future__ import annotations

from typing import Generic

from triplicate.replica.hosted_copy import HostedCopy, Machine
from triplicate.replica.replica_directory import Info


class HostedCopies(Generic[Machine, Info]):
    """The hosted copies by name."""

    def __init__(self) -> None:
        self._is_complete = False
        self.is_partial = False
        """Whether the cluster has replicas of this kind of which this node has no copy."""
        self._hosted: dict[str, HostedCopy[Machine, Info]] = {}

    @property
    def starting(self) -> bool:
        """Whether the node does not know all replicas of the cluster yet. Those that it knows are served."""
        return not self._is_complete

    def complete(self) -> None:
        """The node knows all replicas of the cluster from now on."""
        self._is_complete = True

    def get(self, name: str) -> Machine | None:
        hosted = self._hosted.get(name)
        return None if hosted is None else hosted.machine

    def names(self) -> list[str]:
        return sorted(self._hosted)

    @property
    def hosted(self) -> dict[str, HostedCopy[Machine, Info]]:
        """The hosted copies by name; a copy of the mapping."""
        return dict(self._hosted)

    def positions(self) -> dict[str, int]:
        """The offset after the last record applied, by name."""
        return {name: hosted.machine.position for name, hosted in sorted(self._hosted.items())}

    def add(self, hosted: HostedCopy[Machine, Info]) -> None:
        """Serve a copy."""
        self._hosted[hosted.info.name] = hosted

    def remove(self, hosted: HostedCopy[Machine, Info]) -> None:
        """Stop serving a copy. Its clients go on until it is closed."""
        del self._hosted[hosted.info.name]

    async def aclose(self) -> None:
        """Close every copy and serve none."""
        for hosted in self.hosted.values():
            await hosted.machine.close()
        self._hosted.clear()
