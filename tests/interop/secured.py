"""Secured bookies of both implementations, and clients with the right and with wrong credentials.

    tls            TLS; the client shows nothing
    certificate    TLS with client certificates whose unit has the role `ROLE`, as for Apache's `BookieAuthZFactory`
    sasl           a login by DIGEST-MD5 without TLS, as Apache's `SASLBookieAuthProviderFactory`
    both           TLS, and a login by DIGEST-MD5 inside it

Each bookie is alone in its cluster, so that a ledger has one copy.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from tests.certificates import CertificateFolder
from tests.interop.bookies import START_LIMIT_S, ApacheBookie
from tests.interop.stand import Stand, java_settings
from triplicate.bookie import Bookie
from triplicate.config import BookieSettings, SecuritySettings
from triplicate.metadata import open_cluster
from triplicate.runtime import Host, real_host, sleep
from triplicate.security import BookieRole, new_user, write_users

TLS, CERTIFICATE, SASL, BOTH = "tls", "certificate", "sasl", "both"
KINDS = (TLS, CERTIFICATE, SASL, BOTH)
WITH_TLS, WITH_LOGIN = (TLS, CERTIFICATE, BOTH), (SASL, BOTH)
ROLE = "writers"
USER = "bookkeeper-writer"
"""Apache's bookies accept users whose names have ``bookkeeper`` in them."""
PASSWORD, WRONG_PASSWORD = "right horse", "wrong horse"
FACTORY = "org.apache.bookkeeper.tls.TLSContextFactory"


@dataclass(frozen=True)
class Credentials:
    """The proofs that a client shows; the defaults are right.

    Attributes:
        security: None: it uses no TLS.
        section: of the JAAS file, for Java's login; empty for none.
        password_file: of our client's login; empty for none.
    """

    security: SecuritySettings | None = None
    section: str = ""
    password_file: str = ""


class SecurityFiles:
    """Certificates, passwords, users and Java's login configuration in a folder."""

    def __init__(self, folder: Path) -> None:
        self.ours = CertificateFolder(folder / "ours")
        self.theirs = CertificateFolder(folder / "theirs", "another authority")
        self.bookie = self.ours.settings("bookie")
        self.client = self.ours.settings("client", (), units=(f"0:{ROLE}",))
        self.stranger = self.ours.trusting(self.theirs.settings("client", (), units=(f"0:{ROLE}",)))
        self.without_role = self.ours.settings("without-role", (), units=("0:nothing",))
        self.expired = self.ours.settings("expired", (), valid_s=60.0, made_s_ago=3600.0, units=(f"0:{ROLE}",))
        self.password = self._secret(folder / "password", PASSWORD)
        self.wrong_password = self._secret(folder / "wrong-password", WRONG_PASSWORD)
        self.users = str(folder / "users.toml")
        write_users(self.users, {USER: new_user(USER, PASSWORD, (BookieRole.READ, BookieRole.WRITE), os.urandom(16))})
        self.jaas = folder / "jaas.conf"
        login = "org.apache.zookeeper.server.auth.DigestLoginModule required"
        self.jaas.write_text(
            f'Bookie {{ {login} user_{USER}="{PASSWORD}"; }};\n'
            f'Right {{ {login} username="{USER}" password="{PASSWORD}"; }};\n'
            f'Wrong {{ {login} username="{USER}" password="{WRONG_PASSWORD}"; }};\n'
            f'Stranger {{ {login} username="bookkeeper-stranger" password="{PASSWORD}"; }};\n'
        )

    def _secret(self, path: Path, text: str) -> str:
        path.touch(mode=0o600)
        path.write_text(text + "\n")
        return str(path)

    def right(self, kind: str) -> Credentials:
        """The proofs that a client needs for a bookie of this kind."""
        security = {TLS: self.ours.client_settings(), CERTIFICATE: self.client, SASL: None, BOTH: self.ours.client_settings()}[kind]
        return Credentials(security, *(("Right", self.password) if kind in WITH_LOGIN else ()))


def java_security(credentials: Credentials) -> Mapping[str, object]:
    """The settings of Java's client."""
    found: dict[str, object] = {**java_settings(), "addEntryTimeoutSec": 3, "readEntryTimeoutSec": 3, "startTLSTimeoutSecs": 3}
    security = credentials.security
    if security is not None:
        found |= {
            "tlsProvider": "JDK",
            "tlsProviderFactoryClass": FACTORY,
            "tlsTrustStoreType": "PEM",
            "tlsTrustStore": security.ca_file,
            "tlsHostnameVerificationEnabled": True,
        }
        if security.certificate_file:
            found |= {
                "tlsClientAuthentication": True,
                "tlsKeyStoreType": "PEM",
                "tlsKeyStore": security.key_file,
                "tlsCertificatePath": security.certificate_file,
            }
    if credentials.section:
        found |= {
            "clientAuthProviderFactoryClass": "org.apache.bookkeeper.sasl.SASLClientProviderFactory",
            "saslJaasClientSectionName": credentials.section,
        }
    return found


