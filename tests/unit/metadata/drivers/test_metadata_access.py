"""Settings of the access to a metadata store that cannot work are refused by name, before anything is connected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import CertificateFolder
from tests.unit.metadata.stores import run
from triplicate.config import MetadataSettings, SecuritySettings
from triplicate.errors import ConfigError
from triplicate.metadata import MetadataAccess
from triplicate.runtime import real_host


def password_file(folder: Path, content: str, mode: int = 0o600) -> str:
    path = folder / "password"
    path.touch(mode=mode)
    path.write_text(content)
    return str(path)


def access_of(settings: MetadataSettings, security: SecuritySettings | None = None) -> MetadataAccess:
    async def body() -> MetadataAccess:
        return MetadataAccess.of(settings, security or SecuritySettings(), real_host("test"))

    return run(body())


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"tls": True}, "metadata.tls is on and security.ca_file is not set"),
        ({"user": "triplicate"}, "metadata.user and metadata.password_file belong together"),
        ({"password_file": "/some"}, "metadata.user and metadata.password_file belong together"),
        ({"user": "a/b", "password_file": "/some"}, "metadata.user: 'a/b' is no user of ZooKeeper"),
        ({"user": "a:b", "password_file": "/some"}, "metadata.user: 'a:b' is no user of ZooKeeper"),
        ({"user": "a", "password_file": "/some", "mechanism": "digest"}, "metadata.mechanism digest sends the password itself"),
        ({"user": "a", "password_file": "/nowhere/password"}, "metadata.password_file: /nowhere/password cannot be read"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        access_of(MetadataSettings(**settings))


@pytest.mark.parametrize("content", ["one\ntwo\nthree", "one\n\ntwo", "be\x07ll", "\none"])
def test_a_file_that_holds_no_password_is_refused_without_its_content(tmp_path: Path, content: str) -> None:
    settings = MetadataSettings(user="triplicate", password_file=password_file(tmp_path, content))
    with pytest.raises(ConfigError, match="holds one password, or one in each of two lines") as caught:
        access_of(settings)
    assert "one" not in str(caught.value).replace("holds one", "").replace("or one in", "")


def test_a_password_that_others_may_read_is_refused(tmp_path: Path) -> None:
    path = password_file(tmp_path, "secret")
    Path(path).chmod(0o640)
    with pytest.raises(ConfigError, match="others than its owner may use"):
        access_of(MetadataSettings(user="triplicate", password_file=path))


def test_the_passwords_are_read_anew_each_time(tmp_path: Path) -> None:
    path = password_file(tmp_path, "first\n")
    access = access_of(MetadataSettings(user="triplicate", password_file=path))
    assert access.passwords() == ("first",)
    Path(path).write_text("second\nfirst\n")
    assert access.passwords() == ("second", "first")
    assert "first" not in repr(access)


def test_only_a_user_closes_nodes(tmp_path: Path) -> None:
    settings = MetadataSettings(user="triplicate", password_file=password_file(tmp_path, "secret"))
    assert access_of(settings).closes_nodes
    assert not access_of(replace(settings, acl="open")).closes_nodes
    assert not access_of(MetadataSettings()).closes_nodes


def test_an_identity_is_read_only_for_connections_with_tls(tmp_path: Path) -> None:
    security = CertificateFolder(tmp_path).settings("client")
    assert access_of(MetadataSettings(), security).tls is None
    assert access_of(MetadataSettings(tls=True), security).tls is not None
