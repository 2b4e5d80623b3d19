"""The pages of a server process: they are protected wherever others can reach them, and our own commands can read them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.certificates import DAY_S, CertificateFolder
from triplicate.cli.process.page_access import PageAddress, page_guard, read_page
from triplicate.cli.process.probes import Readiness, ServedProcess
from triplicate.cli.process.serving import serve
from triplicate.cli.supervision.prober import probe
from triplicate.config import ProcessSettings, SecuritySettings
from triplicate.errors import ConfigError, EnvironmentFault
from triplicate.runtime import Host, Metrics, real_host
from triplicate.security import write_private

TOKEN = "the-token-of-these-tests"


def read(address: PageAddress, path: str) -> str:
    return read_page(address, path, timeout_s=10.0, size_bytes_max=2**20).decode()


def serving(process: ProcessSettings, security: SecuritySettings, check: Callable[[PageAddress], Awaitable[None]]) -> None:
    """Run a process with these settings, and a check once it serves."""

    async def body() -> None:
        served: asyncio.Future[PageAddress] = asyncio.get_running_loop().create_future()
        over = asyncio.Event()

        async def start(host: Host, metrics: Metrics) -> ServedProcess:
            async def stop() -> None:
                pass

            async def failed() -> BaseException:
                await over.wait()
                return OSError("the check is over")

            return ServedProcess({"name": "x"}, stop, failed, list, lambda: Readiness([]))

        def announce(facts: dict[str, object]) -> None:
            # As a parent gets them through the pipe.
            served.set_result(PageAddress.from_facts(json.loads(json.dumps(facts))))

        running = asyncio.create_task(serve("x", real_host("x"), process, start, announce, security))
        running.add_done_callback(lambda _: served.cancel())
        try:
            await check(await served)
        finally:
            over.set()
        with pytest.raises(EnvironmentFault, match="the check is over"):
            await running

    asyncio.run(body())


@pytest.fixture
def certificates(tmp_path: Path) -> CertificateFolder:
    return CertificateFolder(tmp_path / "certificates")


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    write_private(str(tmp_path / "token"), f"{TOKEN}\n".encode())
    return str(tmp_path / "token")


def test_a_process_told_to_serve_elsewhere_without_protection_does_not_start(certificates: CertificateFolder, token_file: str) -> None:
    async def start(host: Host, metrics: Metrics) -> ServedProcess:
        raise AssertionError("it started")

    async def refusal(process: ProcessSettings) -> str:
        with pytest.raises(ConfigError) as refused:
            await serve("x", real_host("x"), process, start, lambda facts: None, certificates.settings("server"))
        return str(refused.value)

    process = ProcessSettings(metrics_host="0.0.0.0")
    both = asyncio.run(refusal(process))
    assert "process.metrics_tls" in both
    assert "process.metrics_token_file" in both
    assert "process.metrics_token_file" in asyncio.run(refusal(replace(process, metrics_tls=True)))
    assert "process.metrics_tls" in asyncio.run(refusal(replace(process, metrics_token_file=token_file)))


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1"])
def test_a_protected_page_is_read_by_our_commands_and_by_nobody_else(
    certificates: CertificateFolder, tmp_path: Path, token_file: str, address: str
) -> None:
    security = certificates.settings("server")
    process = ProcessSettings(metrics_host=address, metrics_tls=True, metrics_token_file=token_file)
    stranger = CertificateFolder(tmp_path / "stranger")
    write_private(str(tmp_path / "wrong"), b"another-token-of-these-tests")

    async def check(pages: PageAddress) -> None:
        assert pages.url.startswith("https://127.0.0.1:")
        text = await asyncio.to_thread(read, pages, "/metrics")
        assert f'triplicate_certificate_expires_seconds{{file="{security.certificate_file}"}}' in text
        assert f'triplicate_certificate_expires_seconds{{file="{security.ca_file}"}}' in text
        assert await asyncio.to_thread(probe, pages, 10.0) == {"ready": True, "process": "x", "reasons": []}
        for wrong in (replace(pages, token_file=""), replace(pages, token_file=str(tmp_path / "wrong"))):
            with pytest.raises(PermissionError, match="refuses the token"):
                await asyncio.to_thread(read, wrong, "/metrics")
            assert await asyncio.to_thread(probe, wrong, 10.0) == {}, "it answers, and does not say whether it is ready"
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(read, replace(pages, ca_file=str(stranger.ca_file)), "/metrics")
        free = replace(pages, token_file="")
        if address == "127.0.0.1":
            assert "healthy" in await asyncio.to_thread(read, free, "/health")
        else:
            with pytest.raises(PermissionError):
                await asyncio.to_thread(read, free, "/health")

    serving(process, security, check)


def test_a_page_whose_certificate_names_another_host_is_not_believed(certificates: CertificateFolder, token_file: str) -> None:
    process = ProcessSettings(metrics_tls=True, metrics_token_file=token_file)

    async def check(pages: PageAddress) -> None:
        with pytest.raises(ssl.SSLCertVerificationError):
            await asyncio.to_thread(read, pages, "/metrics")
        assert "healthy" in await asyncio.to_thread(read, replace(pages, verify_host=False), "/health")

    serving(process, certificates.settings("server", ("bookie.example",)), check)


def test_a_page_whose_certificate_has_expired_is_not_believed(certificates: CertificateFolder, token_file: str) -> None:
    process = ProcessSettings(metrics_tls=True, metrics_token_file=token_file)

    async def check(pages: PageAddress) -> None:
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            await asyncio.to_thread(read, pages, "/metrics")

    serving(process, certificates.settings("server", made_s_ago=2 * DAY_S), check)


def test_a_page_that_has_tls_no_more_gets_no_token(certificates: CertificateFolder, token_file: str) -> None:
    """Somebody serves in clear where the pages had TLS: the reader does not follow, and its token is not sent."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = PageAddress(f"https://127.0.0.1:{server.getsockname()[1]}/metrics", str(certificates.ca_file), True, token_file)

        async def body() -> None:
            asked = asyncio.create_task(asyncio.to_thread(read, address, "/metrics"))
            connection, _ = await asyncio.to_thread(server.accept)
            with connection:
                connection.settimeout(10.0)
                sent = connection.recv(65536)
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nwelcome")
                with pytest.raises(ssl.SSLError):
                    await asked
                with contextlib.suppress(ConnectionResetError):
                    while data := connection.recv(65536):
                        sent += data
            assert TOKEN.encode() not in sent

        asyncio.run(body())


