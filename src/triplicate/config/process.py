"""Settings that every process has: where the metadata is, and where its metrics are served."""

from __future__ import annotations

import dataclasses

from .setting import setting


@dataclasses.dataclass(frozen=True, slots=True)
class MetadataSettings:
    """Section ``metadata``: the cluster that this process belongs to."""

    uri: str = setting(
        "",
        "Where the cluster's metadata is: `sqlite:///absolute/path/metadata.db`, or `zk://host:port;host:port/ledgers`. Every process of "
        "a cluster names the same.",
        bookkeeper="metadataServiceUri",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Section ``process``: what is the same for every kind of process."""

    metrics_port: int = setting(
        0,
        "Loopback port that serves the metrics as Prometheus text under /metrics; 0 takes a free one, which the process prints.",
        low=0,
        high=65535,
        bookkeeper="prometheusStatsHttpPort",
    )
    log_level: str = setting(
        "info", "Least important message that is written to standard error.", choices=("debug", "info", "warning", "error")
    )
    debug: bool = setting(False, "Run the event loop in debug mode and report slow callbacks; for developers.")
