"""Our drivers of the metadata tree give identical answers to any sequence of operations. The memory driver defines them.

ZooKeeper is held to the contract suite instead: its errors name other paths (the node asked for, not the parent that is missing).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.metadata.stores import DRIVERS, run, sessions
from triplicate.errors import ArgumentError, MetadataError
from triplicate.metadata import CheckVersion, CreateNode, DeleteNode, SetData, Stat, Tree, TreeOperation

NAMES = ("a", "b", "c-")
PATHS = st.lists(st.sampled_from(NAMES), min_size=0, max_size=3).map(lambda parts: "/" + "/".join(parts))
VERSIONS = st.sampled_from([-1, -1, 0, 1, 2])
DATA = st.binary(max_size=3)
SESSION = st.integers(0, 1)
OUR_DRIVERS = tuple(driver for driver in DRIVERS if driver != "zookeeper")


@dataclass(frozen=True)
class Call:
    """One call of a `Tree` method by one of the sessions; `reopen` closes the session and opens another in its place."""

    session: int
    method: str
    arguments: tuple[Any, ...]
    options: tuple[tuple[str, bool], ...] = ()


def calls() -> st.SearchStrategy[Call]:
    flags = st.fixed_dictionaries({"ephemeral": st.booleans(), "sequential": st.booleans(), "parents": st.booleans()})
    operation = st.one_of(
        st.builds(CreateNode, PATHS, DATA, st.booleans()),
        st.builds(SetData, PATHS, DATA, VERSIONS),
        st.builds(DeleteNode, PATHS, VERSIONS),
        st.builds(CheckVersion, PATHS, VERSIONS),
    )
    create = st.builds(
        lambda session, path, data, options: Call(session, "create", (path, data), tuple(options.items())), SESSION, PATHS, DATA, flags
    )
    return st.one_of(
        create,
        create,
        st.builds(lambda session, path, data, version: Call(session, "set", (path, data, version)), SESSION, PATHS, DATA, VERSIONS),
        st.builds(lambda session, path, version: Call(session, "delete", (path, version)), SESSION, PATHS, VERSIONS),
        st.builds(
            lambda session, method, path: Call(session, method, (path,)), SESSION, st.sampled_from(["get", "exists", "children"]), PATHS
        ),
        st.builds(lambda session, several: Call(session, "multi", (several,)), SESSION, st.lists(operation, max_size=4)),
        st.builds(lambda session: Call(session, "reopen", ()), SESSION),
    )


def plain(value: object, owners: dict[int, str]) -> object:
    """An answer without the parts that may differ between drivers: times and session ids."""
    if isinstance(value, Stat):
        return value.version, value.cversion, owners.get(value.ephemeral_owner, "unknown")
    if isinstance(value, tuple):
        return tuple(plain(part, owners) for part in value)
    return value


async def snapshot(tree: Tree, path: str, owners: dict[int, str]) -> dict[str, object]:
    found: dict[str, object] = {path: plain(await tree.get(path), owners)}
    for name in (await tree.children(path))[0]:
        found |= await snapshot(tree, path.rstrip("/") + "/" + name, owners)
    return found


async def answers(driver: str, sequence: list[Call]) -> list[object]:
    """The result or error of every call, and the whole tree at the end."""
    with tempfile.TemporaryDirectory() as folder:
        async with sessions(driver, Path(folder)) as open_session:
            trees = [await open_session(), await open_session()]
            owners = {0: "nobody", trees[0].session_id: "0/0", trees[1].session_id: "1/0"}
            outcome: list[object] = []
            for number, call in enumerate(sequence):
                if call.method == "reopen":
                    await trees[call.session].close()
                    trees[call.session] = await open_session()
                    owners[trees[call.session].session_id] = f"{call.session}/{number + 1}"
                    continue
                try:
                    result = await getattr(trees[call.session], call.method)(*call.arguments, **dict(call.options))
                except (MetadataError, ArgumentError) as error:
                    outcome.append((type(error).__name__, str(error)))
                else:
                    outcome.append(plain(result, owners))
            outcome.append(await snapshot(trees[0], "/", owners))
            return outcome


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(calls(), max_size=25))
def test_every_driver_gives_the_answers_of_the_memory_driver(sequence: list[Call]) -> None:
    expected, *others = [run(answers(driver, sequence)) for driver in OUR_DRIVERS]
    for other in others:
        assert other == expected


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(calls(), max_size=12), st.lists(st.builds(SetData, PATHS, DATA, VERSIONS), max_size=3))
def test_a_multi_that_fails_leaves_no_trace(sequence: list[Call], extra: list[TreeOperation]) -> None:
    async def body() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with sessions("memory", Path(folder)) as open_session:
                tree = await open_session()
                for call in sequence:
                    if call.method == "create":
                        try:
                            await tree.create(*call.arguments)
                        except (MetadataError, ArgumentError):
                            continue
                before = await snapshot(tree, "/", {0: "nobody", tree.session_id: "us"})
                steps: list[TreeOperation] = [
                    CreateNode("/new"),
                    CreateNode("/new/child"),
                    *extra,
                    DeleteNode("/new/child"),
                    CheckVersion("/missing"),
                ]
                try:
                    await tree.multi(steps)
                except (MetadataError, ArgumentError):
                    assert await snapshot(tree, "/", {0: "nobody", tree.session_id: "us"}) == before
                else:
                    raise AssertionError("the last check cannot succeed")

    run(body())
