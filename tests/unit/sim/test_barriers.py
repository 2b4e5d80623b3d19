"""Fault points under simulation: counting, holding and striking, and that nothing is left of it."""

from __future__ import annotations

import asyncio
import inspect
import sys
import types
from collections.abc import Iterator

import pytest

from triplicate.errors import ArgumentError
from triplicate.runtime import fault_point
from triplicate.sim.barriers import FaultPoints, points_known
from triplicate.sim.host import NodeDied, SimulatedHost, World

DONE: list[str] = []


class Product:
    """Stands for a class of the product."""

    def __init__(self, name: str) -> None:
        self.name = name

    @fault_point("test_sim.write")
    async def write(self, number: int = 0) -> str:
        DONE.append(f"{self.name} {number}")
        return self.name

    @fault_point("test_sim.count")
    def count(self) -> int:
        DONE.append(f"{self.name} counts")
        return 7

    @staticmethod
    @fault_point("test_sim.static")
    def static(value: int) -> int:
        return value

    @classmethod
    @fault_point("test_sim.maker")
    async def maker(cls, name: str) -> Product:
        return cls(name)


@fault_point("test_sim.function")
async def function() -> str:
    return "function"


PLAIN_WRITE, PLAIN_COUNT = Product.write, Product.count


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    DONE.clear()
    yield
    if FaultPoints._installed is not None:
        FaultPoints._installed.uninstall()


async def write_many(product: Product, count: int) -> None:
    for number in range(count):
        await product.write(number)
        await asyncio.sleep(0.1)


def test_points_are_known_by_name() -> None:
    ours = [name for name in points_known() if name.startswith("test_sim.")]
    assert ours == ["test_sim.count", "test_sim.function", "test_sim.maker", "test_sim.static", "test_sim.write"]


def test_visits_are_counted_and_results_and_arguments_pass_through() -> None:
    world = World(1)

    async def main() -> None:
        host = world.start_host("a")
        product = await host.call(Product.maker("a"))
        assert await host.call(product.write(number=5)) == "a"
        assert (product.count(), Product.static(3)) == (7, 3)
        assert await function() == "function"

    world.run(main())
    reached = {name: count for name, count in world.points.reached.items() if name.startswith("test_sim.")}
    assert reached == {"test_sim.write": 1, "test_sim.count": 1, "test_sim.static": 1, "test_sim.maker": 1, "test_sim.function": 1}
    assert inspect.iscoroutinefunction(Product.write)
    world.close()


def test_outside_a_world_the_functions_are_the_very_same() -> None:
    world = World(1)
    assert Product.write is not PLAIN_WRITE
    world.close()
    assert Product.write is PLAIN_WRITE
    assert Product.count is PLAIN_COUNT
    assert isinstance(vars(Product)["static"], staticmethod)


def test_a_world_that_was_never_closed_gives_way_to_the_next_and_takes_the_points_back_when_it_runs() -> None:
    first = World(1)
    second = World(2)
    Product("a").count()
    assert (first.points.reached["test_sim.count"], second.points.reached["test_sim.count"]) == (0, 1)

    async def main() -> None:
        Product("a").count()

    first.run(main())
    assert (first.points.reached["test_sim.count"], second.points.reached["test_sim.count"]) == (1, 1)
    second.close()
    assert Product.count is not PLAIN_COUNT
    first.close()
    assert Product.count is PLAIN_COUNT


def test_a_patch_put_in_place_meanwhile_is_neither_undone_nor_wrapped_twice() -> None:
    def patched(self: Product) -> int:
        return 8

    World(1)
    wrapped = Product.count
    Product.count = patched  # type: ignore[method-assign]
    try:
        second = World(2)
        assert Product("a").count() == 8
        assert second.points.reached["test_sim.count"] == 1
        second.close()
        assert Product.count is patched
    finally:
        Product.count = wrapped  # type: ignore[method-assign]
    third = World(3)
    assert Product("a").count() == 7
    assert third.points.reached["test_sim.count"] == 1
    third.close()
    assert Product.count is PLAIN_COUNT


def test_a_function_that_other_modules_imported_by_name_is_watched_there_too() -> None:
    package = __name__.partition(".")[0]
    borrower = types.ModuleType(f"{package}.borrower")
    borrower.borrowed = function  # type: ignore[attr-defined]
    sys.modules[borrower.__name__] = borrower
    try:
        world = World(1)

        async def main() -> None:
            assert await borrower.borrowed() == "function"

        world.run(main())
        assert world.points.reached["test_sim.function"] == 1
        world.close()
        assert borrower.borrowed is function
    finally:
        del sys.modules[borrower.__name__]


def test_a_barrier_holds_callers_before_the_body_runs() -> None:
    world = World(1)

    async def main() -> None:
        host = world.start_host("a")
        barrier = world.points.hold("test_sim.write")
        first = host.start(Product("a").write(1))
        second = host.start(Product("a").write(2))
        assert not barrier.reached.is_set()
        await barrier.reached
        await asyncio.sleep(5.0)
        assert DONE == []
        assert barrier.waiting == ["a", "a"]
        barrier.release()
        assert (await first, await second) == ("a", "a")
        assert DONE == ["a 1", "a 2"]
        await host.call(Product("a").write(3))
        barrier.release()
        assert barrier.waiting == []

    world.run(main())
    assert [fact.kind for fact in world.recorder.facts if fact.kind.startswith("point")] == ["point.held", "point.held", "point.released"]
    world.close()


