"""Shrinks a plan: fewer faults and a smaller load with which the seed still shows a violation that it showed at first.

A seed that shows several violations has one cause as a rule, and the smallest plan may show any of them. All are therefore followed, and
the result names the one that is left.

Faults are removed as in delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002): large parts
first, then one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

from triplicate_simulator.cluster.plan import PLAIN_SETUP, Fault, Plan
from triplicate_simulator.runner.scenario import OTHER_FINDINGS, Result, reporter_of, run_seed
from triplicate_simulator.workloads.workload_table import WORKLOADS

RUNS_MAX = 200
DURATIONS = (0.1, 0.25, 0.5, 0.75)
DURATION_MIN_S = 2.0
RULE_WORDS = 4
"""Leading words of a message that identify its subject; names of nodes and places come later."""
NUMBERS = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class ViolationKind:
    """A kind of violation."""

    checker: str
    """The reporter: a checker, or one of `OTHER_FINDINGS`."""
    rule: str = ""
    """The message without its numbers, for reporters with several rules; empty for a checker, which has one."""

    def __str__(self) -> str:
        return f"{self.checker} ({self.rule})" if self.rule else self.checker


def finding_of(violation: str) -> ViolationKind:
    """The kind of a violation. Errors of two classes, or at two places, are two kinds."""
    checker = reporter_of(violation)
    if checker not in OTHER_FINDINGS:
        return ViolationKind(checker)
    head, _, rest = violation.partition(": ")
    # Some have the form "leak: task x", others "no progress: writer-1 is not done ...", and some have no head at all.
    rule = head if checker == "progress" or not rest else rest.partition(":")[0]
    return ViolationKind(checker, " ".join(NUMBERS.sub("N", rule).split()[:RULE_WORDS]))


@dataclass(frozen=True)
class ShrunkPlan:
    """The smallest plan found."""

    plan: Plan
    followed: ViolationKind
    """The violation that it shows: the first of the original ones."""
    originals: tuple[ViolationKind, ...]
    """Violations of the whole plan, in its order."""
    result: Result
    runs: int
    """Number of runs needed."""
    complete: bool
    """Whether nothing more can be removed; false when the runs were used up before."""

    @property
    def violation(self) -> str:
        """The followed violation, as the smallest plan shows it."""
        return next(violation for violation in self.result.violations if finding_of(violation) == self.followed)


class NothingToShrink(Exception):
    """The plan shows no violation."""


def shrink(
    seed: int,
    plan: Plan,
    *,
    runs_max: int = RUNS_MAX,
    run_plan: Callable[[int, Plan], Result] = run_seed,
    report: Callable[[str], None] | None = None,
) -> ShrunkPlan:
    """Find a smaller plan that still shows a violation of a kind that the plan shows.

    Args:
        runs_max: bound on runs.
        run_plan: runs a plan.
        report: called at each success.

    Raises:
        NothingToShrink: the plan shows no violation.
    """
    first = run_plan(seed, plan)
    if first.ok:
        raise NothingToShrink(f"seed {seed} shows no violation")
    originals = tuple(dict.fromkeys(finding_of(violation) for violation in first.violations))
    search = _Shrinker(seed, originals, plan, first, runs_max, run_plan, report)
    complete = search.until_nothing_helps()
    shown = [finding_of(violation) for violation in search.result.violations]
    followed = next(finding for finding in originals if finding in shown)
    return ShrunkPlan(search.plan, followed, originals, search.result, search.runs, complete)


class _Shrinker:
    def __init__(
        self,
        seed: int,
        originals: tuple[ViolationKind, ...],
        plan: Plan,
        result: Result,
        runs_max: int,
        run_plan: Callable[[int, Plan], Result],
        report: Callable[[str], None] | None,
    ) -> None:
        self.seed = seed
        self.originals = originals
        self.plan = plan
        self.result = result
        self.runs = 1
        self._runs_max = runs_max
        self._run_plan = run_plan
        self._report = report

    def until_nothing_helps(self) -> bool:
        """Remove parts, round after round. False when the runs are used up."""
        smaller = True
        while smaller and self.runs < self._runs_max:
            smaller = self._fewer_faults()
            smaller = self._first_that_fails(self._smaller_loads(), "a smaller load") or smaller
            smaller = self._first_that_fails(self._plainer(), "plainer bookies") or smaller
            smaller = self._first_that_fails(self._shorter(), "a shorter run") or smaller
            smaller = self._first_that_fails(self._simpler_faults(), "a shorter fault") or smaller
        return not smaller

    def _fewer_faults(self) -> bool:
        helped, size = False, max(1, len(self.plan.faults) // 2)
        while self.plan.faults and self.runs < self._runs_max:
            without = [
                replace(self.plan, faults=(*self.plan.faults[:at], *self.plan.faults[at + size :]))
                for at in range(0, len(self.plan.faults), size)
            ]
            if self._first_that_fails(iter(without), "fewer faults"):
                helped = True
                size = min(size, max(1, len(self.plan.faults) // 2))
            elif size == 1:
                break
            else:
                size //= 2
        return helped

    def _smaller_loads(self) -> Iterator[Plan]:
        for load in WORKLOADS[self.plan.workload].smaller(self.plan.load):
            yield replace(self.plan, load=load)

    def _plainer(self) -> Iterator[Plan]:
        """The plainest bookies, or bookies with one plainer setting."""
        if self.plan.storage != PLAIN_SETUP:
            yield replace(self.plan, storage=PLAIN_SETUP)
        for field in fields(PLAIN_SETUP):
            plainest = getattr(PLAIN_SETUP, field.name)
            if getattr(self.plan.storage, field.name) != plainest:
                yield replace(self.plan, storage=replace(self.plan.storage, **{field.name: plainest}))

    def _shorter(self) -> Iterator[Plan]:
        last_s = max((fault.at_s for fault in self.plan.faults), default=0.0)
        for share in DURATIONS:
            duration_s = round(self.plan.duration_s * share, 3)
            if duration_s >= max(DURATION_MIN_S, last_s):
                yield replace(self.plan, duration_s=duration_s)

    def _simpler_faults(self) -> Iterator[Plan]:
        for index, fault in enumerate(self.plan.faults):
            if fault.lasts_s > 0.2:
                shorter: Fault = replace(fault, lasts_s=round(fault.lasts_s / 4, 3))
                yield replace(self.plan, faults=(*self.plan.faults[:index], shorter, *self.plan.faults[index + 1 :]))

    def _first_that_fails(self, plans: Iterator[Plan], what: str) -> bool:
        for plan in plans:
            if self.runs >= self._runs_max:
                return False
            self.runs += 1
            result = self._run_plan(self.seed, plan)
            if any(finding_of(violation) in self.originals for violation in result.violations):
                self.plan, self.result = plan, result
                if self._report is not None:
                    self._report(f"run {self.runs}: {what}: {len(plan.faults)} faults, {plan.duration_s:.0f} s")
                return True
        return False
