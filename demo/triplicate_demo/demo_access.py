"""How the demonstration reaches its cluster: in clear, or, with ``--secure``, by the settings and secrets in the cluster's folder."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from psycopg.conninfo import make_conninfo

from triplicate.cli import ClusterFolder
from triplicate.client import Client, connect
from triplicate.config import (
    CONFIG_VARIABLE,
    ClientSettings,
    DatabaseClientSettings,
    MetadataSettings,
    SecuritySettings,
    settings_of_environment,
)
from triplicate.log import add_key
from triplicate.security import read_secret_file
from triplicate.sql import Administrator

KEYS_VARIABLE = "TRIPLICATE_LOG_CLIENT_KEYS_FILE"
KEYS_FILE = "keys.toml"
KEY_BYTES = 32
LIBPQ_VARIABLES = ("PGUSER", "PGPASSWORD", "PGPASSFILE")
"""They would override the role and the password of the cluster."""
OTHER_CLUSTER = ("TRIPLICATE_CONFIG", "TRIPLICATE_METADATA", "TRIPLICATE_CLIENT_", "TRIPLICATE_SECURITY_", "TRIPLICATE_DATABASE_CLIENT_")
"""How the names of variables begin that say which cluster a client means, and how it is reached. A user has them for another one."""


class DemoAccess:
    """Access to one cluster.

    Args:
        cluster: its folder, which says whether it is secured.
    """

    def __init__(self, cluster: ClusterFolder) -> None:
        self._cluster = cluster
        self._variables = {CONFIG_VARIABLE: str(cluster.security.client_file)} if cluster.is_secured else {}

    @property
    def is_secured(self) -> bool:
        return self._cluster.is_secured

    def client(self) -> connect:
        """A client of bookies and metadata: a context manager, see `connect`."""
        uri = self._cluster.metadata_uri
        if not self.is_secured:
            return connect(uri)
        return connect(
            uri,
            settings=settings_of_environment(ClientSettings, self._variables),
            security=settings_of_environment(SecuritySettings, self._variables),
            metadata=settings_of_environment(MetadataSettings, self._variables),
        )

    def administrator(self, client: Client) -> Administrator | None:
        """The administrator of a new database; None where everybody may do everything."""
        return Administrator.of_password(client, *self._login()) if self.is_secured else None

    def dsn(self, database: str) -> str:
        """The connection string of a database on all nodes. If the cluster is secured, it has the password: only libpq may see it."""
        nodes = [member for member in self._cluster.members if member.kind == "node"]
        hosts, ports = ",".join("127.0.0.1" for _ in nodes), ",".join(str(node.port) for node in nodes)
        plain = f"host={hosts} port={ports} dbname={database} user=demo target_session_attrs=read-write"
        if not self.is_secured:
            return plain
        role, password = self._login()
        ca_file = settings_of_environment(SecuritySettings, self._variables).ca_file
        return make_conninfo(plain, user=role, password=password, sslmode="verify-full", sslrootcert=ca_file, channel_binding="require")

    @property
    def variables(self) -> dict[str, str]:
        """Variables of programs that are clients of a secured cluster: paths of files, no secrets. Empty if the cluster is open."""
        return self._variables | ({KEYS_VARIABLE: os.environ[KEYS_VARIABLE]} if self.is_secured else {})

    @property
    def spark_settings(self) -> dict[str, str]:
        """Settings by which Spark gives its executors the same variables."""
        return {f"spark.executorEnv.{name}": value for name, value in self.variables.items()}

    @contextmanager
    def in_environment(self) -> Iterator[None]:
        """In the block, this process and those that it starts have the variables, and none that a user has for another cluster or its
        databases."""
        removed = [name for name in os.environ if name.startswith(OTHER_CLUSTER)]
        with environment({**dict.fromkeys([*removed, *(LIBPQ_VARIABLES if self.is_secured else ())]), **self.variables}):
            yield

    def _login(self) -> tuple[str, str]:
        """The role of the databases' administrator, and its password."""
        settings = settings_of_environment(DatabaseClientSettings, self._variables)
        return settings.role, read_secret_file(settings.password_file, "database_client.password_file")


@contextmanager
def encrypted(work: Path) -> Iterator[None]:
    """In the block, this process and those that it starts have a key file, in which a key is made; or the file that the environment names.

    The nodes of the cluster need it from their start, before there are files of a secured cluster.
    """
    path = os.environ.get(KEYS_VARIABLE)
    if not path:
        path = str(work / KEYS_FILE)
        add_key(path, None, datetime.datetime.now(datetime.UTC).date().isoformat(), lambda: os.urandom(KEY_BYTES))
    with environment({KEYS_VARIABLE: path}):
        yield


@contextmanager
def environment(variables: Mapping[str, str | None]) -> Iterator[None]:
    """Variables of this process in the block, and of all that it starts there. None: there is no such variable."""
    before = {name: os.environ.get(name) for name in variables}
    _put(variables)
    try:
        yield
    finally:
        _put(before)


def _put(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
