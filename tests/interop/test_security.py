"""TLS, client certificates and SASL between the implementations: the right credentials serve, wrong ones are refused with the reason.

After every refusal the ledger is recovered with the right credentials: nothing was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from typing import Any

import pytest

from tests.interop.driver import BOOKIE_NOT_AVAILABLE, UNAUTHORIZED, Driver, JavaClient, JavaError, SeenEntry
from tests.interop.scenes import WIRES, append_all, expected, seen, value
from tests.interop.secured import (
    BOTH,
    CERTIFICATE,
    KINDS,
    SASL,
    TLS,
    USER,
    Credentials,
    SecuredBookie,
    SecuredStand,
    SecurityFiles,
    java_security,
)
from tests.interop.stand import Stand, our_settings
from tests.waiting import wait_until
from triplicate import Client
from triplicate.errors import NotEnoughBookies, Unauthorized
from triplicate.metadata import open_cluster
from triplicate.runtime import real_host

COUNT = 10
NOT_ENOUGH_BOOKIES = -6
QUICK_S = 1.0
"""Time for a connection that fails. Apache's bookies leave a wrong password without an answer."""
GIVEN_UP_MOST = 5
"""On a busy machine a client of Java's gives up before it has logged in, and the bookie sees no login."""
ONE: dict[str, Any] = {"ensemble_size": 1, "write_quorum": 1, "ack_quorum": 1}
IN_CLEAR = Credentials()


@pytest.fixture(scope="module")
def secured(stand: Stand, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredStand]:
    found = SecuredStand(stand, SecurityFiles(tmp_path_factory.mktemp("security")))
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def java(secured: SecuredStand, stand: Stand) -> Driver:
    return stand.new_driver("4.18.0", f"-Djava.security.auth.login.config={secured.files.jaas}")


async def our_client(stack: AsyncExitStack, bookie: SecuredBookie, wire: str, credentials: Credentials, **settings: Any) -> Client:
    host = real_host("secured")
    metadata = await open_cluster(bookie.uri, host)
    stack.push_async_callback(metadata.aclose)
    if credentials.security is not None:
        settings["bookie_tls"] = "required"
    if credentials.password_file:
        settings |= {"user": USER, "password_file": credentials.password_file, "mechanism": "DIGEST-MD5"}
    client = Client(host, metadata, our_settings(wire, **settings), security=credentials.security)
    return await stack.enter_async_context(client)


async def write_and_read(bookie: SecuredBookie, wire: str, credentials: Credentials) -> list[SeenEntry | None]:
    async with AsyncExitStack() as stack:
        client = await our_client(stack, bookie, wire, credentials)
        async with await client.create(**ONE) as writer:
            assert await append_all(writer, 0, COUNT) == list(range(COUNT))
            await writer.force()  # Over a second connection if the wire is version 2.
        async with await client.open(writer.ledger_id) as reader:
            return seen(await reader.read(0, COUNT - 1))


async def refusal(bookie: SecuredBookie, wire: str, credentials: Credentials) -> tuple[int, str]:
    """A ledger that our client could not write to, and the error of the append."""
    async with AsyncExitStack() as stack:
        client = await our_client(stack, bookie, wire, credentials, connect_timeout_s=QUICK_S, add_timeout_s=1.0)
        writer = await client.create(**ONE)
        with pytest.raises((NotEnoughBookies, Unauthorized)) as caught:
            await writer.append(value(0))
        writer.abandon()
        assert "\n" not in str(caught.value)
        return writer.ledger_id, str(caught.value)


async def last_entry(bookie: SecuredBookie, ledger_id: int, credentials: Credentials) -> int:
    """The last entry of a ledger after its recovery."""
    async with AsyncExitStack() as stack:
        client = await our_client(stack, bookie, "v2", credentials)
        return (await client.recover(ledger_id)).last_add_confirmed


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", KINDS)
def test_our_client_writes_and_reads_on_a_secured_bookie_of_apaches(secured: SecuredStand, kind: str, wire: str) -> None:
    found = secured.stand.run(write_and_read(secured.apache(kind), wire, secured.files.right(kind)))
    assert found == expected(0, COUNT - 1)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("kind", KINDS)
def test_javas_client_writes_and_reads_on_a_secured_bookie_of_ours(secured: SecuredStand, java: Driver, kind: str, wire: str) -> None:
    bookie = secured.ours(kind)
    with closing(java.connect(bookie.uri, wire=wire, settings=java_security(secured.files.right(kind)))) as client:
        ledger = client.create(**ONE)
        assert [ledger.append(value(index)) for index in range(COUNT)] == list(range(COUNT))
        ledger.close()
        assert client.open(ledger.ledger_id).read(0, COUNT - 1) == expected(0, COUNT - 1)
        assert client.bookie_info()  # Over a second connection if the wire is version 2.
    assert bookie.refusals == []


