"""One ZooKeeper with TLS, SASL and ACLs, used by Apache's shell and bookie and by ours with the same user."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.interop.bookies import APACHE_SETTINGS, ApacheBookie, BookieProcess, OurBookie
from tests.interop.tools import Shell
from tests.waiting import wait_until
from tests.zookeeper.secured import PASSWORD, USER, SecuredZooKeeper
from triplicate import connect
from triplicate.metadata import AclReport, NodeAcls

REGISTERED_LIMIT_S = 60.0


class OurSecuredBookie(OurBookie):
    """``triplicate bookie`` with the user and the certificate of a secured ZooKeeper."""

    def __init__(self, secured: SecuredZooKeeper, name: str, uri: str, folder: Path) -> None:
        super().__init__(name, uri, folder)
        metadata, security = secured.settings(), secured.client_security
        self._options = ["--metadata-tls", "true", "--metadata-user", metadata.user, "--metadata-password-file", metadata.password_file]
        self._options += ["--security-ca-file", security.ca_file, "--security-certificate-file", security.certificate_file]
        self._options += ["--security-key-file", security.key_file]

    def command(self) -> list[str]:
        return [*super().command(), *self._options]


def java_options(secured: SecuredZooKeeper, folder: Path) -> str:
    """The properties of a Java client of the secured ZooKeeper, for the variable that every Java reads."""
    security, key_store, jaas = secured.client_security, folder / "client.pem", folder / "client.jaas"
    key_store.write_bytes(Path(security.key_file).read_bytes() + Path(security.certificate_file).read_bytes())
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    login = "org.apache.zookeeper.server.auth.DigestLoginModule"
    jaas.write_text(f'Client {{\n  {login} required\n  username="{USER}"\n  password="{escaped}";\n}};\n')
    properties = {
        "zookeeper.client.secure": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.keyStore.location": key_store,
        "zookeeper.ssl.trustStore.location": security.ca_file,
        "java.security.auth.login.config": jaas,
        # With it, ZooKeeper's client refuses DIGEST-MD5.
        "zookeeper.fips-mode": "false",
    }
    return " ".join(f"-D{name}={value}" for name, value in properties.items())


def test_apaches_bookie_and_shell_share_a_secured_zookeeper_with_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secured = SecuredZooKeeper(tmp_path / "server")
    secured.server.start()
    bookies: list[BookieProcess] = []
    try:
        monkeypatch.setenv("JDK_JAVA_OPTIONS", java_options(secured, tmp_path))
        monkeypatch.setitem(APACHE_SETTINGS, "zkEnableSecurity", True)
        # Java's first handshake takes seconds on busy cores, and its first connection as long as this at most.
        monkeypatch.setitem(APACHE_SETTINGS, "zkTimeout", 30_000)
        uri = f"zk+hierarchical://{secured.server.address}/ledgers"
        shell = Shell(uri, tmp_path / "shell")
        shell("initnewcluster")
        bookies += [ApacheBookie("secured-apache", uri, tmp_path / "apache", named=True)]
        bookies += [OurSecuredBookie(secured, "secured-ours", uri, tmp_path / "ours")]
        for bookie in bookies:
            bookie.start()
        wait_until(lambda: len(asyncio.run(registered(secured, uri))) == 2, REGISTERED_LIMIT_S, "both bookies are registered")
        ledger_id, report = asyncio.run(used(secured, uri))
        assert str(ledger_id) in shell.found("ledgerId", "listledgers")
        listed = shell("listbookies", "-rw")
        assert all(bookie.bookie_id in listed for bookie in bookies)
        assert (report.open, report.refused) == (0, 0), report
    finally:
        for bookie in bookies:
            bookie.kill()
        secured.server.stop()


async def registered(secured: SecuredZooKeeper, uri: str) -> list[str]:
    async with connect(uri, security=secured.client_security, metadata=secured.settings()) as client:
        return list((await client.metadata.bookies.registered()).names)


async def used(secured: SecuredZooKeeper, uri: str) -> tuple[int, AclReport]:
    """Write a ledger on both bookies and read it; its id, and who may use the nodes."""
    async with connect(uri, security=secured.client_security, metadata=secured.settings()) as client:
        async with await client.create(ensemble_size=2, write_quorum=2, ack_quorum=2) as writer:
            await writer.append(b"shared")
        async with await client.open(writer.ledger_id) as reader:
            assert [bytes(entry.payload) for entry in await reader.read(0, 0)] == [b"shared"]
        acls = await NodeAcls.of(client.metadata, client.host)
        assert acls is not None
        return writer.ledger_id, await acls.check()
