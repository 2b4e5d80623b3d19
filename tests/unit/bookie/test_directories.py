"""Directories that were wiped, belong to another cluster or are in use are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.bookie.bookie_rig import Rig, run_rig
from tests.unit.bookie.crash_rig import JOURNAL, LEDGERS, add_all, codec, lose, refuses_to_start
from triplicate.bookie import Bookie
from triplicate.errors import EnvironmentFault, WrongCluster
from triplicate.wire import Status


def test_a_wiped_directory_is_refused_with_the_cure() -> None:
    async def body(rig: Rig) -> None:
        await add_all(await rig.connect(), 5, 0, 2)
        rig.node.crash()
        for name in rig.files(LEDGERS):
            lose(rig, f"{LEDGERS}/{name}")
        await refuses_to_start(rig, WrongCluster, "wiped or is not mounted: mount the right disk")

    run_rig(body)


def test_a_directory_of_another_cluster_is_refused() -> None:
    async def body(rig: Rig) -> None:
        rig.node.crash()
        inode: Any = rig.disk.names.live[f"{JOURNAL}/VERSION"]
        text = bytes(inode.live.data)
        position = text.index(b"instanceId") + 14
        rig.disk.flip_bit(f"{JOURNAL}/VERSION", position, 1)
        await refuses_to_start(rig, WrongCluster, "says cluster .* the settings say")

    run_rig(body)


def test_a_second_bookie_on_the_same_directories_is_refused() -> None:
    async def body(rig: Rig) -> None:
        with pytest.raises(EnvironmentFault, match="another bookie runs on this directory"):
            await Bookie.start(rig.node.host.port, rig.bookie.settings, rig.bookie.parts.metadata)  # type: ignore[union-attr]
        assert await (await rig.connect()).add(codec(), 0) is Status.OK

    run_rig(body)
