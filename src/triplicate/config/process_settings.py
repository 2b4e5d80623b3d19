"""Settings that every process has: where the metadata is, and where its metrics are served."""

from __future__ import annotations

import dataclasses

from triplicate.config.setting import setting


@dataclasses.dataclass(frozen=True, slots=True)
class MetadataSettings:
    """Section ``metadata``: the cluster that this process belongs to."""

    uri: str = setting(
        "",
        "URI of the cluster's metadata store: `sqlite:///absolute/path/metadata.db`, or `zk://host:port;host:port/ledgers`. Equal for "
        "every process of a cluster.",
        bookkeeper="metadataServiceUri",
    )
    session_timeout_s: float = setting(
        10.0,
        "Time after which ZooKeeper expires the session of a silent bookie or node, as after a power failure. The server keeps it "
        "between 2 and 20 of its ticks, by default 4 and 40 s. A shorter time detects failures sooner, and mistakes long pauses for "
        "failures. Sessions with an embedded store last 10 s.",
        unit="seconds",
        low=1,
        high=120,
        bookkeeper="zkTimeout",
    )
    tls: bool = setting(
        False,
        "Whether connections to ZooKeeper use TLS: `security.ca_file` verifies the servers, `security.verify_host` their names, and "
        "`security.certificate_file` is shown to servers that request one. The URI then names the servers' secureClientPort.",
        bookkeeper="zkClientSecure (a property of Java)",
    )
    user: str = setting(
        "",
        "User as which this process authenticates to ZooKeeper. Equal for every process of a cluster. Empty: no authentication, and "
        "everyone may change what this process creates.",
    )
    password_file: str = setting(
        "",
        "File with the password of `user`; only its owner may read it. It is read at each connection. A second line may hold another "
        "password, which is also tried: during a rotation some servers know the old one and some the new one.",
    )
    mechanism: str = setting(
        "sasl",
        "How the user authenticates. sasl: SASL with DIGEST-MD5, as Java's clients with a JAAS file do. digest: ZooKeeper's scheme "
        "`digest`, which sends the password and therefore needs `tls`.",
        choices=("sasl", "digest"),
    )
    acl: str = setting(
        "creator",
        "Owner of the nodes that this process creates. creator: the user alone, as with Apache BookKeeper's zkEnableSecurity. open: "
        "everyone. Without a user, nodes are open.",
        choices=("creator", "open"),
        bookkeeper="zkEnableSecurity",
    )


@dataclasses.dataclass(frozen=True, slots=True)
class ProcessSettings:
    """Section ``process``: what is the same for every kind of process."""

    metrics_host: str = setting(
        "127.0.0.1",
        "Address that serves /metrics, /health and /ready: an IPv4 or IPv6 address of this machine, or a name; 0.0.0.0 and :: are all "
        "addresses. Any but loopback needs `metrics_tls` and `metrics_token_file`.",
        bookkeeper="prometheusStatsHttpAddress",
    )
    metrics_tls: bool = setting(
        False,
        "Whether the pages are served with TLS, with the certificate of `security.certificate_file`.",
    )
    metrics_token_file: str = setting(
        "",
        "File with the bearer tokens that readers of the pages show, one on each line; only its owner may read it. It is read again when "
        "it changes. On loopback /health needs no token. Empty: no token is asked for.",
    )
    metrics_port: int = setting(
        0,
        "Port that serves the metrics as Prometheus text under /metrics, and the probes /health and /ready. 0 selects a free port, "
        "which the process prints.",
        low=0,
        high=65535,
        bookkeeper="prometheusStatsHttpPort",
    )
    log_level: str = setting("info", "Minimum level of messages written to standard error.", choices=("debug", "info", "warning", "error"))
    debug: bool = setting(False, "Run the event loop in debug mode and report slow callbacks. For developers.")
