"""A ZooKeeper with TLS, SASL and ACLs: sessions that are let in, refusals with their reason, and the owner of each node.

Source: BookKeeper `zkEnableSecurity`; ZooKeeper Administrator's Guide (authentication and authorization).
"""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import DAY_S, CertificateFolder
from tests.unit.metadata.stores import run
from tests.zookeeper.secured import OTHER_PASSWORD, OTHER_USER, PASSWORD, USER, SecuredZooKeeper
from triplicate.errors import AccessRefused, ConnectionLost, SessionExpired, TriplicateError
from triplicate.metadata import CreateNode, DeleteNode, MetadataAccess, NodeAcls, RenewingTree, copy_metadata, open_cluster
from triplicate.metadata.drivers import renewing_tree
from triplicate.metadata.drivers.zookeeper_tree import ZooKeeperTree
from triplicate.runtime import real_host

LIMIT_S = 15.0
_numbers = itertools.count()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    secured = SecuredZooKeeper(tmp_path_factory.mktemp("secured"))
    secured.server.start()
    yield secured
    secured.server.stop()


@pytest.fixture(scope="module")
def digest_too(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredZooKeeper]:
    """A server that also takes users of the scheme `digest`, and whose certificates may be changed."""
    settings = {"enforce.auth.schemes": "sasl,digest", "sessionRequireClientSASLAuth": "false"}
    secured = SecuredZooKeeper(tmp_path_factory.mktemp("digest"), **settings)
    secured.server.start()
    yield secured
    secured.server.stop()


async def opened(zookeeper: SecuredZooKeeper, access: MetadataAccess | None, limit_s: float = LIMIT_S) -> ZooKeeperTree:
    return await ZooKeeperTree.open(zookeeper.server.address, real_host("test"), limit_s=limit_s, access=access)


async def acl_of(tree: ZooKeeperTree, path: str) -> list[tuple[str, str, int]]:
    acl, _ = await tree._session.submit(lambda client: client.get_acls_async(path))
    return [(entry.id.scheme, entry.id.id, entry.perms) for entry in acl]


def fresh_path() -> str:
    return f"/test-{next(_numbers)}"


def refusal(zookeeper: SecuredZooKeeper, access: MetadataAccess | None, limit_s: float = LIMIT_S) -> str:
    """The one line with which opening a session, and one operation on it, fails."""

    async def attempt() -> None:
        tree = await opened(zookeeper, access, limit_s)
        try:
            await tree.create("/refused")
        finally:
            await tree.close()

    async def body() -> str:
        with pytest.raises(TriplicateError) as caught:
            await attempt()
        return str(caught.value)

    text = run(body(), 2 * LIMIT_S)
    assert "\n" not in text
    assert PASSWORD not in text
    return text


def nothing_was_written(zookeeper: SecuredZooKeeper) -> bool:
    async def body() -> bool:
        tree = await opened(zookeeper, zookeeper.access())
        try:
            return await tree.exists("/refused") is None
        finally:
            await tree.close()

    return run(body())


# ACLs.


def test_every_kind_of_creation_makes_a_node_of_the_user_alone(zookeeper: SecuredZooKeeper) -> None:
    async def body() -> None:
        tree, top = await opened(zookeeper, zookeeper.access()), fresh_path()
        try:
            made = [
                await tree.create(f"{top}/parent/child", b"data", parents=True),
                await tree.create(f"{top}/ephemeral", ephemeral=True),
                await tree.create(f"{top}/sequential-", sequential=True),
                await tree.create(f"{top}/both-", ephemeral=True, sequential=True),
            ]
            await tree.multi([CreateNode(f"{top}/one"), CreateNode(f"{top}/two", ephemeral=True), DeleteNode(f"{top}/parent/child")])
            for path in [top, f"{top}/parent", *made[1:], f"{top}/one", f"{top}/two"]:
                assert await acl_of(tree, path) == [("sasl", USER, 31)], path
        finally:
            await tree.close()

    run(body())


def test_a_process_may_be_told_to_create_open_nodes(zookeeper: SecuredZooKeeper) -> None:
    async def body() -> None:
        tree = await opened(zookeeper, zookeeper.access(acl="open"))
        try:
            path = await tree.create(fresh_path())
            assert await acl_of(tree, path) == [("world", "anyone", 31)]
        finally:
            await tree.close()

    run(body())


