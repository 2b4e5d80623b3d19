"""Mutants of the simulator: the code is broken on purpose, one way at a time, and seeds are run until one notices.

A mutant is a file of a checkout, in `tests/mutants/sim`: a docstring whose first line says what is broken, ``KIND`` (the workload whose
seeds are run), ``CHECKERS`` (optional: those of which one must report), and ``apply(patch)``, which replaces attributes by ``patch(owner,
"attribute", replacement)``. Each runs in a process of its own.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import multiprocessing
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from triplicate.errors import ArgumentError
from triplicate_simulator.runner.scenario import OTHER_FINDINGS, Result, reporter_of, run_seed, workload_of
from triplicate_simulator.workloads.workload_table import WORKLOADS

SEEDS_MAX = 1000
CLEAN_SEEDS = 3
"""Seeds of each workload that must be clean on the unbroken code first."""
LIMIT_S = 1200.0
"""A mutant without a verdict within this time is given up."""
NAMES_SHOWN = 8
FOLDER = Path("tests") / "mutants" / "sim"


class InvalidMutant(Exception):
    """The target of a mutant does not exist, or its file is no mutant. It counts neither as caught nor as a survivor."""


@dataclass(frozen=True)
class Mutant:
    """One way to break the code."""

    name: str
    path: str
    broken: str
    """The broken part, in one line."""
    kind: str = "ledgers"
    checkers: tuple[str, ...] = ()
    """One of these must report; any checker of the workload when empty."""

    def wanted(self) -> tuple[str, ...]:
        """The checkers whose reports catch it."""
        return self.checkers or tuple(WORKLOADS[self.kind].checkers)


@dataclass(frozen=True)
class MutantResult:
    """The result for one mutant."""

    mutant: Mutant
    caught: bool
    seed: int = 0
    """The seed that caught it, or the last that did not."""
    checker: str = ""
    seconds: float = 0.0
    note: str = ""
    """Why it was not caught, or the checker's message."""
    judged: bool = True
    """False where its target has moved, or its process gave no verdict: it is neither caught nor a survivor."""


def mutants_folder() -> Path:
    """Return the folder of the mutants.

    Raises:
        ArgumentError: this is no checkout.
    """
    folder = Path(__file__).resolve().parents[3] / FOLDER
    if not folder.is_dir():
        raise ArgumentError(f"the simulator's mutants are part of a checkout ({FOLDER}), not of an installation")
    return folder


def read_mutants(folder: Path, names: Sequence[str] = ()) -> list[Mutant]:
    """Read the mutants of a folder, by name.

    Args:
        names: only these.

    Raises:
        ArgumentError: there is no such mutant. InvalidMutant: a file is no mutant.
    """
    mutants = [read_mutant(path) for path in sorted(folder.glob("*.py")) if not path.stem.startswith("_")]
    known = [mutant.name for mutant in mutants]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 4, 0.5)
            hint = f"meant is perhaps {', '.join(near)}" if near else f"there are: {', '.join(known[:NAMES_SHOWN])}"
            more = f" and {len(known) - NAMES_SHOWN} more in {FOLDER}" if not near and len(known) > NAMES_SHOWN else ""
            raise ArgumentError(f"there is no mutant {name!r}; {hint}{more}")
    return [mutant for mutant in mutants if not names or mutant.name in names]


