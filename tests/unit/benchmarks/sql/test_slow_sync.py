"""The preloaded library makes a sync cost more; without a compiler the reason says so."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks.ledger.processes import CaseFailed
from benchmarks.sql import slow_sync

has_compiler = any(shutil.which(name) for name in ("cc", "gcc", "clang"))


@pytest.mark.skipif(not has_compiler, reason="no C compiler")
def test_a_sync_takes_longer_with_the_library(tmp_path: Path) -> None:
    library = slow_sync.build(tmp_path)
    assert slow_sync.measured_ms(tmp_path, slow_sync.environment(library), count=3) >= slow_sync.DELAY_US / 1000


@pytest.mark.skipif(not has_compiler, reason="no C compiler")
def test_a_library_without_effect_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_sync, "measured_ms", lambda folder, variables, count: 0.05)
    with pytest.raises(CaseFailed, match="has no effect"):
        slow_sync.build(tmp_path)


def test_without_a_compiler_the_reason_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(CaseFailed, match="there is no C compiler"):
        slow_sync.build(tmp_path)
