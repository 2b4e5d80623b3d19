from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from triplicate.errors import ArgumentError, FormatError
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, own_paths
from triplicate.metadata.network_locations import decode_locations, encode_locations
from triplicate.runtime import real_host


def run(body: Callable[[ClusterMetadata], Awaitable[None]]) -> None:
    async def main() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            await body(metadata)

    asyncio.run(main())


def test_the_node_is_json_with_a_version() -> None:
    async def body(metadata: ClusterMetadata) -> None:
        assert (await metadata.network_locations.read()).locations == {}
        await metadata.network_locations.set("b1", "/r")
        data, _ = await metadata.tree.get(own_paths.racks_path(metadata.own_root))
        assert data == b'{"locations":{"b1":"/default-region/r"},"v":1}'
        assert decode_locations(data) == {"b1": "/default-region/r"}

    run(body)


def test_changes_at_the_same_time_are_all_kept() -> None:
    async def body(metadata: ClusterMetadata) -> None:
        table = metadata.network_locations
        await asyncio.gather(*(table.set(f"b{number}", f"/r{number}") for number in range(5)))
        assert (await table.read()).locations == {f"b{number}": f"/default-region/r{number}" for number in range(5)}
        assert await table.unset("b3")
        assert not await table.unset("b3")
        assert "b3" not in (await table.read()).locations

    run(body)


def test_wrong_entries_are_refused() -> None:
    async def body(metadata: ClusterMetadata) -> None:
        with pytest.raises(ArgumentError, match="no network location"):
            await metadata.network_locations.set("b1", "rack one")
        with pytest.raises(ArgumentError, match="bookie id or a host"):
            await metadata.network_locations.set("", "/r")

    run(body)


def test_a_table_of_a_newer_release_is_refused() -> None:
    newer = encode_locations({}).replace(b'"v":1', b'"v":2')
    with pytest.raises(FormatError, match="format 2, this release knows 1"):
        decode_locations(newer)
    for data in (b"", b"[]", b'{"v":1}', b'{"v":1,"locations":3}'):
        with pytest.raises(FormatError, match="not a table"):
            decode_locations(data)
