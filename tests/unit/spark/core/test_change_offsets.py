"""Offsets of change feeds in checkpoints, of this release and of earlier ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from triplicate.errors import FormatError
from triplicate.spark.core.change_offsets import ChangesOffset, decode_offset


def test_an_offset_reads_as_it_was_written() -> None:
    for offset in (
        ChangesOffset(1234),
        ChangesOffset(1234, "orders", 17, 18),
        ChangesOffset(0, None, None, 3),
        ChangesOffset(7, "t", 1, 1, "declared"),
    ):
        assert decode_offset(offset.encode("log"), "log", "another") == offset


def test_the_text_of_an_offset_is_always_the_same() -> None:
    # Spark compares checkpoints as text, and checkpoints of earlier releases are read for good.
    text = json.dumps(ChangesOffset(1234, "orders", 17, 18).encode("log"))
    assert text == '{"logs": {"log": 1234}, "named": 17, "schema": 18, "table": "orders", "v": 2}'


def test_an_offset_of_version_1_is_of_the_feeds_own_table() -> None:
    assert decode_offset({"logs": {"log": 5}, "v": 1}, "log", "orders") == ChangesOffset(5, "orders")


def test_a_consumer_without_rows_keeps_no_table() -> None:
    assert decode_offset({"logs": {"log": 5}, "table": None, "v": 2}, "log", "orders").table is None


@pytest.mark.parametrize(
    "changed",
    [
        {"v": 3},
        {"v": None},
        {"table": 7},
        {"named": "17"},
        {"schema": 1.5},
        {"types": 1},
        {"logs": 5},
        {"logs": {"log": "5"}},
        {"logs": {"log": True}},
        {"logs": None},
    ],
)
def test_an_offset_that_is_not_understood_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="cannot read"):
        decode_offset({**ChangesOffset(5, "orders", 1, 2).encode("log"), **changed}, "log", "orders")


def test_a_checkpoint_of_another_database_is_refused() -> None:
    with pytest.raises(FormatError, match=r"another database.*new checkpoint"):
        decode_offset(ChangesOffset(5).encode("other"), "log", "orders")
