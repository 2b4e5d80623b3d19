"""One client for each process and cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from triplicate.config import ClientSettings, MetadataSettings, SecuritySettings
from triplicate.errors import SessionExpired
from triplicate.spark.cluster import access, connections


class FakeClient:
    def __init__(self, uri: str, settings: ClientSettings, security: SecuritySettings, metadata: MetadataSettings) -> None:
        self.uri = uri
        self.settings = settings
        self.security = security
        self.metadata = metadata
        self.process_id = os.getpid()
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeClient]]:
    made: list[FakeClient] = []

    def connect(uri: str, *, settings: ClientSettings, security: SecuritySettings, metadata: MetadataSettings) -> FakeClient:
        made.append(FakeClient(uri, settings, security, metadata))
        return made[-1]

    monkeypatch.setattr(connections, "connect", connect)
    yield made
    connections.close_all()


def test_tasks_of_one_process_share_a_client(opened: list[FakeClient]) -> None:
    first = connections.client("a")
    assert connections.client("a") is first
    assert connections.client("b") is not first
    assert [client.uri for client in opened] == ["a", "b"]


def test_a_forked_process_opens_its_own_client_and_leaves_the_parents_alone(opened: list[FakeClient]) -> None:
    parents = connections.client("a")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        own = connections.client("a")
        connections.close_all()
        is_own = own is not parents and own.process_id == os.getpid()  # type: ignore[attr-defined]
        os.write(write, b"own" if is_own and not parents.closed else b"parents")  # type: ignore[attr-defined]
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"own"
    os.close(read)
    os.close(write)
    assert connections.client("a") is parents


def test_a_client_whose_session_is_over_is_not_used_again(opened: list[FakeClient]) -> None:
    with pytest.raises(SessionExpired), access._connected("a"):
        raise SessionExpired("over")
    assert opened[0].closed
    connections.client("a")
    assert len(opened) == 2


def test_the_client_has_the_settings_of_the_process(opened: list[FakeClient], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPLICATE_SECURITY_CA_FILE", "/etc/triplicate/ca.pem")
    monkeypatch.setenv("TRIPLICATE_CLIENT_BOOKIE_TLS", "required")
    connections.client("a")
    assert opened[0].security.ca_file == "/etc/triplicate/ca.pem"
    assert opened[0].settings.bookie_tls == "required"


def test_queries_with_other_settings_have_another_client(opened: list[FakeClient], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIPLICATE_CLIENT_READ_TIMEOUT_S", "7")
    monkeypatch.setenv("TRIPLICATE_CLIENT_HEDGE_READ_S", "2")
    own = (("read_timeout_s", "20"),)
    connections.client("a", own)
    connections.client("a")
    assert connections.client("a", own) is not connections.client("a")
    assert [(made.settings.read_timeout_s, made.settings.hedge_read_s) for made in opened] == [(20, 2), (7, 2)]
    with pytest.raises(SessionExpired), access._connected("a", own):
        raise SessionExpired("over")
    assert [made.closed for made in opened] == [True, False]
