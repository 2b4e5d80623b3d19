"""Pages with TLS and a token: who may read them, and what an attacker of them costs. On both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from tests.certificates import CertificateFolder
from tests.unit.runtime.guarded_pages import TOKEN, Pages, ended, run
from tests.waiting import eventually

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateFolder:
    return CertificateFolder(tmp_path_factory.mktemp("certificates"))


@pytest.mark.parametrize("loop", LOOPS)
def test_pages_with_tls_and_the_token_are_read(certificates: CertificateFolder, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def body(pages: Pages) -> None:
        for _ in range(20):
            status, rest = await pages.get("/metrics", f"authorization:  bearer {TOKEN} ")
            assert status == b"HTTP/1.0 200 OK"
            assert b"triplicate_page_requests_refused" in rest
        assert (await pages.get("/metrics", f"Authorization: Bearer {TOKEN}", method="HEAD"))[0] == b"HTTP/1.0 200 OK"
        assert pages.refused("token") == pages.refused("handshake") == 0
        assert pages.traced == []

    run(body, certificates, loop=loop)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ("Authorization: Bearer",),
        (f"Authorization: Bearer {TOKEN[:-1]}",),
        (f"Authorization: Bearer {TOKEN}x",),
        (f"Authorization: Bearer {TOKEN.upper()}",),
        (f"Authorization: Basic {TOKEN}",),
        (f"Authorization: {TOKEN}",),
        (f"X-Token: Bearer {TOKEN}",),
        (f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {TOKEN}"),
        ("Authorization: Bearer \xff\xff",),
    ],
)
def test_a_request_without_the_right_token_is_told_nothing(headers: tuple[str, ...]) -> None:
    async def body(pages: Pages) -> None:
        for path, method in (("/metrics", "GET"), ("/ready", "HEAD"), ("/nothing", "GET"), ("/metrics", "DELETE")):
            status, rest = await pages.get(path, *headers, method=method)
            assert status == b"HTTP/1.0 401 Unauthorized"
            assert b"WWW-Authenticate: Bearer\r\n" in rest
            assert b"refused" not in rest
        assert pages.refused("token") == 4
        assert [(one["kind"], one["reason"]) for one in pages.traced] == [("pages.refused", "token")]
        assert TOKEN not in str(pages.traced)

    run(body, None)


def test_no_token_is_traced_right_or_wrong() -> None:
    async def body(pages: Pages) -> None:
        assert (await pages.get("/metrics", f"Authorization: Bearer {TOKEN}"))[0] == b"HTTP/1.0 200 OK"
        assert (await pages.get("/metrics", "Authorization: Bearer almost-the-right-token"))[0] == b"HTTP/1.0 401 Unauthorized"
        assert [one["kind"] for one in pages.traced] == ["pages.refused"]
        assert TOKEN not in str(pages.traced)
        assert "almost-the-right-token" not in str(pages.traced)

    run(body, None)


def test_a_free_path_needs_no_token_and_no_other_one_looks_like_it() -> None:
    async def body(pages: Pages) -> None:
        assert (await pages.get("/health?verbose"))[0] == b"HTTP/1.0 200 OK"
        for path in ("/health/../metrics", "/metrics?/health", "//health", "/healthy"):
            assert (await pages.get(path))[0] == b"HTTP/1.0 401 Unauthorized"

    run(body, None)


@pytest.mark.parametrize("loop", LOOPS)
def test_plain_text_on_a_tls_port_is_refused_and_counted(
    certificates: CertificateFolder, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(pages: Pages) -> None:
        pages.client = None
        try:
            status, _ = await pages.get("/metrics", f"Authorization: Bearer {TOKEN}")
        except ConnectionResetError:
            status = b""
        assert b"HTTP" not in status
        await eventually(lambda: pages.refused("handshake") == 1)
        assert TOKEN not in str(pages.traced)

    run(body, certificates, loop=loop)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_handshake_that_is_never_finished_is_cut_off_and_counts_towards_the_limit(
    certificates: CertificateFolder, loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triplicate.runtime.metrics_server.CONNECTIONS_MAX", 2)
    monkeypatch.setattr("triplicate.runtime.metrics_server.REQUEST_TIMEOUT_S", 0.5)

    async def body(pages: Pages) -> None:
        silent = [await asyncio.open_connection(*pages.listener.address) for _ in range(2)]
        third, writer = await asyncio.open_connection(*pages.listener.address)
        assert await ended(third)
        writer.close()
        for reader, writer in silent:
            assert await ended(reader)
            writer.close()
        await eventually(lambda: pages.refused("handshake") == 2)
        assert (await pages.get("/metrics", f"Authorization: Bearer {TOKEN}"))[0] == b"HTTP/1.0 200 OK"

    run(body, certificates, loop=loop)


def test_a_header_that_is_too_large_is_refused_inside_tls_too(certificates: CertificateFolder) -> None:
    async def body(pages: Pages) -> None:
        status, _ = await pages.get("/metrics", "X: " + "x" * 9000)
        assert status.startswith(b"HTTP/1.0 431")

    run(body, certificates)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_closed_listener_ends_handshakes_that_are_under_way(
    certificates: CertificateFolder, loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def body(pages: Pages) -> None:
        reader, writer = await asyncio.open_connection(*pages.listener.address)
        await pages.listener.close()
        assert await ended(reader)
        writer.close()

    run(body, certificates, loop=loop)
