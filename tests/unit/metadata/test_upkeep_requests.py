"""A request for upkeep is made once, answered, and ends with the session that made it."""

from __future__ import annotations

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import FormatError
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, UpkeepAction, UpkeepRequest, UpkeepState
from triplicate.metadata.upkeep_requests import decode_upkeep, encode_upkeep
from triplicate.runtime import real_host


def test_a_request_is_answered_and_withdrawn() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        store = MemoryStore(host.clock)
        async with await ClusterMetadata.open(MemoryTree(store), host, create=True) as metadata:
            requests = metadata.upkeep_requests
            assert await requests.names("a") == []
            name = await requests.request("a", UpkeepAction.GC, force=True)
            assert await requests.names("a") == [name]
            assert await requests.read("a", name) == UpkeepRequest(UpkeepAction.GC, True)
            answer = UpkeepRequest(UpkeepAction.GC, True, UpkeepState.DONE, {"seconds": 1.5})
            assert await requests.answer("a", name, answer)
            assert await requests.read("a", name) == answer
            await requests.withdraw("a", name)
            await requests.withdraw("a", name)
            assert await requests.read("a", name) is None
            assert not await requests.answer("a", name, answer)

    run(body())


def test_a_request_ends_with_the_session_that_made_it() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        store = MemoryStore(host.clock)
        async with await ClusterMetadata.open(MemoryTree(store), host, create=True) as metadata:
            async with await ClusterMetadata.open(MemoryTree(store), host) as other:
                await other.upkeep_requests.request("a", UpkeepAction.FLUSH)
                assert len(await metadata.upkeep_requests.names("a")) == 1
            assert await metadata.upkeep_requests.names("a") == []

    run(body())


@pytest.mark.parametrize("data", [b"", b"[]", b'{"v":2}', b'{"v":1,"action":"dance","force":false,"state":"waiting"}'])
def test_a_node_that_is_no_request_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        decode_upkeep(data)


def test_a_request_is_the_same_after_encoding() -> None:
    request = UpkeepRequest(UpkeepAction.COMPACT, False, UpkeepState.FAILED, {}, "no room")
    assert decode_upkeep(encode_upkeep(request)) == request