def test_a_barrier_is_for_one_node_and_lets_some_pass_first() -> None:
    world = World(1)

    async def main() -> None:
        a, b = world.start_host("a"), world.start_host("b")
        barrier = world.points.hold("test_sim.write", node="b", skip=2)
        await a.call(write_many(Product("a"), 5))
        waits = b.start(write_many(Product("b"), 5))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await barrier.reached
        await barrier.reached
        await asyncio.sleep(1.0)
        assert DONE[5:] == ["b 0", "b 1"]
        barrier.release()
        await waits
        assert len(DONE) == 10

    world.run(main())
    world.close()


def test_who_is_cancelled_or_killed_at_a_barrier_leaves_it() -> None:
    world = World(1)

    async def main() -> None:
        a, b = world.start_host("a"), world.start_host("b")
        barrier = world.points.hold("test_sim.write")
        cancelled = a.start(Product("a").write())
        b.start(Product("b").write())
        await barrier.reached
        await asyncio.sleep(0.1)
        cancelled.cancel()
        b.crash()
        await asyncio.sleep(0.1)
        barrier.release()
        await asyncio.sleep(0.1)
        assert cancelled.cancelled()
        assert DONE == []

    world.run(main())
    assert world.loop.failures == []
    world.close()
    assert DONE == []


def test_a_trap_is_sprung_once_before_the_body_runs() -> None:
    world = World(1)
    seen: list[tuple[str, list[str]]] = []

    async def main() -> None:
        host = world.start_host("a")
        trap = world.points.trap("test_sim.count", lambda node: seen.append((node, list(DONE))), skip=1)
        product = Product("a")

        async def node() -> None:
            for _ in range(4):
                product.count()

        await host.call(node())
        assert trap.fired
        product.count()

    world.run(main())
    assert seen == [("a", ["a counts"])]
    world.close()


@pytest.mark.parametrize("name", ["test_sim.write", "test_sim.count"])
def test_a_trap_may_crash_the_node_and_nothing_of_the_body_runs(name: str) -> None:
    world = World(1)

    async def both(host: SimulatedHost) -> None:
        product = Product(host.name)
        await product.write()
        product.count()

    async def main() -> None:
        host, other = world.start_host("a"), world.start_host("b")
        world.points.trap(name, lambda _: host.crash(), node="a")
        with pytest.raises(NodeDied):
            await host.call(both(host))
        assert not host.alive
        await other.call(both(other))

    world.run(main())
    assert [line for line in DONE if line.startswith("a")] == ([] if name == "test_sim.write" else ["a 0"])
    assert world.loop.failures == []
    world.close()


def test_what_a_trap_starts_outlives_the_node() -> None:
    world = World(1)

    async def main() -> None:
        host = world.start_host("a")
        again: list[SimulatedHost] = []

        def strike(_: str) -> None:
            host.crash()
            world.loop.call_later(1.0, lambda: again.append(world.start_host("a")))

        world.points.trap("test_sim.write", strike)
        with pytest.raises(NodeDied):
            await host.call(Product("a").write())
        await asyncio.sleep(2.0)
        assert await again[0].call(Product("a").write()) == "a"

    world.run(main())
    world.close()


def test_a_removed_trap_has_no_effect() -> None:
    world = World(1)
    world.points.trap("test_sim.count", lambda node: DONE.append("struck")).cancel()
    Product("a").count()
    assert DONE == ["a counts"]
    world.close()


def test_what_runs_outside_every_node_is_the_world() -> None:
    world = World(1)
    seen: list[str] = []
    world.points.trap("test_sim.count", seen.append, node="world")
    Product("a").count()
    assert seen == ["world"]
    world.close()


def test_unknown_points_and_barriers_on_plain_functions_are_refused_by_name() -> None:
    world = World(1)
    with pytest.raises(ArgumentError, match=r"no fault point 'test_sim.wriet'; known are: .*test_sim.write"):
        world.points.hold("test_sim.wriet")
    with pytest.raises(ArgumentError, match="no fault point"):
        world.points.trap("nowhere", print)
    with pytest.raises(ArgumentError, match=r"test_sim.count is a plain function"):
        world.points.hold("test_sim.count")
    world.close()


def test_a_node_paused_at_a_point_goes_no_further_until_it_is_resumed() -> None:
    world = World(1)

    async def main() -> None:
        host = world.start_host("a")
        world.points.trap("test_sim.write", lambda _: world.loop.pause(host.life))
        task = host.start(Product("a").write())
        await asyncio.sleep(10.0)
        assert DONE == []
        world.loop.resume(host.life)
        await task
        assert DONE == ["a 0"]

    world.run(main())
    world.close()
