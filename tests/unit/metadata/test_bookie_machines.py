"""The machine of a bookie is recorded once, replaced when the bookie moves, and refused in another format."""

from __future__ import annotations

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import FormatError
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, bookie_service, machine_of
from triplicate.metadata.bookie_machines import decode_machine
from triplicate.runtime import real_host


def test_a_machine_is_recorded_replaced_and_forgotten() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            machines = metadata.machines
            assert await machines.get("b") is None
            for address, location in (("10.0.0.1", ""), ("10.0.0.2", ""), ("10.0.0.2", "/west/rack-2")):
                info = bookie_service(address, 3181, network_location=location)
                assert await machines.record("b", info)
                assert not await machines.record("b", info)
                found = await machines.get("b")
                assert found is not None
                assert machine_of("b", found) == address
                assert found == bookie_service(address, 0, network_location=location)
            await machines.forget("b")
            await machines.forget("b")
            assert await machines.get("b") is None

    run(body())


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"v":2}', b'{"v":1}', b'{"v":1,"host":"","network_location":""}'])
def test_another_format_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="the machine of a bookie"):
        decode_machine(data)
