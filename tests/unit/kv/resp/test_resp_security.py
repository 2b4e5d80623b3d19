"""A port whose demands cannot be kept, or could be evaded, is not opened."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.certificates import CertificateFolder
from tests.unit.kv.resp.login_rig import some_users
from triplicate.config import NodeSettings, RespSettings
from triplicate.errors import ConfigError
from triplicate.kv.resp.resp_security import RespSecurity
from triplicate.runtime import real_host
from triplicate.security import ClientCertificates, TlsIdentity, change_users


@pytest.mark.parametrize(
    ("node", "resp", "has_identity", "message"),
    [
        ({"authentication": "scram"}, {}, True, "resp.users_file is not set, and node.authentication is scram"),
        ({}, {"users_file": "users"}, True, "resp.users_file is set, but node.authentication is trust"),
        ({"authentication": "scram"}, {"users_file": "users", "host": "0.0.0.0"}, True, "passwords in clear"),
        ({"authentication": "scram", "host": "10.0.0.1"}, {"users_file": "users"}, True, "passwords in clear"),
        ({"tls": "required"}, {}, False, "security.ca_file"),
        ({"client_certificates": "required"}, {}, True, "set node.tls"),
        ({"tls": "required", "client_certificates": "role"}, {}, True, "node.authentication = scram"),
        ({"tls": "required", "authentication": "scram"}, {"users_file": "missing"}, True, "resp.users_file"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(
    tmp_path: Path, node: dict[str, str], resp: dict[str, str], has_identity: bool, message: str
) -> None:
    change_users(str(tmp_path / "users"), "resp.users_file", some_users)
    if "users_file" in resp:
        resp = {**resp, "users_file": str(tmp_path / resp["users_file"])}
    settings = replace(NodeSettings(), **node), RespSettings(**resp)  # type: ignore[arg-type]

    async def body() -> None:
        host = real_host("test")
        identity = TlsIdentity(CertificateFolder(tmp_path / "c").settings("node"), host.clock, host.trace) if has_identity else None
        with pytest.raises(ConfigError, match=message):
            RespSecurity.of_settings(host, *settings, identity)

    asyncio.run(body())


def test_a_port_has_tls_where_the_node_has_it(tmp_path: Path) -> None:
    async def body() -> None:
        host = real_host("test")
        identity = TlsIdentity(CertificateFolder(tmp_path / "c").settings("node"), host.clock, host.trace)
        found = [
            RespSecurity.of_settings(host, replace(NodeSettings(), tls=tls, client_certificates=certificates), RespSettings(), identity)
            for tls, certificates in (("off", "none"), ("offered", "requested"), ("required", "required"))
        ]
        assert [each.identity is identity for each in found] == [False, True, True]
        assert [each.certificates for each in found] == list(ClientCertificates)

    asyncio.run(body())
