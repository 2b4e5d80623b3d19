"""A server that demands TLS and passwords, and a raw client that logs in step by step."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import struct
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg

from tests.certificates import CertificateFolder
from tests.unit.sql.pg.local_engine import LocalDatabase, LocalDatabases
from triplicate.config import NodeSettings, SecuritySettings
from triplicate.runtime import Host, Metrics, real_host
from triplicate.security import AUDIT_LOGGER, ScramVerifier, TlsIdentity
from triplicate.sql.core.role_login import RoleLogin
from triplicate.sql.pg import PostgresServer, ServerLimits, ServerSecurity
from triplicate.sql.pg.protocol import wire
from triplicate.sql.pg.protocol.logins import REFUSED_LOGINS

PASSWORD = "correct horse battery staple"
SECRET = b"a secret of the cluster"
SSL_REQUEST = struct.pack(">ii", 8, wire.SSL_REQUEST)
VERIFIER = ScramVerifier.of_password(PASSWORD, b"sixteen bytes of").text


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

    server: PostgresServer
    database: LocalDatabase
    folder: CertificateFolder
    metrics: Metrics
    traces: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    events: Events = field(default_factory=Events)
    host: Host = field(default_factory=lambda: real_host("pg-test-client"))

    @property
    def port(self) -> int:
        return self.server.address[1]

    def refused(self, reason: str) -> float:
        """The counter of refusals for a reason."""
        line = f'{REFUSED_LOGINS}_total{{reason="{reason}"}} '
        return float(next(one for one in self.metrics.expose().decode().splitlines() if one.startswith(line)).removeprefix(line))

    async def psycopg(self, *, password: str = PASSWORD, host: str = "localhost", **options: Any) -> psycopg.AsyncConnection[Any]:
        given = {"user": "anna", "dbname": "shop", "sslmode": "verify-full", "sslrootcert": str(self.folder.ca_file), **options}
        return await psycopg.AsyncConnection.connect(host=host, port=self.port, password=password, autocommit=True, **given)

    async def error(self, **options: Any) -> str:
        """The message of the error with which psycopg's login fails."""
        try:
            connection = await self.psycopg(**options)
        except psycopg.OperationalError as error:
            return str(error)
        await connection.close()
        raise AssertionError("the login was accepted")

    async def raw(self, *, encrypted: bool = True) -> RawLogin:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        client = RawLogin(reader, writer)
        if encrypted:
            writer.write(SSL_REQUEST)
            assert await reader.readexactly(1) == b"S"
            identity = TlsIdentity(self.folder.client_settings(), real_host("client").clock, lambda kind, /, **facts: None)
            await writer.start_tls(identity.client_context(), server_hostname="localhost")
        return client


@asynccontextmanager
async def open_door(
    folder: CertificateFolder, limits: ServerLimits | None = None, certificate: SecuritySettings | None = None, **settings: Any
) -> AsyncIterator[Door]:
    """A server with TLS and SCRAM, unless `settings` of section node say otherwise."""
    traces: list[tuple[str, dict[str, object]]] = []
    host = real_host("pg-test", trace=lambda kind, /, **facts: traces.append((kind, facts)))
    node = replace(NodeSettings(), **{"tls": "required", "authentication": "scram", **settings})
    identity = TlsIdentity(replace(certificate or folder.settings("node"), reload_interval_s=0.1), host.clock, host.trace)
    databases, metrics = LocalDatabases(), Metrics()
    databases.shop.roles["anna"] = RoleLogin("anna", VERIFIER)
    security = ServerSecurity.of_settings(node, identity, SECRET)
    server = await PostgresServer.open(host, databases, ("127.0.0.1", 0), limits, security=security, metrics=metrics)
    door = Door(server, databases.shop, folder, metrics, traces)
    logger = logging.getLogger(AUDIT_LOGGER)
    before = logger.level
    logger.addHandler(door.events)
    logger.setLevel(logging.INFO)
    try:
        yield door
    finally:
        logger.removeHandler(door.events)
        logger.setLevel(before)
        await server.stop()


def run_door(
    tmp_path: Path,
    body: Callable[[Door], Awaitable[None]],
    limits: ServerLimits | None = None,
    certificate: Callable[[CertificateFolder], SecuritySettings] | None = None,
    loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    **settings: Any,
) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path / "certificates")
        own = None if certificate is None else certificate(folder)
        async with open_door(folder, limits, own, **settings) as door:
            await body(door)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(asyncio.wait_for(main(), 30))


def message(letter: bytes, body: bytes) -> bytes:
    return letter + struct.pack(">i", len(body) + 4) + body


def startup(user: str = "anna", database: str = "shop") -> bytes:
    body = struct.pack(">i", 3 << 16) + b"user\0" + user.encode() + b"\0database\0" + database.encode() + b"\0\0"
    return struct.pack(">i", len(body) + 4) + body


def initial(mechanism: str, text: bytes) -> bytes:
    return message(b"p", mechanism.encode() + b"\0" + struct.pack(">i", len(text)) + text)


class RawLogin:
    """A client that sends any messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))
        await self.writer.drain()

    async def answer(self) -> tuple[str, bytes]:
        """(letter, body) of the next message; empty at the end of the connection."""
        letter = await self.reader.read(1)
        if not letter:
            return "", b""
        size = struct.unpack(">i", await self.reader.readexactly(4))[0]
        return letter.decode(), await self.reader.readexactly(size - 4)

    async def error(self) -> tuple[str, str]:
        """(SQLSTATE, message) of the next message, which is an error."""
        letter, body = await self.answer()
        assert letter == "E", (letter, body)
        fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
        return fields[b"C"], fields[b"M"]

    async def begin(self, user: str = "anna", database: str = "shop") -> list[str]:
        """Send the first packet; returns the mechanisms that are offered."""
        await self.send(startup(user, database))
        letter, body = await self.answer()
        assert (letter, body[:4]) == ("R", struct.pack(">i", 10)), (letter, body)
        return body[4:].rstrip(b"\0").decode().split("\0")

    async def log_in(self) -> None:
        """Log in with the password."""
        await self.begin()
        await self.send(proof(await self.challenge()))

    async def challenge(self, mechanism: str = "SCRAM-SHA-256", first: bytes = b"n,,n=,r=clientnonce") -> str:
        """Send a first message; returns the server's challenge."""
        await self.send(initial(mechanism, first))
        letter, body = await self.answer()
        assert (letter, body[:4]) == ("R", struct.pack(">i", 11)), (letter, body)
        return body[4:].decode()

    def close(self) -> None:
        self.writer.close()


def proof(challenge: str, password: str = PASSWORD, header: bytes = b"n,,", bare: str = "n=,r=clientnonce", binding: bytes = b"") -> bytes:
    """The client's final message for a challenge."""
    parts = dict(part.split("=", 1) for part in challenge.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(parts["s"]), int(parts["i"]))
    key = hmac.digest(salted, b"Client Key", "sha256")
    unproved = f"c={b64encode(header + binding).decode()},r={parts['r']}"
    signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{challenge},{unproved}".encode(), "sha256")
    proved = bytes(one ^ other for one, other in zip(key, signature, strict=True))
    return message(b"p", f"{unproved},p={b64encode(proved).decode()}".encode())
