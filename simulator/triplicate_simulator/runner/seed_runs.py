"""Runs many seeds, in this process or in several, and adds up their results."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.pool import Pool
from typing import Any

from triplicate_simulator.checkers.linearizability import BOUNDED_CHECKERS
from triplicate_simulator.faults.fault_table import FAULT_KINDS
from triplicate_simulator.runner.scenario import Result, plan_of, run_seed
from triplicate_simulator.workloads.workload_table import WORKLOADS


@dataclass
class Summary:
    """Results of many seeds, in the order of the seeds."""

    results: list[Result] = field(default_factory=list)
    cpu_s: dict[str, float] = field(default_factory=dict)
    """Processor seconds by workload."""

    @property
    def failed(self) -> list[Result]:
        """The seeds with a violation."""
        return [result for result in self.results if not result.ok]

    def add(self, result: Result) -> None:
        """Add one seed. Its facts and events are dropped."""
        result.facts, result.events = [], []
        self.results.append(result)
        self.cpu_s[result.workload] = self.cpu_s.get(result.workload, 0.0) + result.cpu_s

    def totals(self) -> dict[str, int]:
        """Counts of all seeds added up, faults among them."""
        totals: dict[str, int] = {}
        for result in self.results:
            for name, count in [*result.counts.items(), *result.struck.items()]:
                totals[name] = totals.get(name, 0) + count
        return totals

    def seeds(self) -> dict[str, int]:
        """Seeds by workload."""
        seeds: dict[str, int] = {}
        for result in self.results:
            seeds[result.workload] = seeds.get(result.workload, 0) + 1
        return {name: seeds[name] for name in WORKLOADS if name in seeds}

    def counts(self, workload: str) -> dict[str, int]:
        """Counts of a workload, all its seeds added up."""
        totals: dict[str, int] = dict.fromkeys(WORKLOADS[workload].counted, 0)
        for result in self.results:
            for name, count in result.counts.items() if result.workload == workload else ():
                totals[name] = totals.get(name, 0) + count
        return totals

    def struck(self) -> dict[str, int]:
        """Faults that had an effect, by kind. Zero for kinds that never had."""
        struck = dict.fromkeys(FAULT_KINDS, 0)
        for result in self.results:
            for name, count in result.struck.items():
                struck[name] = struck.get(name, 0) + count
        return struck

    def decided(self) -> dict[str, int]:
        """Decisions by checker, for the workloads that ran."""
        decided = {checker: 0 for workload in self.seeds() for checker in WORKLOADS[workload].checkers}
        for result in self.results:
            for verdict in result.verdicts:
                decided[verdict.checker] = decided.get(verdict.checker, 0) + verdict.decided
        return decided

    def undecided(self) -> dict[str, int]:
        """Searches given up, for each checker that has a bound. Zero for those that never gave up."""
        undecided = {checker: 0 for workload in self.seeds() for checker in WORKLOADS[workload].checkers if checker in BOUNDED_CHECKERS}
        for result in self.results:
            for verdict in result.verdicts:
                if verdict.undecided:
                    undecided[verdict.checker] = undecided.get(verdict.checker, 0) + verdict.undecided
        return undecided

    def virtual_s(self) -> float:
        """Simulated seconds of all seeds."""
        return sum(result.virtual_s for result in self.results)

    def entries_per_s(self) -> float:
        """Acknowledged entries for each second of processor time."""
        return self.totals().get("acknowledged", 0) / max(1e-9, sum(self.cpu_s.values()))

    def gaps(self) -> list[str]:
        """Events that a range of many seeds must see and did not: faults, decisions of checkers, counts of workloads."""
        gaps = [f"fault {name} never struck" for name, count in self.struck().items() if not count]
        gaps += [f"checker {name} never had anything to decide" for name, count in self.decided().items() if not count]
        for workload in self.seeds():
            counts = self.counts(workload)
            gaps += [f"no seed of {workload} has any {name}" for name in WORKLOADS[workload].counted if not counts[name]]
        return gaps


def run(seeds: Iterable[int], *, jobs: int = 1, workload: str | None = None, report: Callable[[Result], None] | None = None) -> Summary:
    """Run several seeds.

    Args:
        seeds: one run each; reported in this order.
        jobs: processes; with 1, this one.
        play: workload of all seeds, instead of the one that the last digit selects.
        report: called with each result when it is there.
    """
    chosen = [(seed, workload) for seed in seeds]
    summary = Summary()
    with _runner(min(jobs, len(chosen))) as results:
        for result in results(chosen):
            if report is not None:
                report(result)
            summary.add(result)
    return summary


def run_timed(chosen: tuple[int, str | None]) -> Result:
    """Run one seed and measure its processor time. Facts and events are dropped, since they are many."""
    seed, workload = chosen
    began = time.process_time()
    result = run_seed(seed, plan_of(seed, workload))
    result.cpu_s = time.process_time() - began
    result.facts, result.events = [], []
    return result


@contextmanager
def _runner(jobs: int) -> Iterator[Callable[[Sequence[tuple[int, str | None]]], Iterable[Result]]]:
    if jobs <= 1:
        yield lambda seeds: map(run_timed, seeds)
        return
    # New interpreters: state of this process, above all its threads, cannot disturb a simulation.
    pool: Pool = multiprocessing.get_context("spawn").Pool(jobs, initializer=_begin_worker)
    try:
        yield lambda seeds: pool.imap(run_timed, seeds, chunksize=1)
        pool.close()
    except BaseException:
        pool.terminate()
        raise
    finally:
        pool.join()


def _begin_worker(*_: Any) -> None:
    """Ignore interrupts from the keyboard: they are for the process that distributes the work."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
