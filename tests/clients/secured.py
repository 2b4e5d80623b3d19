"""A cluster whose nodes require TLS and passwords, and its databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import psycopg

from tests.certificates import CertificateFolder
from tests.clients.stand import Db, Stand
from tests.waiting import wait_until
from triplicate.cli import ClusterFolder, local_cluster
from triplicate.config import SecuritySettings
from triplicate.runtime import real_host
from triplicate.security import TlsIdentity
from triplicate.sql import Administrator, create_database

ROLE = "anna"
PASSWORD = "a password, 'quoted' and wide: ü"


class SecuredDb(Db):
    """One database, with its administrator."""

    stand: SecuredStand

    def dsn(self, attributes: str = "read-write", *, nodes: list[str] | None = None) -> str:
        plain = super().dsn(attributes, nodes=nodes).replace("user=tester", f"user={ROLE}")
        return f"{plain} sslmode=verify-full sslrootcert={self.stand.certificates.ca_file}"

    def connect(self, attributes: str = "read-write", **options: Any) -> psycopg.Connection[Any]:
        return super().connect(attributes, **{"password": PASSWORD, **options})

    def connect_to(self, node: str, **options: Any) -> psycopg.Connection[Any]:
        return super().connect_to(node, **{"password": PASSWORD, **options})

    async def asyncpg(self, attributes: str = "read-write", **options: Any) -> Any:
        identity = TlsIdentity(self.stand.certificates.client_settings(), real_host("client").clock, lambda kind, /, **facts: None)
        given = {**self.addresses(), "user": ROLE, "password": PASSWORD, "ssl": identity.client_context(), "timeout": 10, **options}
        return await asyncpg.connect(target_session_attrs=attributes, **given)


class SecuredStand(Stand):
    """The cluster. The audit log of each node is in `audit`."""

    def __init__(self, cluster: Any, certificates: CertificateFolder, audit: Path) -> None:
        super().__init__(cluster)
        self.certificates = certificates
        self.audit = audit

    def create(self, name: str) -> SecuredDb:
        async def make(client: Any) -> None:
            await create_database(client, name, administrator=Administrator.of_password(client, ROLE, PASSWORD))

        self.with_client(make)
        database = SecuredDb(self, name)
        database.writable().close()
        return database

    def events(self) -> list[dict[str, Any]]:
        """The events in the audit logs of all nodes."""
        lines = [line for file in sorted(self.audit.iterdir()) for line in file.read_text().splitlines()]
        return [json.loads(line) for line in lines]

    def wait_for_event(self, **facts: object) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            return [one for one in self.events() if facts.items() <= one.items()]

        wait_until(lambda: bool(found()), 10, f"an event with {facts}")
        return found()[-1]


@contextmanager
def secured_stand(place: Path) -> Iterator[SecuredStand]:
    certificates = CertificateFolder(place / "certificates")
    audit = place / "audit"
    audit.mkdir()

    def begin(folder: ClusterFolder) -> None:
        for config in folder.path.glob("node-*/node.toml"):
            own = certificates.settings(config.parent.name)
            demands = f'tls = "required"\nauthentication = "scram"\naudit_log = "{audit / config.parent.name}"\n'
            text = config.read_text().replace("[node]\n", f"[node]\n{demands}")
            config.write_text(f"{text}\n{_section(own)}")

    with local_cluster(place / "c", bookies=3, nodes=2, begin=begin) as cluster:
        yield SecuredStand(cluster, certificates, audit)


def _section(settings: SecuritySettings) -> str:
    names = ("ca_file", "certificate_file", "key_file")
    return "[security]\n" + "".join(f'{name} = "{getattr(settings, name)}"\n' for name in names)
