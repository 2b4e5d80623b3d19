"""A server for clients of Redis that demands TLS and passwords."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.certificates import CertificateFolder
from tests.unit.kv.resp.resp_rig import RawClient, Stand, serving
from tests.waiting import PLAY_LIMIT_S
from triplicate.config import NodeSettings, RespSettings, SecuritySettings
from triplicate.kv.resp.resp_connections import RespLimits
from triplicate.kv.resp.resp_logins import REFUSED_LOGINS
from triplicate.kv.resp.resp_security import RespSecurity
from triplicate.runtime import real_host
from triplicate.security import AUDIT_LOGGER, BookieRole, TlsIdentity, User, change_users, new_user

PASSWORD = "correct horse battery staple"
ALL = (BookieRole.READ, BookieRole.WRITE)


class Events(logging.Handler):
    """Collects the audit log."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.all.append(json.loads(record.getMessage()))


@dataclass
class Door:
    """The server, with everything that a test looks at."""

    stand: Stand
    folder: CertificateFolder
    users_file: Path
    events: Events = field(default_factory=Events)

    def refused(self, reason: str) -> float:
        """The counter of refusals for a reason."""
        line = f'{REFUSED_LOGINS}_total{{reason="{reason}"}} '
        return float(next(one for one in self.stand.metrics.expose().decode().splitlines() if one.startswith(line)).removeprefix(line))

    def client(self, user: str | None = "anna", password: str | None = PASSWORD, **more: Any) -> Any:
        given = {"ssl": True, "ssl_ca_certs": str(self.folder.ca_file), "ssl_check_hostname": True, **more}
        return self.stand.client(host="localhost", username=user, password=password, **given)

    async def raw(self, context: ssl.SSLContext | None = None) -> RawClient:
        """A client inside TLS."""
        context = context or ssl.create_default_context(cafile=str(self.folder.ca_file))
        return RawClient(*await asyncio.open_connection("localhost", self.stand.port, ssl=context))

    def context(self, name: str | None = None, folder: CertificateFolder | None = None, **certificate: Any) -> ssl.SSLContext:
        """The context of a client with a certificate of this name."""
        own = folder or self.folder
        settings = self.folder.trusting(own.settings(name, **certificate)) if name else self.folder.client_settings()
        return TlsIdentity(settings, real_host("client").clock, lambda kind, /, **facts: None).client_context()

    def change(self, change: Callable[[dict[str, User]], None]) -> None:
        change_users(str(self.users_file), "resp.users_file", change)


def some_users(users: dict[str, User]) -> None:
    """anna may do everything in each store, ben only read, and carl@bank everything in one."""
    for name, roles in (("anna", ALL), ("ben", ALL[:1]), ("dora", ALL[1:]), ("carl@bank", ALL)):
        users[name] = new_user(name, PASSWORD, roles, b"sixteen bytes of", digest_md5=False)


def run_door(
    tmp_path: Path,
    body: Callable[[Door], Coroutine[Any, Any, None]],
    *,
    names: Sequence[str] = ("bank", "shop"),
    default_store: str = "shop",
    limits: RespLimits | None = None,
    certificate: Callable[[CertificateFolder], SecuritySettings] | None = None,
    loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    **settings: Any,
) -> None:
    """Run a test with a server with TLS and passwords, unless `settings` of section node say otherwise."""
    folder = CertificateFolder(tmp_path / "certificates")
    users_file = tmp_path / "users.toml"
    change_users(str(users_file), "resp.users_file", some_users)
    own = folder.settings("node") if certificate is None else certificate(folder)

    async def main() -> None:
        host = real_host("door")
        node = replace(NodeSettings(), **{"tls": "required", "authentication": "scram", **settings})
        identity = TlsIdentity(replace(own, reload_interval_s=0.1), host.clock, host.trace)
        security = RespSecurity.of_settings(host, node, RespSettings(users_file=str(users_file)), identity)
        logger, events = logging.getLogger(AUDIT_LOGGER), Events()
        before = logger.level
        logger.addHandler(events)
        logger.setLevel(logging.INFO)
        try:
            async with (
                asyncio.timeout(PLAY_LIMIT_S),
                serving(tmp_path, names, limits=limits, security=security, default_store=default_store) as stand,
            ):
                await body(Door(stand, folder, users_file, events))
        finally:
            logger.removeHandler(events)
            logger.setLevel(before)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
