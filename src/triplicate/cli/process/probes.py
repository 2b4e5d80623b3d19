"""The answers of a server process to ``/health`` and ``/ready``.

``/health`` is for supervisors that restart hanging processes: 200 as long as a restart would not help. ``/ready`` is for load balancers:
200 while the process can serve clients.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from triplicate.runtime import Clock, ProbeAnswer

if TYPE_CHECKING:  # A bookie's process must not import the modules of a node, nor a node those of a bookie.
    from triplicate.autorecovery import AutorecoveryDaemon
    from triplicate.bookie import Bookie
    from triplicate.kv import HostedStores
    from triplicate.sql import DatabaseNode

READY_ROLES = ("leader", "follower")


@dataclass(frozen=True)
class Readiness:
    """The readiness of a server."""

    reasons: Sequence[str]
    """Reasons why clients should use another server; empty if it is ready."""
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass
class ServedProcess:
    """A started server."""

    facts: dict[str, object]
    """Facts for the parent and the log."""
    stop: Callable[[], Awaitable[None]]
    failed: Callable[[], Awaitable[BaseException]]
    """Waits for a fatal failure of the server and returns it. The process must end then, so that the failure is noticed."""
    problems: Callable[[], Sequence[str]]
    """Parts of the server that have ended and do not restart; empty if there are none."""
    readiness: Callable[[], Readiness]


class ProcessState:
    """The state of a server process that the probes report, from before the server's start until after its end.

    Args:
        loop_delay_s: returns how late the loop answered last, in seconds.
    """

    def __init__(self, name: str, clock: Clock, loop_delay_s: Callable[[], float]) -> None:
        self._name = name
        self._clock = clock
        self._started_at = clock.monotonic()
        self._loop_delay_s = loop_delay_s
        self.serving: ServedProcess | None = None
        self.ending = False

    def health(self) -> ProbeAnswer:
        """``/health``. A start or an end may take long: both are healthy. A slow loop is healthy, too; its delay is reported."""
        reasons = [] if self.serving is None or self.ending else list(self.serving.problems())
        return ProbeAnswer(
            not reasons,
            {
                "healthy": not reasons,
                "process": self._name,
                "reasons": reasons,
                "uptime_s": round(self._clock.monotonic() - self._started_at, 1),
                "loop_delay_s": round(self._loop_delay_s(), 4),
            },
        )

    def ready(self) -> ProbeAnswer:
        """``/ready``."""
        if self.ending:
            found = Readiness(["ending"])
        elif self.serving is None:
            found = Readiness(["starting"])
        else:
            found = self.serving.readiness()
        reasons = list(found.reasons)
        return ProbeAnswer(not reasons, {"ready": not reasons, "process": self._name, "reasons": reasons, **found.facts})


def bookie_problems(bookie: Bookie) -> list[str]:
    """The loops of a bookie that have ended."""
    return [f"{name} has ended" for name in bookie.ended_loops]


def bookie_readiness(bookie: Bookie) -> Readiness:
    """A serving bookie is ready, also while it is read-only: readers need it."""
    return Readiness(
        [f"{name} has ended" for name in bookie.ended_loops],
        {"bookie": bookie.bookie_id, "writable": not bookie.read_only, "registered": bookie.registered},
    )


def autorecovery_problems(daemon: AutorecoveryDaemon) -> list[str]:
    """The failure of the daemon of auto-recovery, if any. Failures of its tasks, which begin again, are counted by a metric."""
    return [] if daemon.failure is None else [f"auto-recovery has ended: {daemon.failure!r}"]


def node_problems(node: DatabaseNode) -> list[str]:
    """The failure of a database node, if any."""
    return [] if node.failure is None else [f"the node has failed: {node.failure}"]


def node_readiness(node: DatabaseNode, stores: HostedStores) -> Readiness:
    """A node is ready if it leads or follows each of its databases and key-value stores."""
    databases: dict[str, object] = {}
    reasons = node_problems(node)
    for name, hosted in sorted(node.databases.hosted.items()):
        role = hosted.role.value
        leader = hosted.leader.node_id if hosted.leader is not None else None
        databases[name] = {"role": role, "position": hosted.machine.position, "leader": leader}
        if role not in READY_ROLES:
            reasons.append(f"database {name} is {role}")
    shown: dict[str, object] = {}
    for name, one in sorted(stores.hosted.items()):
        leader = one.leader.node_id if one.leader is not None else None
        shown[name] = {"role": one.role.value, "position": one.machine.position, "leader": leader}
        if one.role.value not in READY_ROLES:
            reasons.append(f"store {name} is {one.role.value}")
    return Readiness(reasons, {"node": node.node_id, "databases": databases, **({"stores": shown} if shown else {})})
