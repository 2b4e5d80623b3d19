"""Samples of the main thread's stack by processor time: the functions in which a load spends its time, without a wrapper around each."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import PurePath
from types import CodeType, FrameType
from typing import NamedTuple

INTERVAL_S = 0.001
"""Processor time of the process between two samples. The kernel's clock may make it longer."""


class Sampler:
    """Counts the functions on the stack at each sample.

    The signal's handler runs between two instructions of the interpreter, so a call of C counts for the function that has made it.
    """

    def __init__(self) -> None:
        self.own: Counter[str] = Counter()
        """Samples in which a function was the innermost one."""
        self.inside: Counter[str] = Counter()
        """Samples in which a function was anywhere on the stack."""
        self._names: dict[CodeType, str] = {}

    def start(self) -> None:
        """Begin to sample. To be called on the main thread."""
        signal.signal(signal.SIGPROF, self.sample)
        signal.siginterrupt(signal.SIGPROF, False)  # SQLite's and the loop's system calls go on.
        signal.setitimer(signal.ITIMER_PROF, INTERVAL_S, INTERVAL_S)

    def sample(self, number: int, frame: FrameType | None) -> None:
        """Count the functions on one stack."""
        if frame is None:
            return
        self.own[self._name(frame.f_code)] += 1
        seen: set[str] = set()
        while frame is not None:
            seen.add(self._name(frame.f_code))
            frame = frame.f_back
        self.inside.update(seen)

    def _name(self, code: CodeType) -> str:
        name = self._names.get(code)
        if name is None:
            name = self._names[code] = f"{PurePath(code.co_filename).stem}: {code.co_qualname}"
        return name


class FunctionShare(NamedTuple):
    """Microseconds per statement in a function alone, and with the functions that it calls."""

    name: str
    own_us: float
    all_us: float


def shares(
    before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]], total_us: float, count: int
) -> list[FunctionShare]:
    """The functions with the most samples of their own.

    Args:
        before, after: ``own`` and ``inside`` of the sampler.
        total_us: processor time of a statement.
        count: of functions.
    """
    own = Counter(after["own"])
    own.subtract(before["own"])
    samples = sum(own.values())
    if not samples:
        return []
    each_us = total_us / samples
    inside = {name: after["inside"][name] - before["inside"].get(name, 0) for name, more in own.most_common(count) if more}
    return [FunctionShare(name, own[name] * each_us, inside[name] * each_us) for name in inside]
