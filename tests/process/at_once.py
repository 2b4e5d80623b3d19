"""Commands that run in the test's own process, against servers that are processes of their own.

The start of a command's process costs about half a second of a processor, more than most commands. Where a test needs a command's effect
or its output, and another one of the same file starts it as a user would, the command runs here: from its arguments to its exit code.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

from click.testing import CliRunner

from triplicate.cli.main import main


def at_once(*arguments: str, uri: str | None = None, check: bool = True, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end, as `running.run` does, without standard input. Only on the main thread, and not within an event loop."""
    # None removes a setting of a developer's shell.
    variables: dict[str, str | None] = {name: None for name in os.environ if name.startswith("TRIPLICATE_")}
    variables.update(settings)
    if uri:
        variables["TRIPLICATE_METADATA"] = uri
    code: object = 0
    with CliRunner().isolation(env=variables) as (output, errors, _):
        try:
            main(arguments)
        except SystemExit as end:
            code = end.code
    assert isinstance(code, int)
    answer = subprocess.CompletedProcess(arguments, code, output.getvalue().decode(), errors.getvalue().decode())
    assert not check or answer.returncode == 0, answer.stderr
    return answer


def json_at_once(*arguments: str, uri: str) -> Any:
    return json.loads(at_once(*arguments, "--json", uri=uri).stdout)
