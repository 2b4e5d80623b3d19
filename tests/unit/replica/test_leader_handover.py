"""A request that another node lead goes with the call that made it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play
from tests.unit.log.head_rig import held_at
from triplicate.replica import hand_leader_over


def test_a_call_that_is_cancelled_while_it_makes_its_request_leaves_none() -> None:
    async def scene(stage: Stage) -> None:
        client: Any = stage.logs().client
        tree, path = client.metadata.tree, "/triplicate/replica"
        await tree.create(path, b"", parents=True)
        moving = await held_at(tree, "create", lambda: hand_leader_over(client, path, "n2", 5.0), ending="/handover")
        assert await tree.exists(f"{path}/handover") is not None
        moving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await moving
        assert await tree.exists(f"{path}/handover") is None

    play(scene)
