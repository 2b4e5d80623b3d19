"""Tokens in a file, replaced while a process runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplicate.errors import ConfigError
from triplicate.security import TokenFile, write_private

OLD, NEW = "the-old-token-of-a-test", "the-new-token-of-a-test"
INTERVAL_S = 60.0


class SteppedClock:
    """A clock that the test moves."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Watched:
    """A token file, its clock, and what it traced."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tokens"
        self.clock = SteppedClock()
        self.traced: list[tuple[str, dict[str, object]]] = []
        self.write(OLD)
        trace = lambda kind, /, **facts: self.traced.append((kind, facts))  # noqa: E731
        self.tokens = TokenFile(str(self.path), "process.metrics_token_file", self.clock, trace, INTERVAL_S)  # type: ignore[arg-type]

    def write(self, *tokens: str) -> None:
        write_private(str(self.path), "\n".join(tokens).encode())

    def later(self) -> None:
        self.clock.now += INTERVAL_S


def test_a_token_is_replaced_without_an_outage(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    watched.write(NEW, OLD)
    assert not watched.tokens.admits(NEW)
    watched.later()
    assert watched.tokens.admits(NEW)
    assert watched.tokens.admits(OLD)
    watched.write(NEW)
    watched.later()
    assert watched.tokens.admits(NEW)
    assert not watched.tokens.admits(OLD)
    assert [kind for kind, _ in watched.traced] == ["security.tokens_renewed"] * 2


def test_a_file_that_cannot_be_used_leaves_the_old_tokens_and_is_tried_again(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    for spoil in (lambda: watched.write("short"), watched.path.unlink, lambda: watched.path.write_text(NEW)):
        spoil()
        watched.later()
        assert watched.tokens.admits(OLD)
        assert not watched.tokens.admits(NEW)
    assert [kind for kind, _ in watched.traced] == ["security.tokens_not_renewed"] * 3
    assert "short" not in str(watched.traced)
    watched.write(NEW)
    watched.later()
    assert watched.tokens.admits(NEW)


def test_a_file_that_others_read_or_that_holds_no_token_stops_the_start(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(OLD)
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=r"process\.metrics_token_file: others than its owner"):
        TokenFile(str(path), "process.metrics_token_file", SteppedClock(), lambda kind, /, **facts: None, INTERVAL_S)  # type: ignore[arg-type]
    write_private(str(path), b"short")
    with pytest.raises(ConfigError, match=rf"process\.metrics_token_file: {path}: token 1"):
        TokenFile(str(path), "process.metrics_token_file", SteppedClock(), lambda kind, /, **facts: None, INTERVAL_S)  # type: ignore[arg-type]
