"""Secrets in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from triplicate.errors import ConfigError
from triplicate.security import read_secret_file


def written(path: Path, content: bytes, mode: int = 0o600) -> str:
    path.write_bytes(content)
    path.chmod(mode)
    return str(path)


def test_a_secret_is_the_text_of_its_file_without_the_line_break(tmp_path: Path) -> None:
    assert read_secret_file(written(tmp_path / "a", b"se cret \n"), "x.y") == "se cret "
    assert read_secret_file(written(tmp_path / "b", b"secret\r\n"), "x.y") == "secret"


@pytest.mark.parametrize(
    ("content", "mode", "said"),
    [
        (b"hidden word", 0o644, "others than its owner"),
        (b"hidden word", 0o620, "chmod 600"),
        (b"", 0o600, "is empty"),
        (b"\n", 0o600, "is empty"),
        (b"hidden word \xff", 0o600, "not UTF-8"),
        (b"hidden word" * 10_000, 0o600, "bytes"),
    ],
)
def test_a_file_that_is_no_secret_is_refused_without_its_content(tmp_path: Path, content: bytes, mode: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_secret_file(written(tmp_path / "file", content, mode), "metadata.password_file")
    assert said in str(caught.value)
    assert "metadata.password_file" in str(caught.value)
    assert "hidden" not in str(caught.value)


def test_a_missing_file_is_named_with_its_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"x\.y: .*nothing cannot be read"):
        read_secret_file(str(tmp_path / "nothing"), "x.y")
