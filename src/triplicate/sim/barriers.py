"""Fault points under simulation: count visits, hold a node at a named moment, or call a function there.

The code names its moments with `runtime.fault_point`, which leaves nothing behind. While a world exists, `FaultPoints` replaces the named
functions on their owners by wrappers that check which life is running. Afterwards the functions are restored. Worlds do not overlap in one
process, so one at a time holds the wrappers.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from triplicate.errors import ArgumentError
from triplicate.runtime import FaultPoint, fault_points
from triplicate.sim.recorder import Recorder
from triplicate.sim.virtual_loop import LIFE, Life, context_of

WORLD = "world"
"""The node name of code that runs outside every node."""

_MARK = "__fault_point__"
"""Set on a wrapper, to itself, so that no wrapper is wrapped again; `functools.wraps` copies it to functions that are no wrappers."""


def points_known() -> tuple[str, ...]:
    """Sorted names of all fault points of the modules imported so far."""
    return tuple(sorted(fault_points()))


class _PointPlace(NamedTuple):
    """Where a fault point is: the attribute of a module or class, and what it holds."""

    point: FaultPoint
    owner: Any
    attribute: str
    found: Any


class _Replacement(NamedTuple):
    """An attribute that holds a wrapper in the place of a named function."""

    owner: Any
    attribute: str
    original: Any
    wrapper: Any

    def undo(self) -> None:
        """Restore the function, unless other code has replaced the wrapper meanwhile."""
        if vars(self.owner).get(self.attribute) is self.wrapper:
            setattr(self.owner, self.attribute, self.original)


class _Watch:
    """A watch for visits of a fault point."""

    def __init__(self, name: str, node: str | None, skip: int) -> None:
        self.name = name
        self._node = node
        self._skip = skip

    def matches(self, node: str) -> bool:
        """Whether this visit counts. Counts down the visits to be skipped."""
        if self._node is not None and node != self._node:
            return False
        if self._skip > 0:
            self._skip -= 1
            return False
        return True


class Arrival:
    """The type of `Barrier.reached`. Any number of tasks may await it, any number of times."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __await__(self) -> Generator[Any, None, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        await self._event.wait()

    def is_set(self) -> bool:
        """Whether it has happened."""
        return self._event.is_set()

    def set(self) -> None:
        """Wake all waiters."""
        self._event.set()


class Barrier(_Watch):
    """Holds every visitor of a fault point before the function's body, until `release`."""

    def __init__(self, points: FaultPoints, name: str, node: str | None, skip: int) -> None:
        super().__init__(name, node, skip)
        self.reached = Arrival()
        """Await it to wait for the first visitor, which may have been killed or cancelled meanwhile: see `waiting`."""
        self.waiting: list[str] = []
        """Nodes held now, in the order of arrival. A node appears twice if two of its tasks are held."""
        self._points = points
        self._open = asyncio.Event()

    def release(self) -> None:
        """Release all held nodes, in the order of arrival, and remove the barrier. Idempotent."""
        if not self._open.is_set():
            self._open.set()
            self._points.remove(self)
            self._points.record_event(WORLD, "point.released", self.name)

    async def hold_visitor(self, node: str, life: Life | None) -> None:
        """Wait, as the node that arrived."""
        self._points.record_event(node, "point.held", self.name)
        self.waiting.append(node)
        self.reached.set()
        try:
            await self._open.wait()
        finally:
            self.waiting.remove(node)
        if life is not None:
            life.check()


class Trap(_Watch):
    """Calls a function at the first visit of a fault point, once."""

    def __init__(self, points: FaultPoints, name: str, callback: Callable[[str], object], node: str | None, skip: int) -> None:
        super().__init__(name, node, skip)
        self.fired = False
        self._points = points
        self._callback = callback

    def cancel(self) -> None:
        """Remove the trap. No effect once it has fired."""
        self._points.remove(self)

    def fire(self, node: str, life: Life | None) -> None:
        """Call the function in the world's own context: tasks that it starts must outlive the node.

        Raises:
            HostCrashed: the call killed the visiting node.
        """
        self.fired = True
        self._points.remove(self)
        self._points.record_event(node, "point.struck", self.name)
        context_of(None).run(self._callback, node)
        if life is not None:
            life.check()


