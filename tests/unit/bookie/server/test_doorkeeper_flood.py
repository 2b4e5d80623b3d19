"""Thousands of half-open connections at a bookie's door. A million of them: tests/process/test_floods.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flood import AtRest, Flood
from tests.unit.bookie.server.door_rig import PASSWORD, DoorRig, codec, run_door, scram
from tests.waiting import eventually
from triplicate.wire import StartTlsRequest, Status, v3

LIMIT = 50
ATTEMPTS = 2000
KEPT = 150
START = v3.encode_request(StartTlsRequest(), 1)


@pytest.mark.parametrize("first", [b"", START, START[:3]], ids=["silent", "START_TLS", "half a frame"])
def test_a_flood_leaves_nothing_behind_and_an_honest_client_is_served(tmp_path: Path, first: bytes) -> None:
    async def body(rig: DoorRig) -> None:
        def half_open() -> float:
            return rig.count("triplicate_bookie_unauthenticated_connections")

        async def round_of(number: int) -> None:
            flood = Flood(rig.bookie.address, first, KEPT)
            await flood.attempt(number)
            await eventually(lambda: len(rig.bookie.connections) <= LIMIT)
            assert half_open() <= LIMIT
            assert flood.opened + flood.refused == number
            client = await rig.connect_tls()
            assert await scram(client, "writer", PASSWORD)
            assert await client.add(codec(), 0) is Status.OK
            client.transport.abort()
            flood.close()
            await eventually(lambda: not len(rig.bookie.connections))
            assert half_open() == 0

        await round_of(ATTEMPTS // 4)  # The pools and caches fill.
        rest = AtRest()
        await round_of(ATTEMPTS)
        await rest.check(ATTEMPTS)

    run_door(
        tmp_path,
        body,
        tls="required",
        authentication="sasl",
        unauthenticated_connections=LIMIT,
        unauthenticated_connections_per_address=LIMIT,
        authentication_timeout_s=50.0,
        handshakes_per_s=50,
    )
