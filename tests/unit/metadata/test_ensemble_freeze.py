"""A freeze of ensembles begins, is replaced, ends and expires; one of a later format is obeyed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import ArgumentError
from triplicate.metadata import FREEZE_S_MAX, ClusterMetadata, EnsembleFreeze, MemoryStore, MemoryTree, own_paths
from triplicate.metadata.ensemble_freeze import decode_freeze, encode_freeze
from triplicate.runtime import real_host

FREEZE = EnsembleFreeze("a switch is replaced", "me@here", 1000, 61_000)


def with_metadata(work: Callable[[ClusterMetadata], Awaitable[None]]) -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            await work(metadata)

    run(body())


def test_a_freeze_begins_is_replaced_and_ends_once() -> None:
    async def work(metadata: ClusterMetadata) -> None:
        freezes = metadata.ensemble_freezes
        assert await freezes.read() is None
        first = await freezes.begin(" a switch is replaced ", "me@here", 3600)
        assert await freezes.read() == first
        assert (first.reason, first.until_ms) == ("a switch is replaced", first.since_ms + 3_600_000)
        second = await freezes.begin("another one", "me@here", 7200)
        assert await freezes.read() == second
        assert [await freezes.end(), await freezes.end()] == [True, False]
        assert await freezes.read() is None

    with_metadata(work)


def test_an_expired_freeze_is_none() -> None:
    async def work(metadata: ClusterMetadata) -> None:
        path = own_paths.frozen_ensembles_path(metadata.own_root)
        await metadata.tree.create(path, encode_freeze(FREEZE), parents=True)
        assert await metadata.ensemble_freezes.read() is None
        assert not await metadata.ensemble_freezes.end()
        assert await metadata.tree.exists(path) is None

    with_metadata(work)


def test_a_freeze_is_active_up_to_its_end() -> None:
    assert [FREEZE.is_active(now_ms) for now_ms in (0, 60_999, 61_000)] == [True, True, False]
    assert FREEZE.text == "until 1970-01-01T00:01:01Z by me@here: a switch is replaced"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"v":1}', b'{"v":2,"until_ms":1}'])
def test_a_node_that_is_not_understood_freezes_without_an_end(data: bytes) -> None:
    freeze = decode_freeze(data)
    assert freeze.is_active(2**62)
    assert "the freeze" in freeze.text


def test_a_freeze_is_the_same_after_encoding() -> None:
    assert decode_freeze(encode_freeze(FREEZE)) == FREEZE


@pytest.mark.parametrize(("reason", "duration_s"), [("", 60.0), ("  ", 60.0), ("x" * 1001, 60.0), ("r", 0.0), ("r", FREEZE_S_MAX + 1)])
def test_a_freeze_without_reason_or_end_is_refused(reason: str, duration_s: float) -> None:
    async def work(metadata: ClusterMetadata) -> None:
        with pytest.raises(ArgumentError, match="a freeze"):
            await metadata.ensemble_freezes.begin(reason, "me", duration_s)
        assert await metadata.ensemble_freezes.read() is None

    with_metadata(work)
