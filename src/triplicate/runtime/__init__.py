"""The runtime: ports to the outside, task scopes, channels, backoff, metrics. The only room that knows asyncio well."""

from triplicate.runtime.backoff import Backoff
from triplicate.runtime.channel import BoundedChannel
from triplicate.runtime.memory import keep_freed_memory, let_freed_memory_linger
from triplicate.runtime.metrics import Metrics
from triplicate.runtime.metrics_server import Probe, ProbeAnswer, serve_metrics
from triplicate.runtime.points import FaultPoint, fault_point, fault_points
from triplicate.runtime.ports import (
    Buffer,
    Clock,
    Disk,
    Entropy,
    File,
    Group,
    Host,
    Listener,
    LogDevice,
    Network,
    Timer,
    Trace,
    Worker,
)
from triplicate.runtime.real import JsonLinesTrace, no_trace, real_host
from triplicate.runtime.scope import TaskScope, deadline_after, first_of, map_bounded, shielded, sleep, sleep_until, timeout_at
from triplicate.runtime.worker_pool import Lane, WorkerPool

__all__ = [
    "Backoff",
    "BoundedChannel",
    "Buffer",
    "Clock",
    "Disk",
    "Entropy",
    "FaultPoint",
    "File",
    "Group",
    "Host",
    "JsonLinesTrace",
    "Lane",
    "Listener",
    "LogDevice",
    "Metrics",
    "Network",
    "Probe",
    "ProbeAnswer",
    "TaskScope",
    "Timer",
    "Trace",
    "Worker",
    "WorkerPool",
    "deadline_after",
    "fault_point",
    "fault_points",
    "first_of",
    "keep_freed_memory",
    "let_freed_memory_linger",
    "map_bounded",
    "no_trace",
    "real_host",
    "serve_metrics",
    "shielded",
    "sleep",
    "sleep_until",
    "timeout_at",
]
