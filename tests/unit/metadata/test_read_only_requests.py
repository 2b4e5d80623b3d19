"""Requests that bookies be read-only are made and withdrawn once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import ArgumentError, BadVersion, ConnectionLost
from triplicate.metadata import ClusterMetadata, Cookie, MemoryStore, MemoryTree, Stat, own_paths
from triplicate.runtime import real_host


def test_a_request_is_made_once_and_withdrawn_once() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            requests = metadata.read_only_requests
            assert not await requests.is_requested("a")
            assert await requests.bookie_ids() == []
            assert [await requests.request("b"), await requests.request("a"), await requests.request("a")] == [True, True, False]
            assert await requests.bookie_ids() == ["a", "b"]
            assert await requests.is_requested("a")
            data, _ = await metadata.tree.get(own_paths.read_only_request_path(metadata.own_root, "a"))
            assert json.loads(data)["v"] == 1
            assert [await requests.withdraw("a"), await requests.withdraw("a")] == [True, False]
            assert not await requests.is_requested("a")
            with pytest.raises(ArgumentError):
                await requests.request("a/b")

    run(body())


def test_a_request_says_that_a_bookie_is_leaving() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            requests = metadata.read_only_requests
            assert await requests.leaving() == []
            assert [await requests.request("b", leaving=True), await requests.request("b", leaving=True)] == [True, False]
            await requests.request("a")
            assert await requests.leaving() == ["b"]
            assert not await requests.request("a", leaving=True)
            assert await requests.leaving() == await requests.bookie_ids() == ["a", "b"]
            # A plain request takes nothing from one that is there.
            assert not await requests.request("a")
            assert await requests.leaving() == ["a", "b"]
            await requests.withdraw("a")
            await metadata.tree.set(own_paths.read_only_request_path(metadata.own_root, "b"), b"of a later format")
            assert await requests.leaving() == []
            assert await requests.is_requested("b")

    run(body())


def test_a_change_of_a_request_is_undone_unless_another_followed() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            requests, tree = metadata.read_only_requests, metadata.tree
            path = own_paths.read_only_request_path(metadata.own_root, "a")
            made = await requests.change("a", leaving=True)
            assert made is not None
            assert made.before is None
            await requests.undo("a", made)
            assert await requests.bookie_ids() == []
            await requests.undo("a", made)
            await tree.create(path, b"of a later format", parents=True)
            marked = await requests.change("a", leaving=True)
            assert marked is not None
            assert await requests.change("a", leaving=True) is None
            await requests.undo("a", marked)
            assert (await tree.get(path))[0] == b"of a later format"
            await tree.set(path, b"of another operator")
            await requests.undo("a", marked)
            await requests.undo("a", made)
            assert (await tree.get(path))[0] == b"of another operator"

    run(body())


def test_a_change_whose_answer_was_lost_can_be_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            requests, lost = metadata.read_only_requests, list[str]()
            create, set_data = MemoryTree.create, MemoryTree.set

            async def create_unheard(tree: MemoryTree, path: str, *arguments: Any, **options: Any) -> str:
                made = await create(tree, path, *arguments, **options)
                if "readonly" in path and not lost:
                    lost.append(path)
                    raise ConnectionLost("the answer is lost")
                return made

            async def set_unheard(tree: MemoryTree, path: str, *arguments: Any) -> Stat:
                stat = await set_data(tree, path, *arguments)
                if len(lost) == 1:
                    lost.append(path)
                    raise ConnectionLost("the answer is lost")
                return stat

            monkeypatch.setattr(MemoryTree, "create", create_unheard)
            monkeypatch.setattr(MemoryTree, "set", set_unheard)
            made = await requests.change("a", leaving=False)
            assert made is not None
            assert made.before is None
            marked = await requests.change("a", leaving=True)
            assert marked is not None
            assert marked.before == made.after
            assert len(lost) == 2

    run(body())


def test_a_cookie_is_deleted_only_while_the_request_is_unchanged() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            requests, cookies = metadata.read_only_requests, metadata.cookies
            await cookies.put(Cookie("a", "/j", ("/l",), metadata.instance_id))
            assert await requests.read("a") is None
            await requests.request("a")
            first = await requests.read("a")
            assert first is not None
            for change in (requests.request("a", leaving=True), requests.withdraw("a")):
                await change
                with pytest.raises(BadVersion, match="a stays"):
                    await cookies.delete("a", checks=[requests.unchanged("a", first)])
                assert await cookies.bookie_ids() == ["a"]
            await requests.request("a")
            second = await requests.read("a")
            assert second is not None
            for _ in range(2):
                await cookies.delete("a", checks=[requests.unchanged("a", second)])
            assert await cookies.bookie_ids() == []

    run(body())
