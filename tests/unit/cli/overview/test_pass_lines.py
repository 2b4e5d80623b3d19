"""The progress of copying on standard error."""

from __future__ import annotations

import pytest

from triplicate.cli.overview.pass_lines import PassLines


def test_a_long_pass_shows_how_much_it_has_copied(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([9.0, 10.0, 11.0, 12.5, 13.0, 15.0])
    monkeypatch.setattr("time.monotonic", lambda: next(times))
    progress = PassLines().progress
    progress.ledgers_total = 1
    for _ in range(5):
        progress.copied(1 << 20)
    assert capsys.readouterr().err.splitlines() == [
        "ledgers 0 of 1, 2.0 MiB copied, 1.0 MiB/s",
        "ledgers 0 of 1, 4.0 MiB copied, 1.0 MiB/s",
        "ledgers 0 of 1, 5.0 MiB copied, 853.3 KiB/s",
    ]
