"""The example on the README's first screen runs as printed, with the printed output."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.process.readme import README
from tests.process.running import TIMEOUT_S, Up, environment


def test_the_example_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    program = tmp_path / "example.py"
    program.write_text(blocks[0])
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "0") as up:
        answer = subprocess.run(
            [sys.executable, "-W", "error", str(program)],
            env=environment(TRIPLICATE_METADATA=up.uri),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    assert answer.stderr == ""
    assert answer.stdout.splitlines() == ["acknowledged: 0", "acknowledged: 1", "[b'never', b'lost']"]
