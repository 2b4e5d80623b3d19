"""A program: a database node with the clock of `stages` around its functions.

Usage: python -m benchmarks.sql.staged_node [--plain | --samples] ARGUMENTS OF `triplicate node`

Each line on standard input is answered with one line of JSON: the seconds and calls of each stage and the process's processor seconds since
its start, less the cost of the clock. With ``--plain`` no function is wrapped, and only the processor seconds are reported; with
``--samples`` so are the functions on the main thread's stack, by their number of samples.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import TextIO

from benchmarks.sql.sampling import Sampler
from benchmarks.sql.stages import StageClock, install
from triplicate.cli.server_commands import node_command


def answer(clock: StageClock, sampler: Sampler, answers: TextIO) -> None:
    """Answer each line until the parent closes the pipe."""
    for _ in sys.stdin:
        cpu_s = time.process_time() - clock.cost_s()
        samples = {"own": dict(sampler.own), "inside": dict(sampler.inside)}
        facts = {"stages": clock.seconds(), "calls": clock.calls(), "cpu_s": cpu_s, **samples}
        print(json.dumps({"ok": facts}), file=answers, flush=True)


def main() -> None:
    arguments = sys.argv[1:]
    clock, sampler = StageClock(), Sampler()
    mode = arguments.pop(0) if arguments[:1] in (["--plain"], ["--samples"]) else ""
    if not mode:
        install(clock)
    if mode == "--samples":
        sampler.start()
    # The node prints on standard output, too.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    threading.Thread(target=answer, args=(clock, sampler, answers), name="answers", daemon=True).start()
    node_command.node(arguments, prog_name="node")


if __name__ == "__main__":
    main()
