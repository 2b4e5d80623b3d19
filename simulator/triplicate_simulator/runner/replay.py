"""Runs one seed again and describes it in sentences that end with its violations."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from triplicate_simulator.cluster.plan import Plan
from triplicate_simulator.runner.scenario import Result, plan_of, reporter_of, run_seed
from triplicate_simulator.runner.timeline import Line, timeline
from triplicate_simulator.workloads.workload_table import WORKLOADS

VIOLATIONS_SHOWN = 20
COPIES = "at the end"

_OTHERS = {
    "progress": "after the last fault every actor must finish within a time",
    "leaks": "after everything was stopped no task, timer, connection or listener may be left",
    "unhandled": "an error that was not handled",
    "bookies": "a bookie ended or did not start, although no fault struck its disk",
    "copies": "a database's copy fails only where a fault explains it, and no retry is endless",
    "snapshots": "every listed snapshot can be loaded, and the log goes back to the older of the last two",
    "failed": "a state that no fault may cause",
}


def replay(seed: int, plan: Plan | None = None) -> Result:
    """Run a seed and keep all its facts and events."""
    return run_seed(seed, plan or plan_of(seed))


def describe_run(result: Result, plan: Plan, node: str | None = None) -> Iterator[str]:
    """Describe a run in lines: its plan, its events, its violations.

    Args:
        node: only this node's lines, and the faults.
    """
    yield f"seed {result.seed}: workload {plan.workload}"
    yield f"load: {', '.join(f'{name} {value}' for name, value in vars(plan.load).items())}"
    yield from (f"planned: {fault}" for fault in plan.faults)
    yield ""
    for line in timeline(result.facts, result.events, node):
        yield _at_the_end(line) if line.time_s == float("inf") else str(line)
    yield ""
    yield from verdict(result)


def verdict(result: Result) -> Iterator[str]:
    """The violations, and their meaning."""
    head = f"after {result.virtual_s:.1f} simulated seconds, digest {result.digest}"
    if result.ok:
        yield f"all is well {head}"
        return
    yield f"{len(result.violations)} violations {head}"
    meant: dict[str, None] = {}
    for violation in result.violations[:VIOLATIONS_SHOWN]:
        name = reporter_of(violation)
        if name not in meant:
            meant[name] = None
            yield f"  {name}: {rule_of(result.workload, name)}"
        yield f"    {violation.removeprefix(name + ': ')}"
    if len(result.violations) > VIOLATIONS_SHOWN:
        yield f"    and {len(result.violations) - VIOLATIONS_SHOWN} more"


def rule_of(workload: str, name: str) -> str:
    """The rule that a checker enforces."""
    checker = WORKLOADS[workload].checkers.get(name)
    if checker is None:
        return _OTHERS.get(name, "")
    text = " ".join((inspect.getdoc(checker) or "").split())
    return text or name.replace("_", " ")


def _at_the_end(line: Line) -> str:
    return f"{COPIES:>10}  {line.node:<13} {line.text}"
