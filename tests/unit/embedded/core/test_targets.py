from __future__ import annotations

import pytest

from triplicate.embedded.core.targets import FleetTarget, FolderTarget, MemoryTarget, Target, parse_target
from triplicate.errors import ArgumentError


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("memory:", MemoryTarget()),
        (":memory:", MemoryTarget()),
        ("app.triplicate", FolderTarget("/base/app.triplicate")),
        ("/srv/./app", FolderTarget("/srv/app")),
        ("zk://a:2181;b/ledgers", FleetTarget("zk://a:2181;b/ledgers")),
        ("sqlite:///srv/c/metadata.db", FleetTarget("sqlite:///srv/c/metadata.db")),
    ],
)
def test_a_text_names_a_place(text: str, target: Target) -> None:
    assert parse_target(text, "/base") == target


@pytest.mark.parametrize("text", ["", "postgresql://localhost/db", "sqlite://relative", "a\0b"])
def test_other_texts_are_refused_with_the_known_forms(text: str) -> None:
    with pytest.raises(ArgumentError, match="path of a folder, memory:"):
        parse_target(text, "/base")
