"""A bookie with a guarded door on the real network, in this process, and raw clients in front of it."""

from __future__ import annotations

import asyncio
import dataclasses
import hmac
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from scramp import ScramClient

from tests.certificates import CertificateFolder
from tests.unit.bookie.bookie_rig import RawClient, V3Client
from tests.waiting import PLAY_LIMIT_S, eventually
from triplicate.bookie import Bookie
from triplicate.config import BookieSettings, SecuritySettings
from triplicate.ledger import DigestType, EntryCodec
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree
from triplicate.runtime import Host, Metrics, real_host
from triplicate.security import BookieRole, TlsIdentity, digest_md5, new_user, write_users
from triplicate.wire import AuthRequest, AuthResponse, StartTlsRequest, StartTlsResponse, Status

KIB = 1024
PASSWORD = "correct horse battery staple"
USERS: dict[str, tuple[BookieRole, ...]] = {
    "writer": (BookieRole.READ, BookieRole.WRITE),
    "reader": (BookieRole.READ,),
    "adder": (BookieRole.WRITE,),
    "boss": (BookieRole.ADMIN,),
    "nobody": (),
}
_SALT = bytes(range(16))


def codec(ledger_id: int = 5) -> EntryCodec:
    return EntryCodec(ledger_id, DigestType.CRC32C, b"")


@dataclasses.dataclass
class DoorRig:
    """One bookie with its host, and the traces of its door."""

    host: Host
    bookie: Bookie
    certificates: CertificateFolder
    users_file: Path
    metrics: Metrics
    facts: list[tuple[str, dict[str, object]]]
    clients: list[RawClient] = dataclasses.field(default_factory=list)

    async def connect(self, kind: type[RawClient] = V3Client) -> Any:
        _, protocol = await self.host.network.connect(kind, *self.bookie.address)
        assert isinstance(protocol, RawClient)
        self.clients.append(protocol)
        return protocol

    async def close_clients(self) -> None:
        for client in self.clients:
            if client.transport is not None:
                client.transport.abort()
        await eventually(lambda: all(client.closed for client in self.clients))

    async def connect_tls(self, settings: SecuritySettings | None = None) -> Any:
        """A connection of version 3 after the handshake."""
        client = await self.connect()
        await start_tls(self, client, settings)
        return client

    async def login(self, user: str, password: str = PASSWORD, **options: Any) -> Any:
        """A connection of this user in clear, by SCRAM-SHA-256."""
        client = await self.connect()
        assert await scram(client, user, password, **options)
        return client

    def count(self, name: str, **labels: str) -> float:
        """A sample of the metrics; 0 if there is none."""
        for family in text_string_to_metric_families(self.metrics.expose().decode()):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return float(sample.value)
        return 0.0

    def refusals(self, reason: str) -> float:
        """Connections that were refused for this reason, by the metric."""
        return self.count("triplicate_bookie_refused_logins_total", reason=reason)

    def traced(self, kind: str) -> list[dict[str, object]]:
        return [facts for each, facts in self.facts if each == kind]


async def start_tls(rig: DoorRig, client: RawClient, settings: SecuritySettings | None = None) -> None:
    """Ask for TLS, and shake hands. Raises OSError."""
    identity = TlsIdentity(settings or rig.certificates.client_settings(), rig.host.clock, rig.host.trace)
    answer = await client.ask(StartTlsRequest())
    assert answer == StartTlsResponse(Status.OK)
    await protect(rig, client, identity)


async def protect(rig: DoorRig, client: RawClient, identity: TlsIdentity) -> None:
    await shake_hands(rig, client, identity.client_context())


async def shake_hands(rig: DoorRig, client: RawClient, context: ssl.SSLContext) -> None:
    assert client.transport is not None
    try:
        client.transport = await rig.host.network.start_tls(client.transport, client, context, limit_s=20.0, server_name="localhost")
    except OSError:
        client.connection_lost(None)  # The protocol does not hear of it.
        raise


async def token(client: RawClient, plugin: str, payload: bytes) -> AuthResponse:
    """The answer to a token; "unauthorized" if the bookie closes the connection without one."""
    client.send(AuthRequest(plugin, payload))
    await eventually(lambda: client.closed or not client.answers.empty())
    if client.answers.empty():
        return AuthResponse(Status.UNAUTHORIZED, "", b"")
    answer = client.answers.get_nowait()
    assert isinstance(answer, AuthResponse)
    return answer


async def scram(client: RawClient, user: str, password: str, *, nonce: str = "client-nonce", end_point: bytes | None = None) -> bool:
    """Log in by SCRAM. Returns whether the bookie accepted, and proved that it knows the password."""
    binding: dict[str, Any] = {} if end_point is None else {"channel_binding": ("tls-server-end-point", end_point)}
    mechanism = "SCRAM-SHA-256" if end_point is None else "SCRAM-SHA-256-PLUS"
    login = ScramClient([mechanism], user, password, c_nonce=nonce, **binding)
    first = await token(client, "triplicate-sasl", f"{mechanism}\0{login.get_client_first()}".encode())
    if first.status is not Status.OK:
        return False
    login.set_server_first(first.payload.decode())
    last = await token(client, "triplicate-sasl", login.get_client_final().encode())
    if last.status is not Status.OK:
        return False
    login.set_server_final(last.payload.decode())
    return True


