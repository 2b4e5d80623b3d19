"""A database whose log has lost its open ledger goes on where its copy stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.sql.cluster import Cluster, play, run
from triplicate.cli.data_commands.log_upkeep import explain_end
from triplicate.errors import LogReserved
from triplicate.log import Purpose, PurposeKind
from triplicate.sql import database_info


def test_a_database_whose_open_ledger_is_gone_goes_on_where_its_copy_stands(tmp_path: Path) -> None:
    async def scene(cluster: Cluster) -> None:
        database = await cluster.leader()
        session = await database.session()
        await run(session, "create table t(a)")
        for number in range(3):
            await run(session, "insert into t values($1)", (number,))
        client = cluster.client("operator")
        logs = cluster.logs["operator"]
        info = await database_info(client, "db")
        head = await logs.head(info.log)
        assert head.open is not None
        await client.delete(head.open.ledger_id)
        position = database.position
        await cluster.nodes.pop("n1").stop()
        found = await logs.examine(info.log)
        assert found.open_is_lost
        message = await explain_end(client, info.log, found)
        assert "belongs to database 'db'" in message
        assert "give its position as --end, at least 0 (no node reports a position)" in message
        with pytest.raises(LogReserved):
            await logs.repair(info.log, end=position)
        await logs.acting_for(Purpose(PurposeKind.DATABASE, "db")).repair(info.log, end=position)
        await cluster.start("n1")
        session = await (await cluster.leader()).session()
        await run(session, "insert into t values(3)")
        assert await run(session, "select a from t order by a") == [(0,), (1,), (2,), (3,)]
        assert (await logs.examine(info.log)).holes == ((0, position),)

    play(tmp_path, scene, nodes=1)
