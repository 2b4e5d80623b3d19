"""The clock of the stages: self times, waits that do not count, and names that are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from benchmarks.sql.stages import REST, STAGES, TABLE, StageClock, StageMissing, find, install
from tests.unit.benchmarks.sql import staged_rig


class Ticks:
    """Nanoseconds that a test moves."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


def clock_of(ticks: Ticks) -> StageClock:
    return StageClock(clock=ticks)


def spending(ticks: Ticks, nanoseconds: int, then: Callable[[], object] = int) -> Callable[[], None]:
    def spend() -> None:
        ticks.now += nanoseconds
        then()
        ticks.now += nanoseconds

    return spend


def test_time_in_an_inner_stage_does_not_count_for_the_outer_one() -> None:
    ticks = Ticks()
    clock = clock_of(ticks)
    inner = clock.wrap("capture", spending(ticks, 5))
    outer = clock.wrap("SQLite", spending(ticks, 100, inner))
    outer()
    ticks.now += 1000
    outer()
    assert clock.seconds() == pytest.approx({**dict.fromkeys(STAGES, 0.0), "SQLite": 400e-9, "capture": 20e-9})
    assert clock.calls()["capture"] == clock.calls()["SQLite"] == 2


def test_what_belongs_to_no_stage_does_not_count_for_the_stage_that_calls_it() -> None:
    ticks = Ticks()
    clock = clock_of(ticks)
    clock.wrap("socket", spending(ticks, 10, clock.wrap(REST, spending(ticks, 500, clock.wrap("parse", spending(ticks, 1))))))()
    assert clock.seconds() == pytest.approx({**dict.fromkeys(STAGES, 0.0), "socket": 20e-9, "parse": 2e-9})


def test_an_error_ends_the_stage() -> None:
    ticks = Ticks()
    clock = clock_of(ticks)

    def fail() -> None:
        ticks.now += 7
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        clock.wrap("parse", fail)()
    ticks.now += 100
    clock.wrap("plan", spending(ticks, 1))()
    assert clock.seconds()["parse"] == pytest.approx(7e-9)


def test_a_coroutine_counts_while_it_runs_and_not_while_it_waits() -> None:
    ticks = Ticks()
    clock = clock_of(ticks)

    async def append(value: int) -> int:
        ticks.now += 10
        await asyncio.sleep(0)
        ticks.now += 20
        return value

    async def wait_beside() -> None:
        ticks.now += 1000
        await asyncio.sleep(0)

    async def main() -> None:
        beside = asyncio.get_running_loop().create_task(wait_beside())
        assert await clock.wrap("log", append)(3) == 3
        await beside
        assert clock.seconds()["log"] == pytest.approx(30e-9)
        assert await asyncio.get_running_loop().create_task(clock.wrap("log", append)(4)) == 4

    asyncio.run(main())


def test_a_timed_coroutine_is_cancelled_like_any_other() -> None:
    clock = StageClock()
    ended: list[str] = []

    async def wait() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("cleaned up")

    async def main() -> None:
        task = asyncio.get_running_loop().create_task(clock.wrap("log", wait)())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["cleaned up"]


def test_the_cost_of_the_clock_is_subtracted_from_the_stage_and_from_its_caller() -> None:
    ticks = Ticks()

    def reading() -> int:
        ticks.now += 3
        return ticks.now

    clock = StageClock(clock=reading)
    assert (clock.inside_ns, clock.outside_ns) == pytest.approx((3, 3), abs=0.1)
    inner = clock.wrap("parse", spending(ticks, 10))
    clock.wrap("socket", spending(ticks, 50, inner))()
    assert clock.seconds()["parse"] == pytest.approx(20e-9, abs=1e-9)
    assert clock.seconds()["socket"] == pytest.approx(100e-9, abs=1e-9)
    assert clock.cost_s() == pytest.approx(12e-9, abs=1e-9)


def test_a_function_is_wrapped_where_it_was_imported_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("double", "use"):
        monkeypatch.setattr(staged_rig, name, getattr(staged_rig, name))
    monkeypatch.setattr(staged_rig, "imported_double", staged_rig.double)
    clock = StageClock()
    install(clock, {"parse": (f"{staged_rig.__name__}:double",)}, prefix="tests")
    assert staged_rig.use(4) == 8
    assert clock.calls()["parse"] == 1


@pytest.mark.parametrize(
    "name", ["triplicate.gone:call", "triplicate.sql:gone", "triplicate.sql:SqlDatabase.gone", f"{staged_rig.__name__}:numbers"]
)
def test_a_function_that_is_gone_is_an_error_that_names_it(name: str) -> None:
    with pytest.raises(StageMissing, match=f"stage parse names {name}"):
        install(StageClock(), {"parse": (name,)})


def test_the_table_names_functions_of_the_library() -> None:
    assert set(TABLE) == {*STAGES, REST}
    assert all(callable(find(stage, name).function) for stage, names in TABLE.items() for name in names)
