"""Fuzz every target and print the results.

Usage: ``python -m tests.fuzz.run [--inputs N] [--seed S] [--fresh] [--targets NAME ...]``   (``make fuzz N=…``)

The inputs are divided among the targets. Those of one module run one after another, two modules at a time. Each begins with the golden
bytes and the corpus of earlier runs in ``build/fuzz/corpus``. Findings go to ``build/fuzz/findings``; after the fix they belong into
``tests/golden/fuzz/TARGET``, in hexadecimal digits. At the end the corpus is replayed under coverage.py. The table is printed
and saved as ``build/fuzz/report.json``.
Exit code 1: there is a finding, or the corpus covers fewer lines of the decoders than required.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.fuzz.corpus import write_seeds
from tests.fuzz.targets import DECODERS, LEAST_COVERAGE, TARGETS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "fuzz"
JOBS = 2
_EXECUTED = re.compile(r"stat::number_of_executed_units: (\d+)")
_LAST_COUNT = re.compile(r"^#(\d+)\t", re.MULTILINE)
_ENDED = re.compile(r"^(\w+) (-?\d+) ([\d.]+)$", re.MULTILINE)
"""A line of the worker for each target: name, exit code and seconds."""
OUTPUT_SHOWN = 2000


@dataclass
class Outcome:
    """Result of one target's run."""

    target: str
    inputs: int
    seconds: float
    kept: int
    """Inputs in the corpus at the end."""
    findings: list[str] = field(default_factory=list)


def shares(inputs: int, targets: list[str]) -> dict[str, int]:
    """Number of inputs per target; at least one each."""
    whole = sum(TARGETS[target].share for target in targets)
    return {target: max(1, -(-inputs * TARGETS[target].share // whole)) for target in targets}


def is_available() -> bool:
    try:
        import atheris  # noqa: F401
    except ImportError:
        return False
    return True


def modules_of(targets: Iterable[str]) -> dict[str, list[str]]:
    """Module → its targets; the module with the largest shares comes first, since it takes longest."""
    found: dict[str, list[str]] = {}
    for target in targets:
        found.setdefault(TARGETS[target].place.partition(".")[0], []).append(target)
    return dict(sorted(found.items(), key=lambda item: -sum(TARGETS[target].share for target in item[1])))


def fuzz(chosen: dict[str, int], seed: int, folder: Path) -> list[Outcome]:
    """Run targets of one module, each in a process of its own; its log is ``TARGET.log``."""
    for target in chosen:
        write_seeds(target, folder / "corpus" / target)
        shutil.rmtree(folder / "findings" / target, ignore_errors=True)
        (folder / "findings" / target).mkdir(parents=True)
        (folder / f"{target}.log").write_text("it did not start\n", encoding="utf-8")
    command = [sys.executable, "-m", "tests.fuzz.worker", str(seed), str(folder), *(f"{target}={chosen[target]}" for target in chosen)]
    done = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    ended = {target: (int(code), float(seconds)) for target, code, seconds in _ENDED.findall(done.stdout)}
    return [_outcome(target, folder, *ended.get(target, (1, 0.0)), done.stdout) for target in chosen]


def _outcome(target: str, folder: Path, code: int, seconds: float, output: str) -> Outcome:
    """Read what a target's process has left.

    Args:
        output: of the worker that has started it, in which the reason is if it did not start.
    """
    log = folder / f"{target}.log"
    text = log.read_text(encoding="utf-8", errors="replace")
    executed = _EXECUTED.findall(text) or _LAST_COUNT.findall(text) or ["0"]
    found = [str(path) for path in sorted((folder / "findings" / target).iterdir())]
    if code and not found:
        found = [f"{log}: the fuzzer ended with code {code}: {output.strip()[-OUTPUT_SHOWN:]}"]
    return Outcome(target, int(executed[-1]), seconds, len(list((folder / "corpus" / target).iterdir())), found)


def fuzz_all(chosen: dict[str, int], seed: int, folder: Path) -> list[Outcome]:
    with ThreadPoolExecutor(max_workers=JOBS) as pool:
        groups = [{target: chosen[target] for target in targets} for targets in modules_of(chosen).values()]
        found = {outcome.target: outcome for group in pool.map(lambda group: fuzz(group, seed, folder), groups) for outcome in group}
    return [found[target] for target in chosen]


def measure(folder: Path) -> dict[str, float]:
    """Per cent of each module's lines that the whole corpus reaches, replayed in a process of its own."""
    answer = folder / "coverage.json"
    answer.unlink(missing_ok=True)
    environment = {**os.environ, "COVERAGE_FILE": str(folder / ".coverage")}
    subprocess.run([sys.executable, "-m", "tests.fuzz.replay", str(folder / "corpus"), str(answer)], cwd=ROOT, env=environment, check=True)
    measured: dict[str, list[int]] = json.loads(answer.read_text(encoding="utf-8"))
    figures = {name: 100.0 * reached / lines for name, (reached, lines) in measured.items()}
    both = [measured[name] for name in DECODERS]
    figures["both decoders"] = 100.0 * sum(reached for reached, _ in both) / sum(lines for _, lines in both)
    return figures


def show(outcomes: list[Outcome], coverage: dict[str, float], seconds: float) -> None:
    print(f"{'target':<18}{'inputs':>12}{'seconds':>10}{'corpus':>8}  findings")
    for outcome in outcomes:
        print(f"{outcome.target:<18}{outcome.inputs:>12,}{outcome.seconds:>10.1f}{outcome.kept:>8}  {', '.join(outcome.findings) or '-'}")
    findings = sum(len(outcome.findings) for outcome in outcomes)
    inputs, kept = sum(outcome.inputs for outcome in outcomes), sum(outcome.kept for outcome in outcomes)
    print(f"{'all':<18}{inputs:>12,}{seconds:>10.1f}{kept:>8}  {findings}")
    if coverage:
        print("lines reached:", ", ".join(f"{name} {figure:.1f} %" for name, figure in coverage.items()))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--inputs", type=int, default=200_000, help="in total, over all targets")
    parser.add_argument("--seed", type=int, default=0, help="of the mutations; 0 takes another one each time")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs kept")
    parser.add_argument("--targets", nargs="*", choices=sorted(TARGETS), default=list(TARGETS))
    options = parser.parse_args(arguments)
    if not is_available():
        print("atheris is not installed: it has wheels for CPython 3.11 to 3.13 on Linux x86-64 only", file=sys.stderr)
        return 2
    if options.fresh:
        shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    outcomes = fuzz_all(shares(options.inputs, options.targets), options.seed, FOLDER)
    seconds = time.monotonic() - started
    whole = set(options.targets) == set(TARGETS)
    coverage = measure(FOLDER) if whole else {}
    show(outcomes, coverage, seconds)
    report = {"seconds": round(seconds, 1), "targets": [asdict(outcome) for outcome in outcomes], "lines_per_cent": coverage}
    (FOLDER / "report.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    short = whole and coverage["both decoders"] < LEAST_COVERAGE
    if short:
        print(f"the corpus reaches {coverage['both decoders']:.1f} % of the decoders' lines, at least {LEAST_COVERAGE:.0f} % are asked for")
    return 1 if short or any(outcome.findings for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
