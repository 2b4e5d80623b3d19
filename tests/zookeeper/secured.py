"""A secured ZooKeeper for tests, and the access of processes to it: certificates, users, passwords in files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.certificates import CertificateFolder
from tests.zookeeper.server import ZooKeeperServer
from triplicate.cli.supervision.zookeeper_security import ZooKeeperSecurity
from triplicate.config import MetadataSettings, SecuritySettings
from triplicate.metadata import MetadataAccess
from triplicate.runtime import Timer
from triplicate.security import TlsIdentity

USER, PASSWORD = "triplicate", 'a "quoted" \\ password'
OTHER_USER, OTHER_PASSWORD = "mallory", "another-password"


class _StandingClock:
    def monotonic(self) -> float:
        return 0.0

    elapsed = monotonic

    def wall_us(self) -> int:
        return 0

    def call_at(self, when: float, callback: Callable[..., None], *args: Any) -> Timer:
        raise NotImplementedError


class SecuredZooKeeper:
    """One server with an authority of its own. `USER` owns the cluster, and `OTHER_USER` is a valid user of something else."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        self.certificates = CertificateFolder(folder / "certificates")
        users = {USER: PASSWORD, OTHER_USER: OTHER_PASSWORD}
        self.server = ZooKeeperServer(folder / "zookeeper", ZooKeeperSecurity(self.certificates.settings("zookeeper"), users), settings)

    @cached_property
    def client_security(self) -> SecuritySettings:
        return self.certificates.settings("client")

    def password_file(self, name: str, content: str) -> str:
        """A file with this content that nobody finds half written: processes read it at any time."""
        path = self.folder / f"{name}.password"
        if not path.exists() or path.read_text() != content:
            new = path.with_suffix(".new")
            new.touch(mode=0o600)
            new.write_text(content)
            new.replace(path)
        return str(path)

    def settings(self, user: str = USER, password: str = PASSWORD, **more: Any) -> MetadataSettings:
        found = MetadataSettings(tls=True, user=user, password_file=self.password_file(user, password + "\n") if user else "")
        return replace(found, **more)

    def access(
        self, user: str = USER, password: str = PASSWORD, *, security: SecuritySettings | None = None, **more: Any
    ) -> MetadataAccess:
        # The files do not change while a test runs: nothing but the first reading needs a clock.
        identity = TlsIdentity(security or self.client_security, _StandingClock(), lambda *_, **__: None)
        return MetadataAccess(self.settings(user, password, **more), identity)

    def variables(self, root: str) -> Mapping[str, str]:
        """The environment of a process of the cluster under `root`."""
        settings, security = self.settings(), self.client_security
        return {
            "TRIPLICATE_METADATA": f"zk://{self.server.address}{root}",
            "TRIPLICATE_METADATA_TLS": "true",
            "TRIPLICATE_METADATA_USER": settings.user,
            "TRIPLICATE_METADATA_PASSWORD_FILE": settings.password_file,
            "TRIPLICATE_SECURITY_CA_FILE": security.ca_file,
            "TRIPLICATE_SECURITY_CERTIFICATE_FILE": security.certificate_file,
            "TRIPLICATE_SECURITY_KEY_FILE": security.key_file,
        }
