"""The wait for a copy that can be used in this process."""

from __future__ import annotations

from typing import Protocol, TypeVar

from triplicate.embedded.embedded_node import EmbeddedNode
from triplicate.errors import EnvironmentFault
from triplicate.replica import HostedCopies, HostedMachine, ReplicaInfo
from triplicate.runtime import deadline_after, sleep

POLL_S = 0.002


class UsableMachine(HostedMachine, Protocol):
    """The part of a database, or of a store, that shows whether it can be used."""

    @property
    def is_leader(self) -> bool:
        """Whether this node leads it."""

    @property
    def unusable(self) -> object | None:
        """The reason why it is not served, whose text is for people; None while it is."""


Machine = TypeVar("Machine", bound=UsableMachine)
Info = TypeVar("Info", bound=ReplicaInfo)


async def wait_until_usable(node: EmbeddedNode, copies: HostedCopies[Machine, Info], name: str, what: str, limit_s: float) -> None:
    """Wait until a copy of this node leads, or follows and has what the log had when this was called.

    Args:
        what: the copy, for messages.
        limit_s: limit of the wait, seconds.

    Raises:
        EnvironmentFault: it cannot be used within the time, and why.
    """
    clock = node.client.host.clock
    deadline_s = deadline_after(clock, limit_s)
    end: int | None = None
    while True:
        hosted = copies.hosted.get(name)
        if hosted is not None and hosted.machine.unusable is None:
            if hosted.machine.is_leader:
                return
            if hosted.leader is not None and hosted.leader.node_id != node.node.node_id:
                end = await node.logs.end_offset(hosted.info.log) if end is None else end
                if hosted.machine.position >= end:
                    return
        node.check_works(what)
        if clock.monotonic() >= deadline_s:
            reason = None if hosted is None else hosted.machine.unusable
            why = node.hindrance or (str(reason) if reason is not None else "no node leads it; do its bookies run?")
            raise EnvironmentFault(f"{what} cannot be used after {limit_s:g} s: {why}")
        await sleep(clock, POLL_S)
