"""How a client of PostgreSQL's protocol finds a database: the connection string with every node."""

from __future__ import annotations

import re

from triplicate.errors import EnvironmentFault
from triplicate.sql.hosting.database_directory import DatabaseInfo

PLAIN = re.compile(r"[\w.,:\-/]+", re.ASCII)


def connection_string(info: DatabaseInfo, *, user: str = "", any_node: bool = False, ca_file: str = "") -> str:
    """A connection string in libpq's form, for psql, psycopg and other programs that use libpq.

    Args:
        info: see `database_info`; the nodes whose copies can be served now are named.
        user: the role. Without authentication any name is accepted. Empty leaves it out, and the client uses the name of the system's
            user.
        any_node: connect to any node, also to one that is read-only. Otherwise to the leader alone.
        ca_file: the certificates of the authorities that the client trusts, used where the nodes have TLS. Empty: libpq's own default file,
            ``~/.postgresql/root.crt``.

    Raises:
        EnvironmentFault: no node runs, or none has a copy that can be served; the message gives each node's reason.
    """
    able = [one for one in info.nodes if one.serves and one.address]
    if not info.nodes:
        raise EnvironmentFault(f"no node serves database {info.name}; start one with `triplicate node` or `triplicate up --nodes 3`")
    if not able and any(one.serves for one in info.nodes):
        raise EnvironmentFault(f"database {info.name} is embedded in a process that does not listen: give `triplicate.database` a port")
    if not able:
        said = "; ".join(f"{one.node_id} {one.role}: {one.reason or 'no reason is known'}" for one in info.nodes)
        raise EnvironmentFault(
            f"no node serves database {info.name}: no copy is usable ({said}); see `triplicate database show {info.name}`"
        )
    places = [one.address.rpartition(":") for one in able]
    parts = {
        "host": ",".join(host.strip("[]") for host, _, _ in places),
        "port": ",".join(port for _, _, port in places),
        "dbname": info.name,
        "user": user,
        "target_session_attrs": "any" if any_node else "read-write",
        "sslmode": "verify-full" if info.has_tls else "",
        "sslrootcert": ca_file if info.has_tls else "",
    }
    return " ".join(f"{name}={_quoted(value)}" for name, value in parts.items() if value)


def _quoted(value: str) -> str:
    if PLAIN.fullmatch(value):
        return value
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
