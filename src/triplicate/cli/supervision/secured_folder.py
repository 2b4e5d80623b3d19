"""The files that secure a local cluster: certificates, users, passwords, and the settings that use them.

DIR/security/                   only its owner may enter it
DIR/security/ca.pem, ca.key     the cluster's own authority
DIR/security/NAME.pem, .key     certificates of its processes, and `client`
DIR/security/NAME.password      passwords, drawn from the system's randomness
DIR/security/bookie-users.toml  the users of the bookies
DIR/security/resp-users.toml    the users of the nodes' ports for clients of Redis
DIR/security/client.toml        settings of client commands

Files that exist are kept. Missing ones are made, as for a process that is added.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from triplicate.config import to_toml
from triplicate.security import (
    BookieRole,
    CertificateStore,
    make_private_directory,
    new_user,
    read_secret_file,
    read_users,
    write_private,
    write_users,
)

LOOPBACK = ("localhost", "127.0.0.1", "::1")
AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 365
PASSWORD_BYTES = 24
"""Random bytes of a password. No attacker guesses 192 bits."""
SALT_BYTES = 16
CLIENT = "client"
"""Name of the certificate of client commands."""
ADMINISTRATOR = "administrator"
"""Name of the password of the databases' administrator, and of the role."""
METADATA_USER = "metadata"
"""The user that owns the nodes in ZooKeeper, and the name of its password."""
USERS = {"autorecovery": (BookieRole.ADMIN,), "node": (BookieRole.READ, BookieRole.WRITE), "operator": (BookieRole.ADMIN,)}
"""The users of the bookies by the processes that log in as them: auto-recovery of bookies, database nodes, client commands."""
RESP_USERS = {ADMINISTRATOR: (BookieRole.ADMIN,)}
"""The users of the nodes' ports for clients of Redis."""

Tables = dict[str, dict[str, object]]


@dataclass(frozen=True)
class SecuredFolder:
    """The folder ``security`` of a cluster's folder. Its methods name files; `complete` makes them."""

    path: Path

    def complete(self, names: Iterable[str]) -> None:
        """Make what is missing: the authority, a certificate for each process, users and passwords.

        Args:
            names: the processes.

        Raises:
            ConfigError: a file cannot be used, or the authority's key is gone and a certificate is missing.
        """
        make_private_directory(str(self.path))
        now_s = time.time()
        if not self._file("ca.pem").exists():
            CertificateStore.create(str(self.path), f"triplicate {self.path.parent.name}"[:64], now_s, AUTHORITY_DAYS)
        store = CertificateStore(str(self.path))
        known = set(store.names())
        for name in [*names, CLIENT]:
            if name not in known:
                store.issue(name, LOOPBACK, now_s, days=CERTIFICATE_DAYS)
        for name in [*USERS, ADMINISTRATOR, METADATA_USER]:
            if not self._file(f"{name}.password").exists():
                write_private(self.password_file(name), secrets.token_urlsafe(PASSWORD_BYTES).encode() + b"\n")
        self._complete_users("bookie-users.toml", "bookie.users_file", USERS)
        self._complete_users("resp-users.toml", "resp.users_file", RESP_USERS)

    def _complete_users(self, file: str, setting: str, wanted: Mapping[str, tuple[BookieRole, ...]]) -> None:
        path = str(self._file(file))
        users = read_users(path, setting) if os.path.exists(path) else {}
        missing = [name for name in wanted if name not in users]
        for name in missing:
            users[name] = new_user(name, self.password(name), wanted[name], secrets.token_bytes(SALT_BYTES))
        if missing:
            write_users(path, users)

    def password_file(self, name: str) -> str:
        return str(self._file(f"{name}.password"))

    def password(self, name: str) -> str:
        """Raises ConfigError: its file cannot be read, or others may read it."""
        return read_secret_file(self.password_file(name), "--dir")

    def certificate_settings(self, name: str) -> dict[str, object]:
        """Section ``security`` of a process."""
        return {
            "required": True,
            "ca_file": str(self._file("ca.pem")),
            "certificate_file": str(self._file(f"{name}.pem")),
            "key_file": str(self._file(f"{name}.key")),
        }

    def tables(self, name: str, user: str, uri: str) -> Tables:
        """The sections by which a process connects to others: ``metadata``, ``security`` and ``client``.

        Args:
            name: of its certificate. user: as which it logs in at bookies. uri: of the metadata.
        """
        metadata: dict[str, object] = {"uri": uri}
        if uri.startswith("zk"):
            metadata |= {"tls": True, "user": METADATA_USER, "password_file": self.password_file(METADATA_USER)}
        client: dict[str, object] = {
            "bookie_tls": "required",
            "user": user,
            "password_file": self.password_file(user),
            "mechanism": "SCRAM-SHA-256-PLUS",
        }
        return {"metadata": metadata, "security": self.certificate_settings(name), "client": client}

    def bookie_door(self) -> dict[str, object]:
        """Settings of section ``bookie`` that close its door."""
        return {"tls": "required", "authentication": "sasl", "users_file": str(self._file("bookie-users.toml"))}

    def node_door(self, folder: Path) -> dict[str, object]:
        """Settings of section ``node`` that close its door.

        Args:
            folder: of the node, for its audit log.
        """
        return {"tls": "required", "authentication": "scram", "audit_log": str(folder / "audit.log")}

    def resp_door(self) -> dict[str, object]:
        """Settings of section ``resp`` that close the door of a node for clients of Redis."""
        return {"users_file": str(self._file("resp-users.toml"))}

    def write_client_file(self, uri: str) -> None:
        """Write the settings of client commands, unless they exist."""
        path = self._file("client.toml")
        if path.exists():
            return
        tables = self.tables(CLIENT, "operator", uri)
        tables["database_client"] = {"role": ADMINISTRATOR, "password_file": self.password_file(ADMINISTRATOR)}
        comment = "Settings of client commands; TRIPLICATE_CONFIG names this file where they do not find it by themselves."
        write_private(str(path), to_toml(tables, comment=comment).encode())

    @property
    def client_file(self) -> Path:
        return self._file("client.toml")

    def _file(self, name: str) -> Path:
        return self.path / name
