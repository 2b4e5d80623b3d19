"""Fuzz one target in this process: ``python -m tests.fuzz.worker TARGET RUNS SEED CORPUS FINDINGS``. Started by `run`.

The code under test is imported with atheris's instrumentation, so nothing of it may be imported before.
"""

from __future__ import annotations

import importlib
import sys

import atheris

LIMIT_S = 10
LIMIT_MIB = 1536


def main(target: str, runs: str, seed: str, corpus: str, findings: str) -> None:
    from tests.fuzz.instrumented import left_out
    from tests.fuzz.targets import TARGETS

    chosen = TARGETS[target]
    module, _, name = chosen.place.partition(".")
    with atheris.instrument_imports(include=["triplicate", "tests.fuzz"], exclude=list(left_out(module))):
        check = getattr(importlib.import_module(f"tests.fuzz.{module}"), name)
    options = [
        f"-runs={runs}",
        f"-seed={seed}",
        f"-max_len={chosen.most_bytes}",
        f"-timeout={LIMIT_S}",
        f"-rss_limit_mb={LIMIT_MIB}",
        f"-artifact_prefix={findings}/",
        "-print_final_stats=1",
        "-use_value_profile=1",
        "-reload=0",
    ]
    atheris.Setup([sys.argv[0], *options, corpus], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