def wrong(files: SecurityFiles, kind: str, fault: str) -> Credentials:
    """The right credentials for a bookie of this kind, but for one fault."""
    right = files.right(kind)
    if fault == "in clear":
        return replace(right, security=None)
    if fault == "no login":
        return Credentials(right.security)
    if fault == "wrong password":
        return replace(right, section="Wrong", password_file=files.wrong_password)
    security = {
        "asks for tls": files.ours.client_settings(),
        "trusts another authority": files.theirs.client_settings(),
        "no certificate": files.ours.client_settings(),
        "certificate of another authority": files.stranger,
        "expired certificate": files.expired,
        "no role": files.without_role,
    }[fault]
    return replace(right, security=security)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("kind", "fault", "told"),
    [
        (TLS, "trusts another authority", "an authority that is not in security.ca_file"),
        (CERTIFICATE, "no certificate", "certificate"),
        (CERTIFICATE, "certificate of another authority", "certificate"),
        (CERTIFICATE, "expired certificate", "certificate"),
        (CERTIFICATE, "no role", "UNAUTHORIZED|a role in the client's certificate"),
        (CERTIFICATE, "in clear", "UNAUTHORIZED"),
        (SASL, "wrong password", "waited for the authentication by the plugin 'sasl'"),
        (SASL, "no login", "requires authentication"),
        (SASL, "asks for tls", "its answer to START_TLS is BAD_REQUEST"),
        (BOTH, "wrong password", "waited for the authentication by the plugin 'sasl'"),
        (BOTH, "no login", "requires authentication|requires a login"),
    ],
)
def test_our_client_is_refused_by_a_secured_bookie_of_apaches(secured: SecuredStand, kind: str, fault: str, told: str, wire: str) -> None:
    bookie, files = secured.apache(kind), secured.files
    ledger_id, error = secured.stand.run(refusal(bookie, wire, wrong(files, kind, fault)))
    assert any(one in error for one in told.split("|")), error
    assert secured.stand.run(last_entry(bookie, ledger_id, files.right(kind))) == -1


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("kind", "fault", "reasons"),
    [
        # Where the client does the refusing, the bookie sees a handshake that failed.
        (TLS, "trusts another authority", ["TLS handshake failed"]),
        (TLS, "in clear", ["no TLS"]),
        (CERTIFICATE, "no certificate", ["TLS handshake failed"]),
        (CERTIFICATE, "certificate of another authority", ["TLS handshake failed"]),
        (CERTIFICATE, "expired certificate", ["TLS handshake failed"]),
        (CERTIFICATE, "no role", ["certificate without a role", "request before the login"]),
        (SASL, "wrong password", ["wrong user or password"]),
        (SASL, "no login", ["request before the login"]),
        (SASL, "asks for tls", []),
        (BOTH, "wrong password", ["wrong user or password"]),
        (BOTH, "no login", ["request before the login"]),
        (BOTH, "in clear", ["no TLS"]),
    ],
)
def test_javas_client_is_refused_by_a_secured_bookie_of_ours(
    secured: SecuredStand, java: Driver, kind: str, fault: str, reasons: list[str], wire: str
) -> None:
    bookie, files = secured.ours(kind), secured.files
    bookie.refusals.clear()
    for _ in range(GIVEN_UP_MOST):
        with closing(java.connect(bookie.uri, wire=wire, settings=java_security(wrong(files, kind, fault)))) as client:
            ledger_id = refused_java(client)
        told = [str(facts["reason"]) for facts in bookie.refusals]
        if set(reasons) <= set(told):
            break
    assert set(reasons) <= set(told), bookie.refusals
    assert secured.stand.run(last_entry(bookie, ledger_id, files.right(kind))) == -1


def refused_java(client: JavaClient) -> int:
    """A ledger that Java's client could not write to."""
    ledger = client.create(**ONE)
    with pytest.raises(JavaError) as caught:
        ledger.append(value(0))
    assert caught.value.code in (UNAUTHORIZED, BOOKIE_NOT_AVAILABLE, NOT_ENOUGH_BOOKIES), caught.value
    return ledger.ledger_id


@pytest.mark.parametrize("fault", ["expired", "elsewhere"])
def test_javas_client_refuses_a_bookie_of_ours_that_is_not_proven(secured: SecuredStand, java: Driver, fault: str) -> None:
    files = secured.files
    security = {
        "expired": lambda: files.ours.settings("bookie-expired", valid_s=60.0, made_s_ago=3600.0),
        "elsewhere": lambda: files.ours.settings("bookie-elsewhere", ("elsewhere.example",)),
    }[fault]()
    bookie = secured.start_ours(f"secured-ours-{fault}", TLS, security)
    with closing(java.connect(bookie.uri, wire="v2", settings=java_security(files.right(TLS)))) as client:
        refused_java(client)
    assert "TLS handshake failed" in [facts["reason"] for facts in bookie.refusals]


def test_our_client_refuses_a_bookie_of_apaches_whose_certificate_expires_or_names_another_host(secured: SecuredStand) -> None:
    """The bookie's certificate is replaced while it runs; the right one serves again at the end."""
    bookie, files, stand = secured.apache(TLS), secured.files, secured.stand
    assert bookie.apache is not None
    faults = {
        "has expired": files.ours.settings("bookie-expired", valid_s=60.0, made_s_ago=3600.0),
        "does not name this": files.ours.settings("bookie-elsewhere", ("elsewhere.example",)),
    }
    try:
        for fault, security in faults.items():
            bookie.apache.show(security)
            wait_until(lambda fault=fault: fault in last_error(secured, bookie), 20.0, f"the client refuses a certificate that {fault}")  # type: ignore[misc]
    finally:
        bookie.apache.show(files.bookie)
    wait_until(lambda: last_error(secured, bookie) == "", 20.0, "the client accepts the bookie again")
    assert stand.run(write_and_read(bookie, "v2", files.right(TLS))) == expected(0, COUNT - 1)


def last_error(secured: SecuredStand, bookie: SecuredBookie) -> str:
    """Why our client cannot write to the bookie; empty if it can."""

    async def attempt() -> str:
        async with AsyncExitStack() as stack:
            client = await our_client(stack, bookie, "v2", secured.files.right(TLS), connect_timeout_s=QUICK_S)
            writer = await client.create(**ONE)
            try:
                await writer.append(value(0))
            except NotEnoughBookies as error:
                return str(error)
            finally:
                writer.abandon()
            return ""

    return secured.stand.run(attempt())
