"""A simulated cluster with one database, and scenarios that run in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from triplicate.errors import SqlError
from triplicate_simulator import WORKLOADS, Plan, Result, run_seed
from triplicate_simulator.workloads.sql.sql_clients import run_session
from triplicate_simulator.workloads.sql.sql_load import DatabaseLoad
from triplicate_simulator.workloads.sql.sql_model import ClientSession
from triplicate_simulator.workloads.sql.sql_nodes import DatabaseServer
from triplicate_simulator.workloads.sql.sql_operations import ClientOperation
from triplicate_simulator.workloads.sql.sql_workload import SqlWorkload

Scenario = Callable[[SqlWorkload], Awaitable[None]]

QUIET = DatabaseLoad(
    nodes=3,
    talkers=0,
    watchers=0,
    pause_mean_s=1.0,
    timeout_s=30.0,
    registers=1,
    roll_size_bytes=1024 * 1024,
    roll_age_s=7200.0,
    tables=False,
    leader_strikes=(),
)
REGISTER = "register0"
PATIENCE_S = 30.0


def run_scenario(monkeypatch: pytest.MonkeyPatch, scenario: Scenario, seed: int = 7, load: DatabaseLoad = QUIET) -> Result:
    """Run a scenario in a cluster without other faults and clients; all checkers run as in any seed."""

    class ScenarioWorkload(SqlWorkload):
        async def begin(self) -> None:
            await super().begin()
            await scenario(self)

    monkeypatch.setitem(WORKLOADS, "databases", ScenarioWorkload)
    result = run_seed(seed, Plan("databases", load, duration_s=1.0))
    assert result.ok, str(result)
    return result


async def leader(of: SqlWorkload, besides: DatabaseServer | None = None) -> DatabaseServer:
    """A node that considers itself the leader; waits for one."""
    while True:
        for replica in of.model.leaders():
            if replica.server is not besides:
                return replica.server
        await asyncio.sleep(0.01)


async def write(session: ClientSession, value: int) -> None:
    async with session.attempt(session.model.token("put")) as attempt:
        attempt.invoke(REGISTER, "write", (value,))
        attempt.note_commit_requested()
        await session.rows("update registers set value = ?, token = ? where name = ?", value, attempt.token, REGISTER)


def writing(value: int) -> ClientOperation:
    async def work(session: ClientSession) -> None:
        await write(session, value)

    return work


async def at(of: SqlWorkload, server: DatabaseServer, work: ClientOperation) -> str:
    """Run an operation at a node; return '' if it succeeded, otherwise its SQLSTATE or ``gone``."""
    outcome = ""

    async def noting(session: ClientSession) -> None:
        nonlocal outcome
        try:
            await work(session)
        except SqlError as error:
            outcome = error.sqlstate

    if not await run_session(of.model, "client", server, of.context.rng("client"), noting, PATIENCE_S):
        outcome = "gone"
    return outcome


async def read(session: ClientSession) -> None:
    await session.read_register(REGISTER)


async def seen(of: SqlWorkload, server: DatabaseServer) -> int:
    """The register's value as read from a node."""
    values: list[int] = []

    async def look(session: ClientSession) -> None:
        values.append(await session.read_register(REGISTER))

    assert await run_session(of.model, "client", server, of.context.rng("client"), look, PATIENCE_S)
    return values[0]