class FaultPoints:
    """A world's access to the fault points: `world.points`."""

    _installed: FaultPoints | None = None

    def __init__(self, recorder: Recorder) -> None:
        self.reached: dict[str, int] = {}
        """Visits of each point, by name. Zero for points never reached."""
        self._recorder = recorder
        self._watches: dict[str, list[Barrier | Trap]] = {}
        self._replaced: dict[str, list[_Replacement]] = {}
        """By name of the point."""

    def hold(self, name: str, *, node: str | None = None, skip: int = 0) -> Barrier:
        """Put a barrier across a point of an async function.

        Args:
            node: hold only this node. None holds any.
            skip: visits (of that node) to let pass first.

        Raises:
            ArgumentError: there is no such point, or its function is not async and cannot wait.
        """
        point = self._point(name)
        if not point.is_async:
            raise ArgumentError(f"fault point {name} is a plain function ({point.qualified_name}), which cannot wait: strike it instead")
        barrier = Barrier(self, name, node, skip)
        self._watches[name].append(barrier)
        return barrier

    def trap(self, name: str, callback: Callable[[str], object], *, node: str | None = None, skip: int = 0) -> Trap:
        """Call `callback(node name)` once, right before the function's body runs. The callback may crash or pause the node.

        A node paused there goes no further if the function is async. Otherwise the running code continues to its next wait.

        Raises:
            ArgumentError: there is no such point.
        """
        self._point(name)
        trap = Trap(self, name, callback, node, skip)
        self._watches[name].append(trap)
        return trap

    def install(self) -> None:
        """Wrap the points that are not wrapped yet. Another world that never restored its wrappers loses them."""
        before = FaultPoints._installed
        if before is not None and before is not self:
            before.uninstall()
        FaultPoints._installed = self
        places = [_place_of(point) for name, point in fault_points().items() if name not in self._replaced]
        elsewhere = _further_names(places)
        for place in places:
            name = place.point.name
            self._watches.setdefault(name, [])
            self.reached.setdefault(name, 0)
            self._replaced[name] = self._replace(place, elsewhere.get(id(place.found), ()))

    def uninstall(self) -> None:
        """Restore the functions. Attributes that were replaced by other code meanwhile are left alone."""
        for replaced in self._replaced.values():
            for each in replaced:
                each.undo()
        self._replaced.clear()
        if FaultPoints._installed is self:
            FaultPoints._installed = None

    def remove(self, watch: Barrier | Trap) -> None:
        """Remove a barrier or trap."""
        watches = self._watches[watch.name]
        if watch in watches:
            watches.remove(watch)

    def record_event(self, node: str, kind: str, point: str) -> None:
        """Record an event at a point."""
        self._recorder.fact(node, kind, {"point": point})

    def _point(self, name: str) -> FaultPoint:
        point = fault_points().get(name)
        if point is None:
            raise ArgumentError(f"there is no fault point {name!r}; known are: {', '.join(points_known()) or 'none'}")
        if FaultPoints._installed is not self or name not in self._replaced:
            self.install()
        return point

    def _replace(self, place: _PointPlace, elsewhere: Sequence[tuple[Any, str]]) -> list[_Replacement]:
        """Put a wrapper in the place of a function.

        Args:
            elsewhere: further modules and names under which it is called.
        """
        original = place.found
        kind = type(original) if isinstance(original, staticmethod | classmethod) else None
        function = original if kind is None else original.__func__
        if not callable(function):
            raise ArgumentError(
                f"fault point {place.point.name}: {place.point.qualified_name} is no function but {type(function).__name__}"
            )
        if _is_wrapper(function):
            # A wrapper of an earlier world that another patch has preserved: the function itself is restored later.
            function = _unwrapped(function)
            original = function if kind is None else kind(function)
        wrap = self._wrap_async if place.point.is_async else self._wrap
        wrapper = wrap(place.point.name, function)
        setattr(wrapper, _MARK, wrapper)
        wrapper = wrapper if kind is None else kind(wrapper)
        replaced = [_Replacement(owner, attribute, original, wrapper) for owner, attribute in ((place.owner, place.attribute), *elsewhere)]
        for each in replaced:
            setattr(each.owner, each.attribute, wrapper)
        return replaced

    def _wrap(self, name: str, function: Any) -> Any:
        counts, watches = self.reached, self._watches[name]

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            if watches:
                self._visit(watches)
            return function(*args, **kwargs)

        return wrapper

    def _wrap_async(self, name: str, function: Any) -> Any:
        counts, watches = self.reached, self._watches[name]

        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            if watches:
                await self._visit_async(watches)
            return await function(*args, **kwargs)

        return wrapper

    def _visit(self, watches: list[Barrier | Trap]) -> None:
        life = LIFE.get()
        node = WORLD if life is None else life.name
        for watch in list(watches):
            if isinstance(watch, Trap) and watch.matches(node):
                watch.fire(node, life)

    async def _visit_async(self, watches: list[Barrier | Trap]) -> None:
        life = LIFE.get()
        node = WORLD if life is None else life.name
        for watch in list(watches):
            if watch not in watches or not watch.matches(node):
                continue
            if isinstance(watch, Barrier):
                await watch.hold_visitor(node, life)
            else:
                watch.fire(node, life)
                if life is not None and life.paused:
                    await asyncio.sleep(0)


def _place_of(point: FaultPoint) -> _PointPlace:
    *path, attribute = point.qualified_name.split(".")
    owner: Any = sys.modules[point.module]
    for part in path:
        owner = vars(owner)[part]
    return _PointPlace(point, owner, attribute, vars(owner)[attribute])


def _further_names(places: Sequence[_PointPlace]) -> dict[int, list[tuple[Any, str]]]:
    """Identity of a module's function → the modules of its package that imported it by name, and the names under which they refer to it.

    One pass over all modules: a world is made for each of many thousands of short runs.
    """
    functions = {id(place.found): place for place in places if "." not in place.point.qualified_name}
    # A wrapper of an earlier world may be in the place of the function itself.
    functions |= {id(_unwrapped(place.found)): place for place in functions.values()}
    packages = {_package_of(place.point.module) for place in functions.values()}
    found: dict[int, list[tuple[Any, str]]] = {}
    for name, module in sorted(sys.modules.items()) if packages else ():
        package = _package_of(name)
        # Few modules have one of them, and this look into all is done without running Python.
        if package in packages and not functions.keys().isdisjoint(map(id, vars(module).values())):
            for held, value in vars(module).items():
                place = functions.get(id(value))
                if place is not None and module is not place.owner and package == _package_of(place.point.module):
                    found.setdefault(id(place.found), []).append((module, held))
    return found


def _package_of(module: str) -> str:
    return module.partition(".")[0]


def _unwrapped(function: Any) -> Any:
    """The function inside any wrappers of ours."""
    while _is_wrapper(function):
        function = function.__wrapped__
    return function


def _is_wrapper(function: Any) -> bool:
    return getattr(function, _MARK, None) is function
