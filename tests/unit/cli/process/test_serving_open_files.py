"""The limit of open files of a server process."""

from __future__ import annotations

import resource
import subprocess
import sys

PROGRAM = """
import resource
from triplicate.cli.process.serving import serve_process
from triplicate.config import ProcessSettings
from triplicate.errors import EnvironmentFault

async def start(host, metrics):
    raise EnvironmentFault("limit %d" % resource.getrlimit(resource.RLIMIT_NOFILE)[0])

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 1000))
serve_process("node", ProcessSettings(), start, parent_pipe=None, ready_pipe=None)
"""


def test_a_server_takes_all_the_open_files_that_it_may_have() -> None:
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] >= 1000
    answer = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert answer.stderr.splitlines()[-1].endswith("limit 1000"), answer.stderr
