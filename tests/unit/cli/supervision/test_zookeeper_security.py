"""The files of a secured ZooKeeper: nothing of a secret outside of files that only their owner may read, and no door left open.

Source: ZooKeeper Administrator's Guide (encryption, authentication and authorization options).
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.certificates import CertificateFolder
from triplicate.cli.supervision.zookeeper_process import read_configuration, secure_configuration
from triplicate.cli.supervision.zookeeper_security import JAAS_SETTING, ZooKeeperSecurity, probe_context, write_secure_files
from triplicate.config import SecuritySettings
from triplicate.errors import ConfigError

SECRET = 'a "quoted" \\ secret'


def security_of(folder: Path) -> ZooKeeperSecurity:
    return ZooKeeperSecurity(CertificateFolder(folder).settings("server"), {"triplicate": SECRET})


def test_every_file_with_a_secret_is_private_and_the_configuration_has_none(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        files = write_secure_files(tmp_path / "zk", security_of(tmp_path / "ca"))
        # Written again, as with a renewed certificate.
        write_secure_files(tmp_path / "zk", security_of(tmp_path / "ca"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "zk").stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "zk").iterdir()} == {
        "keystore.pem": 0o600,
        "jaas.conf": 0o600,
    }
    text = secure_configuration(tmp_path / "zk" / "data", 2281, files)
    assert SECRET not in text
    assert "PRIVATE" not in text


def test_the_server_serves_tls_alone_and_only_authenticated_sessions(tmp_path: Path) -> None:
    files = write_secure_files(tmp_path / "zk", security_of(tmp_path / "ca"))
    path = tmp_path / "zoo.cfg"
    path.write_text(secure_configuration(tmp_path / "data", 2281, files))
    settings = read_configuration(path)
    assert "clientPort" not in settings
    expected = {
        "secureClientPort": "2281",
        "secureClientPortAddress": "127.0.0.1",
        "ssl.clientAuth": "need",
        "enforce.auth.enabled": "true",
        "enforce.auth.schemes": "sasl",
        "sessionRequireClientSASLAuth": "true",
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "srvr",
    }
    assert {name: settings[name] for name in expected} == expected
    assert Path(settings[JAAS_SETTING]).read_text() == (
        'Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n  user_triplicate="a \\"quoted\\" \\\\ secret";\n};\n'
    )
    assert probe_context(settings) is not None


def test_a_port_in_the_clear_beside_the_one_for_tls_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "zoo.cfg"
    path.write_text(secure_configuration(tmp_path, 2281, write_secure_files(tmp_path, security_of(tmp_path / "ca")), clientPort=2181))
    with pytest.raises(ConfigError, match="a clientPort beside secureClientPort serves everyone in the clear"):
        read_configuration(path)


@pytest.mark.parametrize(
    ("user", "password", "expected"),
    [
        ('a"; x', "secret", "cannot be a user of ZooKeeper"),
        ("triplicate", "", "is empty or has characters"),
        ("triplicate", "se\ncret", "is empty or has characters"),
    ],
)
def test_a_user_who_would_change_the_file_is_refused(tmp_path: Path, user: str, password: str, expected: str) -> None:
    identity = CertificateFolder(tmp_path).settings("server")
    with pytest.raises(ConfigError, match=expected) as caught:
        ZooKeeperSecurity(identity, {user: password})
    assert "cret" not in str(caught.value)


def test_a_server_without_what_it_needs_is_refused(tmp_path: Path) -> None:
    identity = CertificateFolder(tmp_path).settings("server")
    with pytest.raises(ConfigError, match=r"security\.ca_file, security\.certificate_file and security\.key_file"):
        ZooKeeperSecurity(SecuritySettings(ca_file=identity.ca_file), {"triplicate": "secret"})
    with pytest.raises(ConfigError, match="needs a user with a password"):
        ZooKeeperSecurity(identity, {})
    Path(identity.key_file).chmod(0o644)
    with pytest.raises(ConfigError, match=r"security\.key_file: others than its owner may use"):
        write_secure_files(tmp_path / "zk", ZooKeeperSecurity(identity, {"triplicate": "secret"}))


def test_a_key_store_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    security = security_of(tmp_path / "ca")
    path = tmp_path / "zoo.cfg"
    path.write_text(secure_configuration(tmp_path, 2281, write_secure_files(tmp_path, security)))
    (tmp_path / "keystore.pem").write_text("nothing")
    with pytest.raises(ConfigError, match="the key store or the trust store of ZooKeeper cannot be used"):
        probe_context(read_configuration(path))
    assert "secret" not in repr(security)
