"""The place of the audit log."""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from triplicate.cli.process.audit_log import OLD_FILES, configure_audit_log, reopen_audit_log
from triplicate.errors import EnvironmentFault
from triplicate.security import AUDIT_LOGGER, audit


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    logger = logging.getLogger(AUDIT_LOGGER)
    level, propagate = logger.level, logger.propagate
    yield
    configure_audit_log("", 0)
    logger.setLevel(level)
    logger.propagate = propagate


def test_the_file_is_private_and_appended_to(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    file.write_text("before\n")
    file.chmod(0o644)
    configure_audit_log(str(file), 1 << 20)
    audit("login accepted", 0, {"role": "anna"})
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before, line = file.read_text().splitlines()
    assert before == "before"
    assert json.loads(line) == {"time": "1970-01-01T00:00:00.000Z", "event": "login accepted", "role": "anna"}


def test_the_files_are_bounded_and_private(tmp_path: Path) -> None:
    configure_audit_log(str(tmp_path / "audit"), 4096)
    for number in range(2000):
        audit("login refused", 0, {"role": f"{number:0100}"})
    files = sorted(tmp_path.iterdir())
    assert len(files) == OLD_FILES + 1
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 and file.stat().st_size <= 4096 for file in files)
    assert f"{1999:0100}" in (tmp_path / "audit").read_text()


def test_it_goes_to_standard_error_where_asked(capsys: pytest.CaptureFixture[str]) -> None:
    configure_audit_log("stderr", 4096)
    audit("login accepted", 0, {"role": "anna"})
    assert json.loads(capsys.readouterr().err)["role"] == "anna"


def test_without_a_place_nothing_is_written(caplog: pytest.LogCaptureFixture) -> None:
    configure_audit_log("", 4096)
    audit("login accepted", 0, {"role": "anna"})
    assert not caplog.records


def test_a_place_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"node\.audit_log: .*none/audit cannot be written: No such file"):
        configure_audit_log(str(tmp_path / "none" / "audit"), 4096)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnvironmentFault, match="cannot be written"):
        configure_audit_log(str(tmp_path / "link"), 4096)
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_that_was_renamed_is_made_again_after_it_is_reopened(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    configure_audit_log(str(file), 1 << 20)
    audit("login accepted", 0, {"role": "anna"})
    file.rename(tmp_path / "rotated")
    reopen_audit_log()
    audit("login accepted", 0, {"role": "berta"})
    assert json.loads(file.read_text())["role"] == "berta"
    assert json.loads((tmp_path / "rotated").read_text())["role"] == "anna"
