"""A token that the user's plugin cannot make sense of is the failure of one bookie, not of the client."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.unit.client.cluster import QUICK, fake_cluster, run
from triplicate.client import Client
from triplicate.errors import ConfigError, ReadFailed


class Fussy:
    """Understands no token of a bookie's."""

    plugin = "counting"

    def first_token(self) -> bytes:
        return b"1"

    def answer(self, token: bytes) -> bytes | None:
        raise ValueError("what is this token?")


def test_a_plugin_that_raises_fails_the_connection_and_not_the_client() -> None:
    async def main() -> None:
        async with fake_cluster("a") as cluster, Client(cluster.host, cluster.metadata, QUICK, authenticate=Fussy()) as client:
            writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
            cluster["a"].plugin = "counting"
            with pytest.raises(ReadFailed, match="what is this token"):
                await client.open(writer.ledger_id)
            cluster["a"].plugin = "AuthDisabledPlugin"
            await asyncio.sleep(0.1)  # A failed connection is not tried again at once.
            assert (await client.open(writer.ledger_id)).last_add_confirmed == -1

    run(main())


@pytest.mark.parametrize("required", [True, False])
def test_a_bookie_without_authentication_is_refused_where_its_login_is_required(required: bool) -> None:
    """Otherwise an impostor avoids the proof that a login asks of it."""

    async def main() -> None:
        settings = replace(QUICK, bookie_login="required" if required else "offered")
        async with fake_cluster("a") as cluster, cluster.client() as user:
            writer = await user.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
            cluster["a"].plugin = "AuthDisabledPlugin"
            async with Client(cluster.host, cluster.metadata, settings, authenticate=Fussy()) as client:
                if required:
                    with pytest.raises(ReadFailed, match=r"it has no authentication, and client\.bookie_login requires it"):
                        await client.open(writer.ledger_id)
                else:
                    assert (await client.open(writer.ledger_id)).last_add_confirmed == -1

    run(main())


def test_a_login_that_is_required_needs_a_user() -> None:
    async def main() -> None:
        async with fake_cluster("a") as cluster:
            with pytest.raises(ConfigError, match=r"needs client\.user"):
                Client(cluster.host, cluster.metadata, replace(QUICK, bookie_login="required"))

    run(main())
