"""Settings that every process has: where the metadata is, and where its metrics are served."""

from __future__ import annotations

import dataclasses

from triplicate.config.setting import setting


@dataclasses.dataclass(frozen=True, slots=True)
class MetadataSettings:
    """Section ``metadata``: the cluster that this process belongs to."""

    uri: str = setting(
        "",
        "Where the cluster's metadata is: `sqlite:///absolute/path/metadata.db`, or `zk://host:port;host:port/ledgers`. Every process of "
        "a cluster names the same.",
        bookkeeper="metadataServiceUri",
    )
    session_timeout_s: float = setting(
        10.0,
        "How long ZooKeeper holds a bookie or a node for alive that says nothing, as when its machine lost power; the server keeps it "
        "between 2 and 20 of its ticks, by default 4 and 40 s. Shorter notices sooner, and takes longer pauses for an end. Sessions with "
        "an embedded store last 10 s.",
        unit="seconds",
        low=1,
        high=120,
        bookkeeper="zkTimeout",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Section ``process``: what is the same for every kind of process."""

    metrics_host: str = setting(
        "127.0.0.1",
        "Address that /metrics, /health and /ready are served on: an IPv4 or IPv6 address of this machine, or a name; 0.0.0.0 and :: are "
        "all of them. They ask for no password: name an address that only your monitoring reaches.",
        bookkeeper="prometheusStatsHttpAddress",
    )
    metrics_port: int = setting(
        0,
        "Port that serves the metrics as Prometheus text under /metrics, and the probes /health and /ready; 0 takes a free one, which the "
        "process prints.",
        low=0,
        high=65535,
        bookkeeper="prometheusStatsHttpPort",
    )
    log_level: str = setting(
        "info", "Least important message that is written to standard error.", choices=("debug", "info", "warning", "error")
    )
    debug: bool = setting(False, "Run the event loop in debug mode and report slow callbacks; for developers.")
