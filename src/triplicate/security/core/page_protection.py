"""The conditions for serving the pages of a process, its metrics and probes. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

from triplicate.config import ProcessSettings, SecuritySettings


def is_loopback(address: str) -> bool:
    """Whether only processes of this machine reach an address. A name other than ``localhost`` may be any address, and counts as not."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def page_gaps(process: ProcessSettings, security: SecuritySettings) -> Iterator[str]:
    """The settings that are missing before the pages may be served at their address."""
    if process.metrics_tls and not (security.ca_file and security.certificate_file and security.key_file):
        yield "process.metrics_tls needs security.ca_file, security.certificate_file and security.key_file"
    if is_loopback(process.metrics_host):
        return
    where = f"the metrics are served on {process.metrics_host} (process.metrics_host), which other machines may reach"
    if not process.metrics_tls:
        yield f"process.metrics_tls is off: {where}"
    if not process.metrics_token_file:
        yield f"process.metrics_token_file is not set: {where}"