def test_another_user_can_neither_read_nor_change_nor_delete_the_nodes(zookeeper: SecuredZooKeeper) -> None:
    async def body() -> None:
        tree = await opened(zookeeper, zookeeper.access())
        other = await opened(zookeeper, zookeeper.access(OTHER_USER, OTHER_PASSWORD))
        try:
            top = await tree.create(fresh_path(), b"secret")
            await tree.create(f"{top}/child", b"secret")
            for attempt in (
                other.get(top),
                other.children(top),
                other.set(top, b"changed"),
                other.create(f"{top}/new"),
                other.delete(f"{top}/child"),
                other.multi([CreateNode(f"{top}/new")]),
            ):
                with pytest.raises(AccessRefused, match=rf"does not allow this to user {OTHER_USER} \(metadata\.user"):
                    await attempt
            assert (await tree.get(top))[0] == b"secret"
            assert (await tree.children(top))[0] == ["child"]
        finally:
            await other.close()
            await tree.close()

    run(body())


def test_nodes_are_closed_and_the_user_is_known_after_a_broken_connection(zookeeper: SecuredZooKeeper) -> None:
    async def body() -> None:
        tree, top = await opened(zookeeper, zookeeper.access()), fresh_path()
        try:
            await tree.create(top)
            before = tree.session_id
            for _ in range(2):
                _break_connection(tree)
                await _patiently_exists(tree, top)
            await tree.create(f"{top}/after", ephemeral=True)
            await tree.multi([CreateNode(f"{top}/together")])
            assert tree.session_id == before
            for path in (f"{top}/after", f"{top}/together"):
                assert await acl_of(tree, path) == [("sasl", USER, 31)]
        finally:
            await tree.close()

    run(body())


def _break_connection(tree: ZooKeeperTree) -> None:
    """As a server does that ends: the client finds the end of the stream."""
    tree._session._client._connection._socket.shutdown(2)


async def _patiently_exists(tree: ZooKeeperTree, path: str) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                assert await tree.exists(path) is not None
            except ConnectionLost:
                continue
            return


def test_the_users_of_the_scheme_digest_have_nodes_of_their_own(digest_too: SecuredZooKeeper) -> None:
    async def body() -> None:
        tree = await opened(digest_too, digest_too.access(password="secret", mechanism="digest"))
        other = await opened(digest_too, digest_too.access(password="guessed", mechanism="digest"))
        both = await opened(digest_too, digest_too.access(password="next\nsecret", mechanism="digest"))
        try:
            top = await tree.create(fresh_path())
            # printf triplicate:secret | openssl dgst -binary -sha1 | base64
            assert await acl_of(tree, top) == [("digest", f"{USER}:vgxsS0WhJcK1Kj1Q93NzGDETgJ4=", 31)]
            with pytest.raises(AccessRefused, match="does not allow this to user triplicate"):
                await other.get(top)
            # During a rotation, the second password opens what was created with it; new nodes belong to the first.
            await both.get(top)
            new = await both.create(f"{top}/new")
            with pytest.raises(AccessRefused):
                await tree.get(new)
        finally:
            for each in (tree, other, both):
                await each.close()

    run(body())


# Rotation.


def test_a_second_password_is_tried_when_the_first_is_refused(zookeeper: SecuredZooKeeper) -> None:
    async def body() -> None:
        tree = await opened(zookeeper, zookeeper.access(USER, f"next\n{PASSWORD}"))
        path = await tree.create(fresh_path())
        assert await acl_of(tree, path) == [("sasl", USER, 31)]
        await tree.close()

    run(body())


