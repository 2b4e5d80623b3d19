"""A client on this machine: what it needs before it connects to anything."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from triplicate.client import connect
from triplicate.config import ClientSettings, SecuritySettings
from triplicate.errors import ConfigError


def test_a_program_that_requires_security_makes_no_open_connection(tmp_path: Path) -> None:
    async def enter(uri: str, settings: ClientSettings) -> None:
        async with connect(uri, settings=settings, security=SecuritySettings(required=True)):
            raise AssertionError("it connected")

    with pytest.raises(ConfigError) as refused:
        asyncio.run(enter("zk://127.0.0.1:1/ledgers", ClientSettings()))
    for name in ("security.ca_file", "client.bookie_tls", "client.user", "metadata.tls", "metadata.user"):
        assert f"{name} " in str(refused.value)
    with pytest.raises(ConfigError, match=r"client\.bookie_tls"):
        asyncio.run(enter(f"sqlite://{tmp_path}/metadata.db", ClientSettings()))
    assert list(tmp_path.iterdir()) == []
