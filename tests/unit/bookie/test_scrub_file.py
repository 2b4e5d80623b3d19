"""The file of the scrubber's state."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from triplicate.bookie.core.scrub_state import ScrubState
from triplicate.bookie.scrub_file import SCRUB_NAME, ScrubFile
from triplicate.errors import FormatError
from triplicate.runtime.real_disk import RealDisk


def test_a_state_outlasts_the_process(tmp_path: Path) -> None:
    file = ScrubFile(RealDisk(), str(tmp_path))
    assert file.read() == ScrubState()
    state = ScrubState().begun([1, 2], 7).with_log_read(1)
    assert file.write(state)
    assert file.read() == state
    (tmp_path / SCRUB_NAME).write_bytes(b"")
    with pytest.raises(FormatError):
        file.read()


@pytest.mark.parametrize(("number", "is_refused"), [(errno.ENOSPC, False), (errno.EIO, True)])
def test_only_a_full_disk_is_tolerated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_refused: bool) -> None:
    disk = RealDisk()
    file = ScrubFile(disk, str(tmp_path))

    def refuse(source: str, target: str) -> None:
        raise OSError(number, "test")

    monkeypatch.setattr(disk, "rename", refuse)
    if is_refused:
        with pytest.raises(OSError, match="test"):
            file.write(ScrubState())
    else:
        assert not file.write(ScrubState())
    assert file.read() == ScrubState()
