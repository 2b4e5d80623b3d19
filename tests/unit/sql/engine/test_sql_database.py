"""The entries of the log that a follower applies to its copy, and those that change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sql.cluster import Cluster, fill, play
from tests.waiting import eventually
from triplicate.sql.engine.local_copy import LocalCopy
from triplicate.sql.storage.applier import LogBatch
from triplicate.sql.storage.sqlite_file import open_reader, read_state


def test_a_no_op_changes_nothing_and_a_new_epoch_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    applied: list[Sequence[LogBatch]] = []
    apply = LocalCopy.apply

    def noted(self: LocalCopy, batches: Sequence[LogBatch]) -> Any:
        applied.append(batches)
        return apply(self, batches)

    monkeypatch.setattr(LocalCopy, "apply", noted)

    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 3)
        leader, other = cluster.leader_name(), "n2" if cluster.leader_name() == "n1" else "n1"
        follower = await cluster.caught_up(other, position)
        applied.clear()
        leadership = cluster.database(leader).leadership
        assert leadership is not None
        for _ in range(5):
            await leadership.reads.noop()
        await fill(cluster, 1)
        await cluster.caught_up(other, position + 1)
        assert [[len(batch.records) for batch in batches if batch.records] for batches in applied] == [[1]]
        await cluster.nodes.pop(leader).stop()
        await eventually(lambda: follower.is_leader)
        connection = open_reader(follower.path)
        assert read_state(connection).epoch == 2
        connection.close()

    play(tmp_path, scene, nodes=2)


def test_a_follower_stores_the_epoch_of_a_leader_that_has_not_written(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        position = await fill(cluster, 1)
        leader = cluster.leader_name()
        followers = [name for name in cluster.nodes if name != leader]
        for name in followers:
            await cluster.caught_up(name, position)
        await cluster.nodes.pop(leader).stop()
        second = await cluster.leader(besides=leader)
        (other,) = [name for name in followers if cluster.database(name) is not second]
        connection = open_reader(cluster.database(other).path)
        await eventually(lambda: read_state(connection).epoch == 2)
        connection.close()

    play(tmp_path, scene, nodes=3)
