"""Fuzz targets of one module, one after another: ``python -m tests.fuzz.worker SEED FOLDER TARGET=RUNS ...``. Started by `run`.

The code under test is imported with atheris's instrumentation, so nothing of it may be imported before. That takes longer than thousands of
inputs, so it happens once: each target is fuzzed in a process of its own that is forked behind it. Prints a line for each: target, exit
code and seconds.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import atheris

LIMIT_S = 10
LIMIT_MIB = 1536


def main(seed: str, folder: str, *wanted: str) -> None:
    from tests.fuzz.instrumented import left_out
    from tests.fuzz.targets import TARGETS

    runs_of = dict(each.split("=") for each in wanted)
    (module,) = {TARGETS[target].place.partition(".")[0] for target in runs_of}
    with atheris.instrument_imports(include=["triplicate", "tests.fuzz"], exclude=list(left_out(module))):
        loaded = importlib.import_module(f"tests.fuzz.{module}")
    for target, runs in runs_of.items():
        chosen = TARGETS[target]
        options = [f"-runs={runs}", f"-seed={seed}", f"-max_len={chosen.most_bytes}"]
        began = time.monotonic()
        child = os.fork()
        if not child:
            fuzz(getattr(loaded, chosen.place.partition(".")[2]), target, Path(folder), options)
            os._exit(1)  # The fuzzer ends its process by itself.
        _, status = os.waitpid(child, 0)
        print(target, os.waitstatus_to_exitcode(status), f"{time.monotonic() - began:.3f}", flush=True)


def fuzz(check: Callable[[bytes], None], target: str, folder: Path, options: list[str]) -> None:
    """Fuzz one target in this process, whose output goes into a log from now on; does not return."""
    log = os.open(folder / f"{target}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    more = [
        f"-timeout={LIMIT_S}",
        f"-rss_limit_mb={LIMIT_MIB}",
        f"-artifact_prefix={folder / 'findings' / target}/",
        "-print_final_stats=1",
        "-use_value_profile=1",
        "-reload=0",
    ]
    atheris.Setup([sys.argv[0], *options, *more, str(folder / "corpus" / target)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