class SecuredApacheBookie(ApacheBookie):
    """Apache's bookie of a kind. It reads renewed certificates every second."""

    def __init__(self, name: str, uri: str, folder: Path, kind: str, files: SecurityFiles) -> None:
        super().__init__(name, uri, folder)
        self._certificate, self._key = folder / "bookie.pem", folder / "bookie.key"
        self.java_options = (f"-Djava.security.auth.login.config={files.jaas}",)
        if kind in WITH_TLS:
            self.show(files.bookie)
            self.settings |= {
                "tlsProvider": "JDK",
                "tlsProviderFactoryClass": FACTORY,
                "tlsKeyStoreType": "PEM",
                "tlsKeyStore": self._key,
                "tlsCertificatePath": self._certificate,
                "tlsCertFilesRefreshDurationSeconds": 1,
            }
        if kind == CERTIFICATE:
            self.settings |= {
                "tlsClientAuthentication": True,
                "tlsTrustStoreType": "PEM",
                "tlsTrustStore": files.ours.ca_file,
                "bookieAuthProviderFactoryClass": "org.apache.bookkeeper.tls.BookieAuthZFactory",
                "authorizedRoles": ROLE,
            }
        if kind in WITH_LOGIN:
            self.settings["bookieAuthProviderFactoryClass"] = "org.apache.bookkeeper.sasl.SASLBookieAuthProviderFactory"

    def show(self, security: SecuritySettings) -> None:
        """Use this certificate for new connections, within seconds."""
        self._key.write_bytes(Path(security.key_file).read_bytes())
        self._certificate.write_bytes(Path(security.certificate_file).read_bytes())


@dataclass
class SecuredBookie:
    """A bookie that runs, and the address of its cluster's metadata."""

    uri: str
    refusals: list[Mapping[str, object]] = field(default_factory=list)
    """Facts of what our bookie refused."""
    apache: SecuredApacheBookie | None = None


class SecuredStand:
    """The bookies of one run, and clients of them. `close` ends all."""

    def __init__(self, stand: Stand, files: SecurityFiles) -> None:
        self.stand = stand
        self.files = files
        self._closing = AsyncExitStack()
        self._apache: dict[str, SecuredBookie] = {}
        self._ours: dict[str, SecuredBookie] = {}

    def apache(self, kind: str) -> SecuredBookie:
        """Apache's bookie of a kind. All kinds start at once, at the first use of any."""
        if not self._apache:
            for each in KINDS:
                uri = self._new_cluster(f"secured-apache-{each}")
                bookie = SecuredApacheBookie(f"secured-apache-{each}", uri, self.stand.new_folder(), each, self.files)
                self._closing.callback(bookie.kill)
                bookie.begin()
                self._apache[each] = SecuredBookie(uri, apache=bookie)
            for found in self._apache.values():
                assert found.apache is not None
                found.apache.wait_serving()
                self.stand.run(_registered(found.uri))
        return self._apache[kind]

    def ours(self, kind: str) -> SecuredBookie:
        """Our bookie of a kind, in this process."""
        if kind not in self._ours:
            self._ours[kind] = self.start_ours(f"secured-ours-{kind}", kind, self.files.bookie)
        return self._ours[kind]

    def start_ours(self, name: str, kind: str, security: SecuritySettings) -> SecuredBookie:
        """One more bookie of ours, which shows this certificate."""
        found = SecuredBookie(self._new_cluster(name))
        self.stand.run(self._start(name, kind, found, security))
        return found

    def close(self) -> None:
        self.stand.run(self._closing.aclose())

    def _new_cluster(self, root: str) -> str:
        self.stand.make_root(root)
        uri = self.stand.uri(root)

        async def initialise() -> None:
            await (await open_cluster(uri, real_host("initialising"), create=True)).aclose()

        self.stand.run(initialise())
        return uri

    async def _start(self, name: str, kind: str, found: SecuredBookie, security: SecuritySettings) -> None:
        def trace(event: str, /, **facts: object) -> None:
            if event in ("bookie.login_refused", "bookie.request_refused"):
                found.refusals.append(facts)

        host: Host = real_host(name, trace=trace)
        cluster = await open_cluster(found.uri, host)
        self._closing.push_async_callback(cluster.aclose)
        folder = self.stand.new_folder()
        settings = BookieSettings(
            bookie_id=name,
            journal_directories=(f"{folder}/journal",),
            ledger_directories=(f"{folder}/ledgers",),
            host="127.0.0.1",
            port=0,
            journal_preallocate_bytes=1 << 20,
            tls="required" if kind in WITH_TLS else "off",
            client_certificates="required" if kind == CERTIFICATE else "none",
            authentication={TLS: "none", CERTIFICATE: "certificate", SASL: "sasl", BOTH: "sasl"}[kind],
            users_file=self.files.users if kind in WITH_LOGIN else "",
            authorized_roles=(ROLE,) if kind == CERTIFICATE else (),
        )
        bookie = await Bookie.start(host, settings, cluster, security=security)
        self._closing.push_async_callback(bookie.stop)


async def _registered(uri: str) -> None:
    """Wait until there is a writable bookie."""
    host = real_host("waiting")
    cluster = await open_cluster(uri, host)
    try:
        async with asyncio.timeout(START_LIMIT_S):
            while not await cluster.bookies.writable():
                await sleep(host.clock, 0.05)
    finally:
        await cluster.aclose()
