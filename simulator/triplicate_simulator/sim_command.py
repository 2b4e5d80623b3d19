"""``triplicate sim``: runs seeds of the simulator, describes one run, shrinks a failing one, hunts mutants."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from triplicate.cli.terminal.output import ProgressBar, print_table, remarks
from triplicate.errors import ArgumentError
from triplicate_simulator import (
    FAULT_KINDS,
    WORKLOADS,
    InvalidMutant,
    MutantResult,
    NothingToShrink,
    Plan,
    Result,
    Summary,
    apply_mutant,
    describe_run,
    hunt_all,
    mutants_folder,
    plan_from_json,
    plan_of,
    read_mutants,
    replay,
    run,
    shrink,
    violations_without_mutants,
)

Made = TypeVar("Made")

SEEDS_MAX = 10_000_000
COMPLETE_FROM = 100
"""A range of at least this many seeds must have had every fault, and decisions of every checker."""
REMARK_S = 30.0

_seed = click.argument("seed", type=click.IntRange(0))
_workload = click.option(
    "--workload",
    "--play",
    "workload",
    type=click.Choice(list(WORKLOADS)),
    help="Workload, instead of the one that the seed's last digit selects.",
)
_plan = click.option(
    "--plan", "plan_path", type=click.Path(dir_okay=False), metavar="FILE", help="Run this plan, as `sim shrink` writes it."
)
_mutant = click.option("--mutant", metavar="NAME", help="Apply this mutant first (in a checkout).")


class Seeds(click.ParamType[range]):
    """A range of seeds, ``A..B``, both ends included, or one seed."""

    name = "seeds"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> range:
        if isinstance(value, range):
            return value
        found = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", str(value))
        if found is None:
            self.fail(f"{value!r} is no range of seeds; write 1..300, or one number", param, context)
        first = int(found[1])
        last = int(found[2]) if found[2] is not None else first
        if last < first:
            self.fail(f"{value} runs backwards; write {last}..{first}", param, context)
        if last - first >= SEEDS_MAX:
            self.fail(f"{value} is more than {SEEDS_MAX} seeds; use a part of it", param, context)
        return range(first, last + 1)


@click.group()
def sim() -> None:
    """Run whole clusters in virtual time, inject faults drawn from a seed, and judge what their clients saw.

    One seed is one history, the same in every process. Seeds that end with 3 run the workload `logs`, with 7
    `databases`, with 8 `stores`, with 9 `repairs`, all others `ledgers`.
    """


@sim.command("run")
@click.option("--seeds", type=Seeds(), required=True, metavar="A..B", help="Which seeds to run, both ends included.")
@click.option("--jobs", type=click.IntRange(1, 256), default=lambda: os.cpu_count() or 1, help="Processes.  [default: one per processor]")
@_workload
def run_seeds(seeds: range, jobs: int, workload: str | None) -> int:
    """Run seeds, and show violations and totals.

    Ends with exit code 1 when a seed shows a violation, or when a range of 100 seeds or more has left out a fault, a checker, or anything
    else that the workloads count.
    """
    began = last_remark = time.monotonic()
    done = 0
    with ProgressBar("seeds", len(seeds)) as bar:

        def report(result: Result) -> None:
            nonlocal done, last_remark
            done += 1
            if not result.ok:
                click.echo(str(result))
            bar.advance()
            if not sys.stderr.isatty() and time.monotonic() - last_remark > REMARK_S:
                last_remark = time.monotonic()
                remarks.print(f"{done} of {len(seeds)} seeds done")

        summary = run(seeds, jobs=jobs, workload=workload, report=report)
    show_totals(summary, time.monotonic() - began)
    gaps = summary.gaps() if len(seeds) >= COMPLETE_FROM else []
    for gap in gaps:
        click.echo(f"left out: {gap}")
    failed = [str(result.seed) for result in summary.failed]
    click.echo(f"{len(seeds)} seeds, {len(failed)} with violations{': ' + ' '.join(failed[:50]) if failed else ''}")
    return 1 if failed or gaps else 0


def show_totals(summary: Summary, elapsed_s: float) -> None:
    """Print the totals of many seeds, in tables."""
    for workload, count in summary.seeds().items():
        counts = summary.counts(workload)
        rows = [(name.replace("_", " "), f"{value:,}") for name, value in counts.items()]
        seconds = summary.cpu_s.get(workload, 0.0) / max(1, count)
        print_table((workload, "total"), [("seeds", count), *rows, ("CPU seconds a seed", f"{seconds:.2f}")], right=("total",))
    print_table(
        ("fault", "struck", "what it is"),
        [
            (name, f"{count:,}", FAULT_KINDS[name].meaning if name in FAULT_KINDS else "a fault of the workload's own")
            for name, count in summary.struck().items()
        ],
        right=("struck",),
    )
    undecided = summary.undecided()
    rows_of_checkers = [
        (name, f"{count:,}", f"{undecided[name]:,}" if name in undecided else "") for name, count in summary.decided().items()
    ]
    print_table(("checker", "decided", "gave up"), rows_of_checkers, right=("decided", "gave up"))
    cpu_s = sum(summary.cpu_s.values())
    click.echo(
        f"{summary.virtual_s():,.0f} simulated seconds in {elapsed_s:,.0f} s ({cpu_s:,.0f} s of one core); "
        f"{summary.entries_per_s():,.0f} acknowledged entries per second and core"
    )


@sim.command("replay")
@_seed
@_plan
@_mutant
@click.option("--node", metavar="NAME", help="Only what this node did and saw, and the faults.")
@_workload
def replay_seed(seed: int, plan_path: str | None, mutant: str | None, node: str | None, workload: str | None) -> int:
    """Run one seed again and describe it line by line, ending with its violations."""
    plan = _chosen_plan(seed, plan_path, workload)
    _break_code(mutant)
    result = _usage(lambda: replay(seed, plan))
    _usage(lambda: _check_node(result, node))
    for line in describe_run(result, plan, node):
        click.echo(line)
    return 0 if result.ok else 1


@sim.command("shrink")
@_seed
@_plan
@_mutant
@_workload
@click.option("--out", type=click.Path(dir_okay=False), metavar="FILE", help="Where to write the plan.  [default: seed-SEED.json]")
@click.option("--runs", type=click.IntRange(1, 100_000), default=200, show_default=True, help="Largest number of runs.")
def shrink_seed(seed: int, plan_path: str | None, mutant: str | None, workload: str | None, out: str | None, runs: int) -> int:
    """Find the fewest faults and the smallest load with which a seed still shows a violation that it shows."""
    plan = _chosen_plan(seed, plan_path, workload)
    path = Path(out or f"seed-{seed}.json")
    # Checked first: a search of minutes must not end with a plan that cannot be written.
    _usage(lambda: check_writable(path))
    _break_code(mutant)
    try:
        found = _usage(lambda: shrink(seed, plan, runs_max=runs, report=remarks.print))
    except NothingToShrink as nothing:
        click.echo(str(nothing))
        return 1
    keep_plan(path, found.plan)
    if len(found.originals) > 1:
        others = ", ".join(str(finding) for finding in found.originals if finding != found.followed)
        click.echo(f"followed: {found.followed}; at first there was also {others}")
    for fault in found.plan.faults:
        click.echo(f"fault: {fault}")
    click.echo(f"load: {found.plan.load}, for {found.plan.duration_s:g} s")
    click.echo(found.violation)
    ending = "nothing more can be taken away" if found.complete else f"stopped after {found.runs} runs; --runs allows more"
    click.echo(f"{len(plan.faults)} faults became {len(found.plan.faults)} in {found.runs} runs; {ending}")
    click.echo(f"replay it: triplicate sim replay {seed} --plan {path}{f' --mutant {mutant}' if mutant else ''}")
    return 0


@sim.command("mutants")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--jobs", type=click.IntRange(1, 256), default=2, show_default=True, help="Processes.")
@click.option(
    "--seeds-max",
    type=click.IntRange(1, 1_000_000),
    default=1000,
    show_default=True,
    help="A mutant that no seed up to this one catches survives.",
)
def hunt_mutants(names: tuple[str, ...], jobs: int, seeds_max: int) -> int:
    """Break the code on purpose, one way at a time, and find the first seed that notices (in a checkout)."""
    mutants = _usage(lambda: read_mutants(mutants_folder(), names))
    dirty = violations_without_mutants(mutant.kind for mutant in mutants)
    for violation in dirty:
        click.echo(violation)
    if dirty:
        return 1
    began = time.monotonic()
    with ProgressBar("mutants", len(mutants)) as bar:

        def report(hunt: MutantResult) -> None:
            bar.advance()
            if not sys.stderr.isatty():
                found = f"seed {hunt.seed}, {hunt.checker}" if hunt.caught else uncaught(hunt)
                remarks.print(f"{hunt.mutant.name}: {found}, {hunt.seconds:.0f} s")

        hunts = hunt_all(mutants, jobs=jobs, seeds_max=seeds_max, report=report)
    show_hunts(hunts)
    left = [hunt for hunt in hunts if not hunt.caught]
    for hunt in left:
        click.echo(f"{hunt.mutant.name} {uncaught(hunt).lower()}: {hunt.note}")
    unjudged = sum(not hunt.judged for hunt in left)
    words = [f"{len(hunts) - len(left)} caught", f"{len(left) - unjudged} survived", *([f"{unjudged} not judged"] if unjudged else [])]
    click.echo(f"{', '.join(words)}, in {time.monotonic() - began:.0f} s")
    return 1 if left else 0


def uncaught(hunt: MutantResult) -> str:
    """The result of a mutant that no seed caught, in capitals."""
    return "SURVIVED" if hunt.judged else "NOT JUDGED"


def show_hunts(hunts: list[MutantResult]) -> None:
    """One row for each mutant."""
    rows = [
        (
            hunt.mutant.name,
            hunt.mutant.broken,
            hunt.mutant.kind,
            hunt.seed if hunt.caught else uncaught(hunt),
            hunt.checker,
            f"{hunt.seconds:.0f}",
        )
        for hunt in hunts
    ]
    print_table(("mutant", "what is broken", "workload", "seed", "caught by", "s"), rows, right=("seed", "s"))


def _chosen_plan(seed: int, plan_path: str | None, workload: str | None) -> Plan:
    if not plan_path:
        return plan_of(seed, workload)
    plan = _read_plan(plan_path)
    if workload not in (None, plan.workload):
        raise click.UsageError(f"--workload {workload} contradicts {plan_path}, which is a plan of {plan.workload}; leave it out")
    return plan


def _check_node(result: Result, node: str | None) -> None:
    """Refuse an unknown node: an empty timeline would look as if nothing had happened."""
    names = dict.fromkeys(fact.node for fact in result.facts)
    if node is not None and node not in names:
        raise ArgumentError(f"there is no node {node!r} in seed {result.seed}; there are: {', '.join(sorted(names))}")


def _read_plan(path: str) -> Plan:
    def read() -> Plan:
        try:
            return plan_from_json(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ArgumentError(f"{path} is no plan of the simulator: {error}") from error
        except OSError as error:
            raise ArgumentError(f"{path}: {error.strerror}") from error

    return _usage(read)


def check_writable(path: Path) -> None:
    """Check that a file can be written, and leave none behind."""
    is_new = not path.exists()
    try:
        with path.open("ab"):
            pass
        if is_new:
            path.unlink()
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}") from error


def keep_plan(path: Path, plan: Plan) -> None:
    """Write a plan into its file. If that fails, print the plan, since it took minutes.

    Raises:
        OSError: it could not be written.
    """
    try:
        path.write_text(plan.to_json() + "\n", encoding="utf-8")
    except OSError:
        click.echo(plan.to_json())
        raise


def _break_code(mutant: str | None) -> None:
    if mutant is not None:
        chosen = _usage(lambda: read_mutants(mutants_folder(), (mutant,)))
        _usage(lambda: apply_mutant(chosen[0]))


def _usage(work: Callable[[], Made]) -> Made:
    """Turn an error of the command line into one line and exit code 2."""
    try:
        return work()
    except (ArgumentError, InvalidMutant) as error:
        remarks.print(f"triplicate: {error}")
        raise click.exceptions.Exit(2) from error
