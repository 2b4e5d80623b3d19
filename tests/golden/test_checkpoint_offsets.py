"""Offsets in Spark's checkpoints of each version: all are read, and the newest is written to the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triplicate.spark.core import change_offsets
from triplicate.spark.core.offsets import VERSION, LogPosition, LogPositions, decode_positions, encode_positions

FOLDER = Path(__file__).parent / "spark"
SAMPLES: list[dict[str, Any]] = json.loads((FOLDER / "checkpoint_offsets.json").read_text())
OF_CHANGES: list[dict[str, Any]] = json.loads((FOLDER / "change_offsets.json").read_text())


def positions(numbers: dict[str, list[Any]]) -> dict[str, LogPosition]:
    return {log: LogPosition(*position) for log, position in numbers.items()}


def kept(sample: dict[str, Any]) -> LogPositions:
    return LogPositions(positions(sample["logs"]), positions(sample["left"]), sample.get("begun", {}))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: str(sample["written by"]))
def test_the_offset_of_every_version_is_read(sample: dict[str, Any]) -> None:
    assert decode_positions(sample["offset"]) == kept(sample)


@pytest.mark.parametrize(
    "sample", [sample for sample in SAMPLES if sample["offset"]["v"] == VERSION], ids=lambda sample: str(sample["written by"])
)
def test_the_newest_version_is_written_to_the_same_bytes(sample: dict[str, Any]) -> None:
    assert json.dumps(encode_positions(kept(sample))) == json.dumps(sample["offset"])


@pytest.mark.parametrize("sample", OF_CHANGES, ids=lambda sample: sample["written by"])
def test_the_offset_of_a_change_feed_is_read_and_written(sample: dict[str, Any]) -> None:
    decoded = change_offsets.decode_offset(sample["offset"], "shop-log", "orders")
    assert decoded == change_offsets.ChangesOffset(*sample["decoded"])
    if sample["offset"]["v"] == change_offsets.VERSION:
        assert json.dumps(decoded.encode("shop-log")) == json.dumps(sample["offset"])