def read_mutant(path: Path) -> Mutant:
    """Read a mutant's description without importing it.

    Raises:
        InvalidMutant: the docstring is missing, or a name in it is unknown.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstring = ast.get_docstring(tree)
    if not docstring:
        raise InvalidMutant(f"{path.name}: a mutant has a docstring that says what is broken")
    values: dict[str, object] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        for target in targets:
            if isinstance(target, ast.Name) and target.id in ("KIND", "CHECKERS") and value is not None:
                values[target.id] = ast.literal_eval(value)
    kind, checkers = str(values.get("KIND", "ledgers")), values.get("CHECKERS", ())
    if kind not in WORKLOADS:
        raise InvalidMutant(f"{path.name}: there is no workload {kind!r}; there are: {', '.join(WORKLOADS)}")
    if isinstance(checkers, str) or not isinstance(checkers, Iterable):
        raise InvalidMutant(f"{path.name}: CHECKERS is a tuple of names")
    wanted = tuple(str(checker) for checker in checkers)
    for checker in wanted:
        if checker not in (*WORKLOADS[kind].checkers, *OTHER_FINDINGS):
            raise InvalidMutant(f"{path.name}: {checker!r} is no checker of {kind}, nor one of {', '.join(OTHER_FINDINGS)}")
    return Mutant(path.stem, str(path), docstring.splitlines()[0].strip(), kind, wanted)


def apply_mutant(mutant: Mutant) -> None:
    """Break the code of this process.

    Raises:
        InvalidMutant: the target does not exist.
    """
    spec = importlib.util.spec_from_file_location(f"mutant_{mutant.name}", mutant.path)
    if spec is None or spec.loader is None:
        raise InvalidMutant(f"{mutant.path}: cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        apply = module.apply
        apply(patch)
    except (ImportError, AttributeError, KeyError) as error:
        raise InvalidMutant(f"{mutant.name} no longer fits: {error}") from error


def patch(owner: object, attribute: str, replacement: object) -> None:
    """Replace an existing attribute.

    Raises:
        InvalidMutant: it does not exist.
    """
    if not hasattr(owner, attribute):
        raise InvalidMutant(f"the mutant no longer fits: {owner!r} has no {attribute!r}")
    setattr(owner, attribute, replacement)


def seeds_of(kind: str, seeds_max: int = SEEDS_MAX) -> list[int]:
    """The seeds of a workload, from 1 on."""
    return [seed for seed in range(1, seeds_max + 1) if workload_of(seed) == kind]


def caught_by(mutant: Mutant, result: Result) -> tuple[str, str] | None:
    """The first report that catches it: checker and message."""
    for violation in result.violations:
        if reporter_of(violation) in mutant.wanted():
            return reporter_of(violation), violation
    return None


def hunt(mutant: Mutant, seeds_max: int = SEEDS_MAX) -> MutantResult:
    """Break this process's code and run seeds until one notices."""
    began = time.monotonic()
    seed, passed_over = 0, ""
    try:
        apply_mutant(mutant)
    except InvalidMutant as misfit:
        return MutantResult(mutant, False, note=str(misfit), judged=False)
    for seed in seeds_of(mutant.kind, seeds_max):
        result = run_seed(seed)
        found = caught_by(mutant, result)
        if found is not None:
            return MutantResult(mutant, True, seed, found[0], time.monotonic() - began, found[1])
        if result.violations and not passed_over:
            passed_over = f"; seed {seed} met only: {result.violations[0]}"
    return MutantResult(mutant, False, seed, seconds=time.monotonic() - began, note=f"no seed up to {seed} noticed{passed_over}")


def hunt_all(
    mutants: Sequence[Mutant], *, jobs: int = 2, seeds_max: int = SEEDS_MAX, report: Callable[[MutantResult], None] | None = None
) -> list[MutantResult]:
    """Hunt each mutant in a process of its own, several at a time."""

    def one(mutant: Mutant) -> MutantResult:
        found = _hunt_in_process(mutant, seeds_max)
        if report is not None:
            report(found)
        return found

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return list(pool.map(one, mutants))


def violations_without_mutants(kinds: Iterable[str], seeds: int = CLEAN_SEEDS) -> list[str]:
    """Violations of the unbroken code on the first few seeds of each workload: with them a caught mutant proves nothing."""
    found: list[str] = []
    for kind in dict.fromkeys(kinds):
        for seed in seeds_of(kind)[:seeds]:
            found += [f"seed {seed} without any mutant: {violation}" for violation in run_seed(seed).violations[:1]]
    return found


def _hunt_in_process(mutant: Mutant, seeds_max: int) -> MutantResult:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_hunt_and_send, args=(mutant, seeds_max, theirs), daemon=True)
    began = time.monotonic()
    process.start()
    theirs.close()
    try:
        if not ours.poll(LIMIT_S):
            return MutantResult(mutant, False, seconds=time.monotonic() - began, note=f"no verdict within {LIMIT_S:.0f} s", judged=False)
        found = ours.recv()
        assert isinstance(found, MutantResult)
        return found
    except EOFError:
        process.join()
        note = f"its process ended with code {process.exitcode} and no verdict"
        return MutantResult(mutant, False, seconds=time.monotonic() - began, note=note, judged=False)
    finally:
        ours.close()
        process.kill()
        process.join()


def _hunt_and_send(mutant: Mutant, seeds_max: int, answer: Connection) -> None:
    with answer:
        answer.send(hunt(mutant, seeds_max))
