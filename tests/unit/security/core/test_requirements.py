"""The gaps of each kind of process, as a table of every setting that opens a door or a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from triplicate.config import (
    AutorecoverySettings,
    BookieSettings,
    ClientSettings,
    MetadataSettings,
    NodeSettings,
    ProcessSettings,
    RespSettings,
    SecuritySettings,
)
from triplicate.errors import ConfigError
from triplicate.security import (
    gaps_of_autorecovery,
    gaps_of_bookie,
    gaps_of_client,
    gaps_of_metadata_client,
    gaps_of_node,
    refuse_gaps,
    resp_gaps,
)

SECURE = SecuritySettings(required=True, ca_file="ca.pem", certificate_file="one.pem", key_file="one.key")
ZOOKEEPER = MetadataSettings(uri="zk://host:2182/ledgers", tls=True, user="cluster", password_file="password")


@dataclass(frozen=True)
class Settings:
    """The settings of one process, by section; secure where nothing is said."""

    security: SecuritySettings = field(default_factory=lambda: SECURE)
    bookie: BookieSettings = field(default_factory=lambda: BookieSettings(tls="required", authentication="sasl", users_file="users"))
    node: NodeSettings = field(default_factory=lambda: NodeSettings(tls="required", authentication="scram"))
    autorecovery: AutorecoverySettings = field(default_factory=lambda: AutorecoverySettings(in_bookie=True))
    client: ClientSettings = field(default_factory=lambda: ClientSettings(bookie_tls="required", user="worker", password_file="password"))
    metadata: MetadataSettings = field(default_factory=lambda: ZOOKEEPER)
    process: ProcessSettings = field(default_factory=ProcessSettings)

    def but(self, path: str, value: object) -> Settings:
        """The same with one setting changed."""
        section, _, name = path.partition(".")
        changes: dict[str, Any] = {section: replace(getattr(self, section), **{name: value})}
        return replace(self, **changes)


def of_bookie(one: Settings) -> Iterator[str]:
    return gaps_of_bookie(one.bookie, one.autorecovery, one.metadata, one.client, one.process, one.security)


def of_node(one: Settings) -> Iterator[str]:
    return gaps_of_node(one.node, one.metadata, one.client, one.process, one.security)


def of_autorecovery(one: Settings) -> Iterator[str]:
    return gaps_of_autorecovery(one.metadata, one.client, one.process, one.security)


def of_client(one: Settings) -> Iterator[str]:
    return gaps_of_client(one.metadata, one.client, one.security)


def of_metadata_client(one: Settings) -> Iterator[str]:
    return gaps_of_metadata_client(one.metadata, one.security)


KINDS: dict[str, Callable[[Settings], Iterator[str]]] = {
    "bookie": of_bookie,
    "node": of_node,
    "autorecovery": of_autorecovery,
    "client": of_client,
    "metadata client": of_metadata_client,
}
SERVERS = ("bookie", "node", "autorecovery")
CLIENTS = (*SERVERS, "client")
ALL = tuple(KINDS)
OPEN: list[tuple[str, object, tuple[str, ...]]] = [
    ("security.ca_file", "", ALL),
    ("security.verify_host", False, ALL),
    ("security.certificate_file", "", ("bookie", "node")),
    ("security.key_file", "", ("bookie", "node")),
    ("bookie.tls", "off", ("bookie",)),
    ("bookie.tls", "offered", ("bookie",)),
    ("bookie.authentication", "none", ("bookie",)),
    ("bookie.users_file", "", ("bookie",)),
    ("node.tls", "off", ("node",)),
    ("node.tls", "offered", ("node",)),
    ("node.authentication", "trust", ("node",)),
    ("client.bookie_tls", "off", CLIENTS),
    ("client.password_file", "", CLIENTS),
    ("metadata.tls", False, ALL),
    ("metadata.user", "", ALL),
    ("metadata.password_file", "", ALL),
    ("metadata.acl", "open", ALL),
    ("process.metrics_tls", True, ()),
    ("process.metrics_host", "0.0.0.0", SERVERS),
]
"""A setting, the value that opens something, and the kinds of processes in which it does."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_secure_process_lacks_nothing(kind: str) -> None:
    assert list(KINDS[kind](Settings())) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("path", "value", "kinds"), OPEN, ids=[f"{path}={value}" for path, value, _ in OPEN])
