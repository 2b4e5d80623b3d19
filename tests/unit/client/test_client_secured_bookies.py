"""A client on real bookies that require TLS and a login: each mechanism, over both wires; what is wrong is refused with its reason."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.certificates import CertificateFolder
from tests.unit.client.cluster import run
from tests.unit.client.real_cluster import real_cluster
from triplicate.config import ClientSettings
from triplicate.errors import NotEnoughBookies, Unauthorized
from triplicate.security import MECHANISMS, BookieRole, new_user, write_users

USER, PASSWORD = "writer", "correct, horse = battery"
WIRES = ("v2", "v3")
IN_CLEAR = ("SCRAM-SHA-256", "DIGEST-MD5")


def password_file(folder: Path, password: str) -> str:
    path = folder / f"password-{len(password)}"
    path.touch(mode=0o600)
    path.write_text(password + "\n")
    return str(path)


def users_file(folder: Path, *roles: BookieRole) -> str:
    path = str(folder / "users.toml")
    write_users(path, {USER: new_user(USER, PASSWORD, roles or (BookieRole.READ, BookieRole.WRITE), os.urandom(16))})
    return path


def login(folder: Path, mechanism: str, wire: str = "v2", password: str = PASSWORD) -> ClientSettings:
    file = password_file(folder, password)
    return ClientSettings(wire=wire, user=USER, password_file=file, mechanism=mechanism, add_timeout_s=10.0, connect_timeout_s=10.0)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_writes_and_reads_over_tls(tmp_path: Path, mechanism: str, wire: str) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        settings = replace(login(tmp_path, mechanism, wire), bookie_tls="required")
        required = {"tls": "required", "authentication": "sasl", "users_file": users_file(tmp_path)}
        async with (
            real_cluster(security=folder.settings("bookie"), **required) as cluster,
            cluster.client(settings, folder.client_settings()) as client,
        ):
            async with await client.create() as writer:
                assert await writer.append_many([b"%d" % number for number in range(100)]) == range(100)
                await writer.force()
            async with await client.open(writer.ledger_id) as reader:
                assert [entry.payload for entry in await reader.read(0, 99)] == [b"%d" % number for number in range(100)]

    run(main())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mechanism", IN_CLEAR)
def test_a_user_writes_without_tls_where_the_password_is_not_shown(tmp_path: Path, mechanism: str, wire: str) -> None:
    async def main() -> None:
        async with (
            real_cluster(authentication="sasl", users_file=users_file(tmp_path)) as cluster,
            cluster.client(login(tmp_path, mechanism, wire)) as client,
            await client.create() as writer,
        ):
            assert await writer.append(b"x") == 0

    run(main())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("mechanism", IN_CLEAR)
def test_a_wrong_password_is_refused_and_nothing_is_written(tmp_path: Path, mechanism: str, wire: str) -> None:
    async def main() -> None:
        wrong = replace(login(tmp_path, mechanism, wire, "wrong"), add_timeout_s=2.0)  # The writer asks its bookies again for that time.
        async with real_cluster(authentication="sasl", users_file=users_file(tmp_path)) as cluster:
            async with cluster.client(wrong) as client:
                writer = await client.create()
                with pytest.raises(NotEnoughBookies, match=r"plugin '(triplicate-)?sasl'") as caught:
                    await writer.append(b"x")
                assert "wrong" not in str(caught.value).replace("wrong user", "")
            async with cluster.client(login(tmp_path, mechanism, wire)) as client:
                assert (await client.recover(writer.ledger_id)).last_add_confirmed == -1

    run(main())


@pytest.mark.parametrize("wire", WIRES)
def test_a_client_without_a_login_is_refused_with_the_setting(tmp_path: Path, wire: str) -> None:
    async def main() -> None:
        async with (
            real_cluster(authentication="sasl", users_file=users_file(tmp_path)) as cluster,
            cluster.client(ClientSettings(wire=wire)) as client,
        ):
            writer = await client.create()
            with pytest.raises((Unauthorized, NotEnoughBookies), match=r"client\.user"):
                await writer.append(b"x")

    run(main())


def test_a_user_who_may_only_read_cannot_write(tmp_path: Path) -> None:
    async def main() -> None:
        users = users_file(tmp_path, BookieRole.READ)
        async with (
            real_cluster(authentication="sasl", users_file=users) as cluster,
            cluster.client(login(tmp_path, "SCRAM-SHA-256")) as client,
        ):
            writer = await client.create()
            with pytest.raises(Unauthorized, match="role of its user"):
                await writer.append(b"x")

    run(main())
