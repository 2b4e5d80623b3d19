"""A log that belongs to a database, or to anything else that is not its user's own, is changed only by what it belongs to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.unit.log.fake import Stage, play, read_values
from triplicate.errors import ArgumentError, LogReserved
from triplicate.log import USER, Logs, LogSettings, Purpose, PurposeKind, StagingOrigin

DATABASE = Purpose(PurposeKind.DATABASE, "shop")
LOG = "database.shop.0011aabb"


async def _append(logs: Logs) -> None:
    async with await logs.writer(LOG, owner="w") as writer:
        await writer.append(b"x")


VERBS: dict[str, Callable[[Logs], Awaitable[Any]]] = {
    "writer": _append,
    "truncate": lambda logs: logs.truncate(LOG, 1),
    "retain": lambda logs: logs.retain(LOG),
    "staging": lambda logs: logs.staging(StagingOrigin(LOG)),
    "publish": lambda logs: logs.publish(LOG, []),
    "delete": lambda logs: logs.delete(LOG),
    "delete by force": lambda logs: logs.delete(LOG, force=True),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_log_of_a_database_is_changed_only_for_the_database(verb: str) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(LOG, purpose=DATABASE)
        owner = logs.acting_for(DATABASE)
        await _append(owner)
        before = (await logs.head(LOG), sorted(stage.bookies.ledgers))
        for stranger in (
            logs,
            logs.acting_for(Purpose(PurposeKind.DATABASE, "other")),
            logs.acting_for(Purpose(PurposeKind.PIPELINE, "shop")),
        ):
            with pytest.raises(LogReserved, match=r"database 'shop'.*triplicate sql shop.*triplicate database drop shop"):
                await VERBS[verb](stranger)
        assert (await logs.head(LOG), sorted(stage.bookies.ledgers)) == before
        assert await read_values(logs, LOG, 0, 1) == [b"x"]
        assert await logs.owner(LOG) is None
        await VERBS[verb](owner)

    play(scene)


@pytest.mark.parametrize(
    ("kind", "instead"), [(PurposeKind.KEY_VALUE, "store of that name"), (PurposeKind.PIPELINE, "pipeline of that name")]
)
def test_logs_of_other_kinds_name_their_owner(kind: PurposeKind, instead: str) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l", purpose=Purpose(kind, "mine"))
        with pytest.raises(LogReserved, match=rf"{kind.value} 'mine'.*{instead}"):
            await logs.delete("l")
        await logs.acting_for(Purpose(kind, "mine")).delete("l")

    play(scene)


def test_a_deletion_that_was_interrupted_is_finished_by_the_owner_only() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create(LOG, purpose=DATABASE)
        owner = logs.acting_for(DATABASE)
        await _append(owner)
        client = stage.client_of(logs)
        delete = client.delete

        async def refuse(ledger_id: int, **_: object) -> None:
            raise OSError("not now")

        client.delete = refuse  # type: ignore[method-assign]
        with pytest.raises(OSError, match="not now"):
            await owner.delete(LOG)
        client.delete = delete  # type: ignore[method-assign]
        with pytest.raises(LogReserved):
            await logs.delete(LOG)
        await owner.delete(LOG)
        assert stage.bookies.ledgers == {}

    play(scene)


def test_a_users_log_is_changed_by_everyone() -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        await logs.create("l")
        async with await logs.acting_for(DATABASE).writer("l", owner="w") as writer:
            await writer.append(b"x")
        assert (await logs.head("l")).purpose == USER
        await logs.delete("l")

    play(scene)


@pytest.mark.parametrize("settings", [LogSettings(retain_age_s=60.0), LogSettings(retain_size_bytes=1 << 30)])
def test_the_log_of_a_database_takes_no_retention_since_its_snapshots_decide_what_goes(settings: LogSettings) -> None:
    async def scene(stage: Stage) -> None:
        logs = stage.logs()
        with pytest.raises(ArgumentError, match="snapshot"):
            await logs.create(LOG, settings, purpose=DATABASE)
        assert await logs.names() == []
        await logs.create("l", settings)

    play(scene)