def test_each_setting_that_opens_a_door_is_named_in_the_processes_that_have_it(
    kind: str, path: str, value: object, kinds: tuple[str, ...]
) -> None:
    gaps = list(KINDS[kind](Settings().but(path, value)))
    if kind not in kinds:
        assert gaps == []
        return
    named = "process.metrics_tls" if path == "process.metrics_host" else path
    assert any(named in gap for gap in gaps)


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_with_defaults_gets_one_error_with_everything(kind: str) -> None:
    bare = Settings(
        SecuritySettings(required=True),
        BookieSettings(),
        NodeSettings(),
        AutorecoverySettings(in_bookie=True),
        ClientSettings(),
        MetadataSettings(uri="zk+hierarchical://host:2181/ledgers"),
        ProcessSettings(metrics_host="0.0.0.0"),
    )
    # Closed by default, or named together with another setting.
    unnamed = ("security.verify_host", "bookie.users_file", "metadata.acl", "metadata.password_file", "client.password_file")
    expected = {path for path, _, kinds in OPEN if kind in kinds and path not in unnamed}
    if "process.metrics_host" in expected:
        expected = expected - {"process.metrics_host"} | {"process.metrics_tls", "process.metrics_token_file"}
    if kind in CLIENTS:
        expected.add("client.user")
    with pytest.raises(ConfigError) as refused:
        refuse_gaps(bare.security, KINDS[kind](bare))
    assert {gap.split()[0] for gap in KINDS[kind](bare)} == expected
    assert all(f"{name} " in str(refused.value) for name in expected)


def test_nothing_is_refused_where_security_is_not_required() -> None:
    refuse_gaps(SecuritySettings(), of_bookie(Settings(SecuritySettings(), BookieSettings())))


def test_a_bookie_with_certificates_in_place_of_users_is_secure() -> None:
    one = Settings().but("bookie.authentication", "certificate").but("bookie.users_file", "")
    assert [gap.split()[0] for gap in of_bookie(one)] == ["bookie.client_certificates"]
    assert list(of_bookie(one.but("bookie.client_certificates", "required"))) == []


def test_a_client_is_known_by_its_certificate_or_its_user() -> None:
    one = Settings().but("client.user", "")
    assert list(of_client(one)) == []
    assert ["client.user" in gap for gap in of_client(one.but("security.certificate_file", ""))] == [True]


def test_a_program_that_authenticates_by_its_own_code_needs_no_user() -> None:
    one = Settings(security=replace(SECURE, certificate_file="", key_file="")).but("client.user", "")
    assert [gap.split()[0] for gap in of_client(one)] == ["client.user"]
    assert list(gaps_of_client(one.metadata, one.client, one.security, has_authenticator=True)) == []
    open_one = one.but("client.bookie_tls", "off")
    gaps = gaps_of_client(open_one.metadata, open_one.client, open_one.security, has_authenticator=True)
    assert [gap.split()[0] for gap in gaps] == ["client.bookie_tls"]


def test_an_embedded_store_and_a_bookie_without_auto_recovery_need_less() -> None:
    embedded = Settings(metadata=MetadataSettings(uri="sqlite:///somewhere/metadata.db"))
    for kind in KINDS.values():
        assert list(kind(embedded)) == []
    alone = replace(embedded, autorecovery=AutorecoverySettings(in_bookie=False), client=ClientSettings())
    assert list(of_bookie(alone)) == []
    assert list(of_node(alone)) != []


def test_key_value_stores_are_served_by_a_port_with_users_only() -> None:
    assert list(resp_gaps(RespSettings())) == []
    assert list(resp_gaps(RespSettings(serve=True, users_file="users.toml"))) == []
    assert [gap.split()[0] for gap in resp_gaps(RespSettings(serve=True))] == ["resp.users_file"]
