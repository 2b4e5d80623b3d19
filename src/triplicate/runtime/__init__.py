"""The runtime: ports to the outside, task scopes, the admission window, futures, backoff, rate limits, metrics."""

from triplicate.runtime.backoff import Backoff
from triplicate.runtime.cyclic_garbage import collect_garbage_seldom
from triplicate.runtime.eager import EagerWork, Spawn, TasklessFuture, own_task, start_eagerly
from triplicate.runtime.fault_points import FaultPoint, fault_point, fault_points
from triplicate.runtime.held_bytes import HeldBytes
from triplicate.runtime.in_process_network import InProcessNetwork
from triplicate.runtime.loop_watch import LoopWatch
from triplicate.runtime.malloc import keep_freed_memory, let_freed_memory_linger
from triplicate.runtime.metrics import Metrics
from triplicate.runtime.metrics_server import PageGuard, Probe, ProbeAnswer, serve_metrics
from triplicate.runtime.oneshot import fail, has_result, resolve, resolve_all
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
from triplicate.runtime.programs import run_program
from triplicate.runtime.progress_watch import ProgressWatch
from triplicate.runtime.rate_limiter import RateLimiter
from triplicate.runtime.real import addresses_of, no_trace, real_host
from triplicate.runtime.sqlite_library import require_sound_sqlite
from triplicate.runtime.task_scope import TaskScope, deadline_after, first_of, map_bounded, shielded, sleep, sleep_until, timeout_at
from triplicate.runtime.transports import close_transport
from triplicate.runtime.uninterrupted import UninterruptedFuture
from triplicate.runtime.unsynced_disk import UnsyncedDisk
from triplicate.runtime.window import AdmissionWindow
from triplicate.runtime.worker_pool import SerialWorker, WorkerPool

__all__ = [
    "AdmissionWindow",
    "Backoff",
    "Buffer",
    "Clock",
    "Disk",
    "EagerWork",
    "Entropy",
    "FaultPoint",
    "File",
    "Group",
    "HeldBytes",
    "Host",
    "InProcessNetwork",
    "Listener",
    "LogDevice",
    "LoopWatch",
    "Metrics",
    "Network",
    "PageGuard",
    "Probe",
    "ProbeAnswer",
    "ProgressWatch",
    "RateLimiter",
    "SerialWorker",
    "Spawn",
    "TaskScope",
    "TasklessFuture",
    "Timer",
    "Trace",
    "UninterruptedFuture",
    "UnsyncedDisk",
    "Worker",
    "WorkerPool",
    "addresses_of",
    "close_transport",
    "collect_garbage_seldom",
    "deadline_after",
    "fail",
    "fault_point",
    "fault_points",
    "first_of",
    "has_result",
    "keep_freed_memory",
    "let_freed_memory_linger",
    "map_bounded",
    "no_trace",
    "own_task",
    "real_host",
    "require_sound_sqlite",
    "resolve",
    "resolve_all",
    "run_program",
    "serve_metrics",
    "shielded",
    "sleep",
    "sleep_until",
    "start_eagerly",
    "timeout_at",
]
