"""The limit of open files of a server process."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from triplicate.cli.process.serving import warn_of_open_files

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


@pytest.mark.parametrize(("connections", "is_warned"), [(100, False), (900, True)])
def test_a_limit_of_connections_beyond_the_open_files_is_reported(
    connections: int, is_warned: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1000, 1000))
    warn_of_open_files(connections, "node.connections")
    assert ("raise it (ulimit -Hn) to 1100 or more, or lower node.connections" in caplog.text) == is_warned