def test_each_connection_reads_the_password_and_the_certificate_anew(zookeeper: SecuredZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        access = zookeeper.access()
        assert access.tls is not None
        contexts: list[ssl.SSLContext] = []
        give = access.tls.client_context

        def counted() -> ssl.SSLContext:
            contexts.append(give())
            return contexts[-1]

        monkeypatch.setattr(access.tls, "client_context", counted)
        tree = await opened(zookeeper, access)
        try:
            top = await tree.create(fresh_path())
            # The user's password is another one now, which the server does not know yet.
            Path(access.settings.password_file).write_text("rotated")
            _break_connection(tree)
            with pytest.raises(SessionExpired, match=f"is over: ZooKeeper refuses user {USER} "):
                await _patiently_exists(tree, top)
            assert len(contexts) == 2
        finally:
            await tree.close()

    run(body())


def test_a_cluster_that_was_open_names_the_refusal_and_comes_back_with_the_right_password(
    zookeeper: SecuredZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(renewing_tree, "REFUSED_PAUSE_S", 0.05)
    told: list[str] = []

    async def body() -> None:
        access, uri = zookeeper.access(), f"zk://{zookeeper.server.address}{fresh_path()}/ledgers"
        host = real_host("test", trace=lambda kind, /, **facts: told.append(kind))
        async with await open_cluster(uri, host, create=True, access=access) as cluster:
            tree, password = cluster.tree, Path(access.settings.password_file)
            assert isinstance(tree, RenewingTree)
            inner = await tree.current()
            assert isinstance(inner, ZooKeeperTree)
            password.write_text("rotated")
            _break_connection(inner)
            with pytest.raises(ConnectionLost, match=f"no metadata session: .* refuses user {USER} "):
                await _refused_at_last(tree)
            password.write_text(PASSWORD)
            async with asyncio.timeout(LIMIT_S):
                while not await _exists(tree, cluster.root):
                    pass

    run(body(), 2 * LIMIT_S)
    assert "metadata.access_refused" in told


async def _refused_at_last(tree: RenewingTree) -> None:
    async with asyncio.timeout(LIMIT_S):
        while True:
            try:
                await tree.exists("/")
            except ConnectionLost as error:
                if "no metadata session" in str(error):
                    raise


async def _exists(tree: RenewingTree, path: str) -> bool:
    try:
        return await tree.exists(path) is not None
    except ConnectionLost:
        await asyncio.sleep(0.05)
        return False


# Existing nodes.


def test_a_cluster_with_open_nodes_is_found_and_closed(zookeeper: SecuredZooKeeper) -> None:
    async def body() -> None:
        uri, host = f"zk://{zookeeper.server.address}{fresh_path()}/ledgers", real_host("test")
        async with await open_cluster(uri, host, create=True, access=zookeeper.access(acl="open")) as careless:
            await careless.tree.create(f"{careless.root}/available/somebody", ephemeral=True)
            assert await NodeAcls.of(careless, host) is None
            async with await open_cluster(uri, host, access=zookeeper.access()) as cluster:
                acls = await NodeAcls.of(cluster, host)
                assert acls is not None
                found = await acls.sample()
                assert (found.open, found.example_open) == (6, careless.root)
                assert (await acls.close_all()).closed == 6
                after = await acls.check()
                assert (after.open, after.other, after.refused) == (0, 0, 0)
        async with await open_cluster(uri, host, access=zookeeper.access()) as cluster:
            with pytest.raises(AccessRefused):
                await open_cluster(uri, host, access=zookeeper.access(OTHER_USER, OTHER_PASSWORD))

    run(body())


def test_a_copied_cluster_is_closed_in_the_target(zookeeper: SecuredZooKeeper, tmp_path: Path) -> None:
    async def body() -> None:
        host, root = real_host("test"), f"{fresh_path()}/ledgers"
        async with await open_cluster(f"sqlite://{tmp_path}/metadata.db", host, create=True) as source:
            await source.tree.create(f"{source.own_root}/logs/events", b"head", parents=True)
            target = await opened(zookeeper, zookeeper.access())
            try:
                await copy_metadata(source, target, host, root)
            finally:
                await target.close()
        uri = f"zk://{zookeeper.server.address}{root}"
        async with await open_cluster(uri, host, access=zookeeper.access()) as copy:
            acls = await NodeAcls.of(copy, host)
            assert acls is not None
            report = await acls.check()
            assert (report.open, report.other, report.refused) == (0, 0, 0)
            assert report.nodes >= 8

    run(body())


# Refusals. Source: the table of doors and attacks in docs/security.md.


def test_a_wrong_password_is_refused_with_the_user_and_the_settings(zookeeper: SecuredZooKeeper) -> None:
    text = refusal(zookeeper, zookeeper.access(USER, "wrong"))
    assert text.startswith(f"ZooKeeper at {zookeeper.server.address}: ZooKeeper refuses user {USER} (metadata.user, metadata.password_file")
    assert nothing_was_written(zookeeper)


def test_an_unknown_user_is_refused(zookeeper: SecuredZooKeeper) -> None:
    assert "refuses user nobody" in refusal(zookeeper, zookeeper.access("nobody", PASSWORD))


def test_a_session_without_a_user_can_do_nothing(zookeeper: SecuredZooKeeper) -> None:
    text = refusal(zookeeper, zookeeper.access(""))
    assert text == "ZooKeeper serves authenticated sessions only, and refuses a process without metadata.user"
    assert nothing_was_written(zookeeper)


def test_a_server_of_another_authority_is_not_trusted(zookeeper: SecuredZooKeeper, tmp_path: Path) -> None:
    other = CertificateFolder(tmp_path / "other")
    text = refusal(zookeeper, zookeeper.access(security=other.trusting(zookeeper.client_security)))
    assert "the certificate of 127.0.0.1" in text
    assert "unable to get local issuer certificate (security.ca_file" in text
    assert nothing_was_written(zookeeper)


def test_a_client_certificate_of_another_authority_is_refused(zookeeper: SecuredZooKeeper, tmp_path: Path) -> None:
    other = CertificateFolder(tmp_path / "other")
    text = refusal(zookeeper, zookeeper.access(security=zookeeper.certificates.trusting(other.settings("client"))))
    assert "does not accept the certificate of this process" in text
    assert nothing_was_written(zookeeper)


def test_an_expired_client_certificate_is_refused(zookeeper: SecuredZooKeeper) -> None:
    expired = zookeeper.certificates.settings("late", made_s_ago=2 * DAY_S)
    assert "does not accept the certificate of this process" in refusal(zookeeper, zookeeper.access(security=expired))
    assert nothing_was_written(zookeeper)


def test_a_client_without_a_certificate_is_refused(zookeeper: SecuredZooKeeper) -> None:
    text = refusal(zookeeper, zookeeper.access(security=zookeeper.certificates.client_settings()))
    assert "does not accept the certificate of this process" in text


def test_a_plain_connection_to_the_port_for_tls_is_told_so(zookeeper: SecuredZooKeeper) -> None:
    text = refusal(zookeeper, None, limit_s=1.0)
    assert text.startswith(f"ZooKeeper at {zookeeper.server.address} does not answer within 1 s: ")
    assert "does it serve TLS only (metadata.tls)?" in text
    assert nothing_was_written(zookeeper)


def test_a_server_with_another_name_is_not_trusted(zookeeper: SecuredZooKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo

    def resolved(host: str, *arguments: Any) -> Any:
        return resolve("127.0.0.1" if host == "zookeeper.example" else host, *arguments)

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    address = f"zookeeper.example:{zookeeper.server.port}"

    async def body() -> None:
        with pytest.raises(AccessRefused, match=rf"the certificate of {address} is not accepted: Hostname mismatch.*security\.verify_host"):
            await ZooKeeperTree.open(address, real_host("test"), limit_s=LIMIT_S, access=zookeeper.access())
        trusting = replace(zookeeper.client_security, verify_host=False)
        tree = await ZooKeeperTree.open(address, real_host("test"), limit_s=LIMIT_S, access=zookeeper.access(security=trusting))
        await tree.close()

    run(body())


def test_an_expired_certificate_of_the_server_is_not_trusted_until_it_is_renewed(digest_too: SecuredZooKeeper) -> None:
    server = digest_too.server
    assert server.security is not None

    async def body() -> None:
        assert server.security is not None
        await (await opened(digest_too, digest_too.access())).close()
        good, expired = server.security, digest_too.certificates.settings("old", made_s_ago=2 * DAY_S)
        server.security = replace(good, identity=expired)
        server.write_secure_files()
        async with asyncio.timeout(LIMIT_S):
            while "certificate has expired" not in await _outcome(digest_too):
                await asyncio.sleep(0.1)
        server.security = good
        server.write_secure_files()
        async with asyncio.timeout(LIMIT_S):
            while await _outcome(digest_too):
                await asyncio.sleep(0.1)

    run(body(), 2 * LIMIT_S)


async def _outcome(zookeeper: SecuredZooKeeper) -> str:
    try:
        await (await opened(zookeeper, zookeeper.access())).close()
    except TriplicateError as error:
        return str(error)
    return ""


def test_no_password_is_logged(zookeeper: SecuredZooKeeper, digest_too: SecuredZooKeeper, caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        for server, mechanism in ((zookeeper, "sasl"), (digest_too, "digest")):
            tree = await opened(server, server.access(mechanism=mechanism))
            passwords.append(tree._session._client.client_id[1].hex())
            await tree.exists("/")
            await tree.close()

    passwords = [PASSWORD]
    with caplog.at_level(1, logger="triplicate.metadata.zookeeper"):
        run(body())
    assert "Sending request" in caplog.text
    assert not any(password in caplog.text for password in passwords)
