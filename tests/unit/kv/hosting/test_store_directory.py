"""The metadata node of a store: its bytes, and what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.unit.kv.store_cluster import StoreCluster
from triplicate.config.log_settings import LogSettings
from triplicate.errors import ArgumentError, FormatError, NoSuchStore
from triplicate.kv import StoreInfo, create_store, drop_store, read_store, store_names
from triplicate.kv.hosting.store_directory import StoreDirectory, decode_info, encode_info
from triplicate.metadata import own_paths, read_identified
from triplicate.replica import deletions_of

INFO = StoreInfo("basket", bytes(range(16)), "store.basket.00010203", 1_764_000_000_123, 750)
TEXT = b'{"created":1764000000123,"id":"000102030405060708090a0b0c0d0e0f","lease":750,"log":"store.basket.00010203","name":"basket","v":1}'


def test_the_node_of_a_store_has_these_bytes() -> None:
    assert encode_info(INFO) == TEXT
    assert decode_info(TEXT) == INFO


@pytest.mark.parametrize("data", [b"", b"{}", TEXT.replace(b'"v":1', b'"v":2'), TEXT.replace(b"0f", b""), b"[]"])
def test_a_node_that_cannot_be_read_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_info(data)


def test_a_drop_that_was_interrupted_is_finished_by_another(tmp_path: Path) -> None:
    async def scene() -> None:
        cluster = StoreCluster(tmp_path)
        await cluster.create()
        admin = cluster.client("admin")
        info = await read_store(admin, "s")
        path = own_paths.store_path(admin.metadata.own_root, "s")
        await admin.metadata.tree.set(path, encode_info(info).replace(b'"id"', b'"dropping":true,"id"'))
        assert (await read_store(admin, "s")).is_dropping
        await drop_store(admin, "s")
        assert await store_names(admin) == []
        with pytest.raises(NoSuchStore, match="triplicate kv list"):
            await read_store(admin, "s")

    asyncio.run(scene())


def test_a_store_counts_as_dropped_once_its_mark_was_seen(tmp_path: Path) -> None:
    async def scene() -> None:
        cluster = StoreCluster(tmp_path)
        await cluster.create()
        admin = cluster.client("admin")
        directory = StoreDirectory(admin, str(tmp_path))
        path = own_paths.store_path(admin.metadata.own_root, "s")
        info = await read_store(admin, "s")
        assert await directory.read("s") == info
        data, _ = await admin.metadata.tree.get(path)
        await admin.metadata.tree.multi(await deletions_of(admin.metadata.tree, await read_identified(admin.metadata.tree, path)))
        assert await directory.read("s") is None
        assert not await directory.is_dropped(info), "older metadata may have been restored"
        await admin.metadata.tree.create(path, data.replace(b'"id"', b'"dropping":true,"id"'))
        assert await directory.is_dropped(info)
        assert await directory.read("s") is None
        await drop_store(admin, "s")
        assert await directory.is_dropped(info)

    asyncio.run(scene())


def test_retention_and_long_leases_are_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        admin = StoreCluster(tmp_path).client("admin")
        with pytest.raises(ArgumentError, match="lease"):
            await create_store(admin, "s", lease_s=61.0)
        settings = LogSettings(ensemble_size=1, write_quorum=1, ack_quorum=1, retain_age_s=60.0)
        with pytest.raises(ArgumentError, match="retain_age_s"):
            await create_store(admin, "s", settings)
        assert await store_names(admin) == []

    asyncio.run(scene())