async def plain(client: RawClient, user: str, password: str) -> Status:
    """Log in by PLAIN."""
    return (await token(client, "triplicate-sasl", f"PLAIN\0\0{user}\0{password}".encode())).status


async def challenge(client: RawClient) -> bytes:
    """Begin DIGEST-MD5 as Java's client does. Returns the bookie's challenge."""
    answer = await token(client, "sasl", b"")
    assert (answer.status, answer.plugin) == (Status.OK, "sasl")
    return answer.payload


def digest_response(challenged: bytes, user: str, password: str, **changes: bytes) -> bytes:
    """Java's answer to a challenge. `changes`: values of directives in their place; an empty one leaves the directive out."""
    nonce = digest_md5.parse_directives(challenged)["nonce"]
    facts: dict[str, bytes] = {"nonce": nonce, "client_nonce": b64encode(b"client"), "authorization_id": user.encode()}
    values = {
        "charset": b"utf-8",
        "username": digest_md5.quoted(user.encode()),
        "realm": b'"bookkeeper"',
        "nonce": digest_md5.quoted(nonce),
        "nc": b"00000001",
        "cnonce": digest_md5.quoted(facts["client_nonce"]),
        "digest-uri": b'"bookkeeper/bookkeeper"',
        "maxbuf": b"65536",
        "response": digest_md5.proof(digest_md5.hash_of(user, password), **facts),  # type: ignore[arg-type]
        "qop": b"auth",
        "authzid": digest_md5.quoted(user.encode()),
    }
    values |= {name.replace("_", "-"): value for name, value in changes.items()}
    return digest_md5.format_directives([(name, value) for name, value in values.items() if value])


async def digest(client: RawClient, user: str, password: str, **changes: bytes) -> bool:
    """Log in by DIGEST-MD5. Returns whether the bookie accepted, and proved that it knows the password."""
    challenged = await challenge(client)
    answer = await token(client, "sasl", digest_response(challenged, user, password, **changes))
    if answer.status is not Status.OK:
        return False
    nonce = digest_md5.parse_directives(challenged)["nonce"]
    expected = digest_md5.proof(
        digest_md5.hash_of(user, password),
        nonce=nonce,
        client_nonce=b64encode(b"client"),
        authorization_id=user.encode(),
        by_server=True,
    )
    assert hmac.compare_digest(answer.payload, b"rspauth=" + expected)
    return True


def write_all(path: Path) -> None:
    """The file with all `USERS`, who have one password."""
    write_users(str(path), {name: new_user(name, PASSWORD, roles, _SALT) for name, roles in USERS.items()})


def run_door(
    tmp_path: Path,
    body: Callable[[DoorRig], Awaitable[None]],
    *,
    loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
    security: Callable[[CertificateFolder], SecuritySettings] = lambda folder: folder.settings("bookie"),
    **settings: Any,
) -> None:
    """Start a bookie with these settings of its section, run `body(rig)`, and stop the bookie."""

    async def main() -> None:
        facts: list[tuple[str, dict[str, object]]] = []
        host = real_host("door", trace=lambda kind, /, **found: facts.append((kind, found)))
        certificates = CertificateFolder(tmp_path / "certificates")
        users_file = tmp_path / "users.toml"
        write_all(users_file)
        metadata = await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True)
        metrics = Metrics()
        chosen = door_settings(tmp_path, **settings)
        if chosen.authentication in ("sasl", "either"):
            chosen = dataclasses.replace(chosen, users_file=str(users_file))
        bookie = await Bookie.start(host, chosen, metadata, metrics, security=security(certificates))
        rig = DoorRig(host, bookie, certificates, users_file, metrics, facts)
        try:
            async with asyncio.timeout(PLAY_LIMIT_S):
                await body(rig)
        finally:
            await bookie.stop()
            await metadata.aclose()
        assert not bookie.failed
        await eventually(lambda: not len(bookie.connections))
        await rig.close_clients()

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


def door_settings(tmp_path: Path, **settings: Any) -> BookieSettings:
    small: dict[str, Any] = {
        "bookie_id": "bookie-1",
        "port": 0,
        "journal_directories": (str(tmp_path / "journal"),),
        "ledger_directories": (str(tmp_path / "ledgers"),),
        "journal_preallocate_bytes": 64 * KIB,
        "journal_spare_files": 0,
        "reserve_bytes": 4 * KIB,
        "gc_interval_s": 3600.0,
        "authentication_timeout_s": 60.0,
        "unauthenticated_connections_per_address": 1000,
    }
    return BookieSettings(**{**small, **settings})
