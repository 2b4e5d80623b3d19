"""The pages of a process: how they are protected, and how other processes of ours read them."""

from __future__ import annotations

import http.client
import ssl
import urllib.parse
from dataclasses import dataclass

from triplicate.config import ProcessSettings, SecuritySettings
from triplicate.errors import ConfigError
from triplicate.runtime import Host, PageGuard
from triplicate.security import ClientCertificates, TlsIdentity, TokenFile, is_loopback, page_gaps, read_secret_file

TOKEN_SETTING = "process.metrics_token_file"
HEALTH = "/health"
"""Supervisors of this machine ask without a token whether the process is alive."""


def page_guard(host: Host, process: ProcessSettings, security: SecuritySettings) -> PageGuard:
    """How the pages are protected.

    Raises:
        ConfigError: other machines may reach them and something is missing, or a file that is named cannot be used. All that is missing
            is named.
    """
    gaps = list(page_gaps(process, security))
    if gaps:
        raise ConfigError(f"{'; '.join(gaps)}: set what is missing, or serve on 127.0.0.1")
    identity = TlsIdentity(security, host.clock, host.trace) if process.metrics_tls else None
    tokens = None
    if process.metrics_token_file:
        tokens = TokenFile(process.metrics_token_file, TOKEN_SETTING, host.clock, host.trace, security.reload_interval_s)
    if identity is not None:
        identity.server_context(ClientCertificates.NONE)  # Now, so that a wrong file stops the start.
    return PageGuard(
        None if identity is None else lambda: identity.server_context(ClientCertificates.NONE),
        None if tokens is None else tokens.admits,
        frozenset([HEALTH]) if is_loopback(process.metrics_host) else frozenset(),
    )


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Where and how the pages of a process are read."""

    url: str
    """The address of ``/metrics``, with or without TLS."""
    ca_file: str = ""
    """Authorities that vouch for a page with TLS."""
    verify_host: bool = True
    token_file: str = ""

    @classmethod
    def of(cls, url: str, process: ProcessSettings, security: SecuritySettings) -> PageAddress:
        return cls(url, security.ca_file if process.metrics_tls else "", security.verify_host, process.metrics_token_file)

    @classmethod
    def from_facts(cls, facts: dict[str, object]) -> PageAddress:
        """The address of a process that has reported that it serves."""
        access = facts.get("metrics_access")
        named = access if isinstance(access, dict) else {}
        return cls(
            str(facts["metrics"]), str(named.get("ca_file", "")), bool(named.get("verify_host", True)), str(named.get("token_file", ""))
        )

    def facts(self) -> dict[str, object]:
        """The facts that a process reports of its pages: names of files, and no secrets."""
        found: dict[str, object] = {"metrics": self.url}
        if self.ca_file or self.token_file:
            found["metrics_access"] = {"ca_file": self.ca_file, "verify_host": self.verify_host, "token_file": self.token_file}
        return found


def read_page(address: PageAddress, path: str, *, timeout_s: float, size_bytes_max: int) -> bytes:
    """The body of one page. Its status may be that of a process that is not well. Blocks.

    Raises:
        OSError: nothing answers in time, the certificate is not accepted, the token is refused, or the answer is no HTTP.
        ConfigError: the token's file cannot be used.
    """
    place = urllib.parse.urlsplit(address.url)
    headers = {}
    if address.token_file:
        # The first of several tokens: the newest is written there.
        headers["Authorization"] = f"Bearer {read_secret_file(address.token_file, TOKEN_SETTING).splitlines()[0].strip()}"
    # urllib.request would use a proxy from the environment.
    connection: http.client.HTTPConnection
    if place.scheme == "https":
        context = ssl.create_default_context(cafile=address.ca_file)
        context.check_hostname = address.verify_host
        connection = http.client.HTTPSConnection(place.hostname or "", place.port, timeout=timeout_s, context=context)
    else:
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=timeout_s)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        if answer.status == http.HTTPStatus.UNAUTHORIZED:
            raise PermissionError(f"{address.url} refuses the token of {address.token_file or 'this command, which has none'}")
        return answer.read(size_bytes_max)
    except http.client.HTTPException as error:
        raise OSError(f"{address.url} does not answer as HTTP: {error!r}") from None
    finally:
        connection.close()
