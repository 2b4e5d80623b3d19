from __future__ import annotations

import asyncio
from pathlib import Path

from triplicate.client.location_script import LocationScript
from triplicate.runtime import real_host


def script_of(folder: Path, text: str) -> str:
    path = folder / "racks.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def resolve(path: str, machines: list[str], limit_s: float = 5.0) -> LocationScript:
    async def main() -> LocationScript:
        script = LocationScript(real_host("client"), path, limit_s)
        await script.resolve(machines)
        await script.resolve(machines)
        return script

    return asyncio.run(main())


def test_the_program_is_called_with_the_machines(tmp_path: Path) -> None:
    path = script_of(tmp_path, f'echo "$@" >> {tmp_path}/calls; for each in "$@"; do echo /rack-of-$each; done')
    assert resolve(path, ["h2", "h1", "h2"]).locations == {"h1": "/rack-of-h1", "h2": "/rack-of-h2"}
    assert (tmp_path / "calls").read_text() == "h1 h2\n"


def test_many_machines_are_resolved_in_several_calls(tmp_path: Path) -> None:
    path = script_of(tmp_path, f'echo $# >> {tmp_path}/calls; for each in "$@"; do echo /r; done')
    assert len(resolve(path, [f"h{number}" for number in range(130)]).locations) == 130
    assert (tmp_path / "calls").read_text() == "100\n30\n"


def test_a_program_that_fails_is_named_and_gives_no_locations(tmp_path: Path) -> None:
    for text, reason in (("exit 3", "exit code 3"), ("echo /a /b /c", "printed 3 locations for 2 machines")):
        script = resolve(script_of(tmp_path, text), ["h1", "h2"])
        assert script.locations == {}
        assert reason in script.failure
    assert "placement_script: " in resolve(str(tmp_path / "none"), ["h1"]).failure


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    script = resolve(script_of(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 60"), ["h1"], 0.3)
    assert "did not end within 0.3 s" in script.failure
    process = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{process}").exists() or "Z" in Path(f"/proc/{process}/stat").read_text().split()[2]


def test_a_group_of_machines_without_an_answer_is_told_though_another_group_has_one(tmp_path: Path) -> None:
    path = script_of(tmp_path, 'test $1 = h100 && exit 3; for each in "$@"; do echo /r; done')
    machines = [f"h{number}" for number in range(100, 230)]

    async def main() -> None:
        script = LocationScript(real_host("client"), path, 5.0)
        await script.resolve(machines)
        assert len(script.locations) == 30
        assert "exit code 3" in script.failure
        await script.resolve(machines[100:])
        assert script.failure == ""
        script_of(tmp_path, 'for each in "$@"; do echo /r; done')
        script._expires.clear()
        await script.resolve(machines)
        assert script.failure == ""

    asyncio.run(main())
