"""Settings of the port for clients of Redis."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting


@dataclass(frozen=True, slots=True)
class RespSettings:
    """The port on which a node serves its key-value stores to clients of Redis. Its limits of connections and logins are those of section
    node."""

    serve: bool = setting(False, "Whether the node serves its key-value stores by RESP, the protocol of Redis.")
    host: str = setting("", "Address that the server listens on. Empty: node.host.")
    port: int = setting(0, "Port of the server. 0 selects a free port, which the node prints.", low=0, high=65535)
    advertised_address: str = setting(
        "",
        "host:port published to clients of other nodes, which name it where this node leads a store. Empty: the host of "
        "node.advertised_address, or else the address that the server listens on, with the port of the server.",
    )
    default_store: str = setting(
        "", "Store of clients that name none. Empty: the only store of the cluster, if there is exactly one; else clients name one in AUTH."
    )
    users_file: str = setting(
        "",
        "File of the users that may log in, with their roles; written by `triplicate bookie user`. A running node reads it again when it "
        "has changed. A user ROLE@STORE may use one store, another one all. Needed with node.authentication = scram.",
    )
