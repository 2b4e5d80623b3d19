"""Settings of the key-value stores of a node."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """The key-value stores on a node. Elections, snapshots and restarts follow the settings of section node."""

    value_bytes: int = setting(
        MIB,
        "Maximum size of a value. Every node of the cluster should have the same.",
        unit="bytes",
        low=1,
        high=3 * MIB,
    )
    watch_buffer_bytes: int = setting(
        16 * MIB,
        "Recent changes of one store that are kept in memory for its watchers. A watcher that is further behind loses "
        "its place, and is informed.",
        unit="bytes",
        low=1024,
        high=1024 * MIB,
    )
    mark_interval_s: float = setting(
        1.0,
        "A leader that has appended nothing for this time appends an entry without records, by which followers know how old their state "
        "is. Reads of bounded age on followers need it. 0 disables it.",
        unit="seconds",
        low=0,
        high=3600,
    )