def test_a_plain_loopback_page_needs_nothing() -> None:
    async def check(pages: PageAddress) -> None:
        assert pages == PageAddress(pages.url)
        assert pages.url.startswith("http://127.0.0.1:")
        assert "triplicate_loop_stall_seconds" in await asyncio.to_thread(read, pages, "/metrics")

    serving(ProcessSettings(), SecuritySettings(), check)


def test_files_that_cannot_be_used_stop_the_start(certificates: CertificateFolder, tmp_path: Path, token_file: str) -> None:
    security = certificates.settings("server")

    async def guard(process: ProcessSettings, security: SecuritySettings) -> None:
        page_guard(real_host("x"), process, security)

    Path(token_file).chmod(0o640)
    with pytest.raises(ConfigError, match="others than its owner"):
        asyncio.run(guard(ProcessSettings(metrics_token_file=token_file), security))
    Path(security.key_file).unlink()
    with pytest.raises(ConfigError, match=r"server\.key"):
        asyncio.run(guard(ProcessSettings(metrics_tls=True), security))


def test_a_page_that_is_no_http_is_an_error_of_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = PageAddress(f"http://127.0.0.1:{server.getsockname()[1]}/metrics")

        async def body() -> None:
            asked = asyncio.create_task(asyncio.to_thread(read, address, "/metrics"))
            connection, _ = await asyncio.to_thread(server.accept)
            connection.sendall(b"nonsense\r\n\r\n")
            connection.close()
            with pytest.raises(OSError, match=r"does not answer as HTTP|reset"):
                await asked

        asyncio.run(body())
