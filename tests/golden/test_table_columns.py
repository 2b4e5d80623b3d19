"""Options in the columns of a table in Spark's catalogue, of each version: all are read, and the newest is written to the same bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from triplicate.spark.core.table_options import MARK, VERSION, marked, options_in

types = pytest.importorskip("pyspark.sql.types", reason="columns of tables need PySpark: pip install 'triplicate[spark]'")

SAMPLES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "spark" / "table_columns.json").read_text())


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["written by"])
def test_the_options_of_every_version_are_read(sample: dict[str, Any]) -> None:
    assert options_in([(sample["column"]["name"], sample["column"]["metadata"])]) == sample["options"]


def test_the_newest_version_is_written_to_the_same_bytes() -> None:
    newest = SAMPLES[-1]
    assert json.loads(newest["column"]["metadata"][MARK])["v"] == VERSION
    made = marked(types.StructType([types.StructField("value", types.BinaryType(), False)]), newest["options"])
    assert made.jsonValue()["fields"] == [newest["column"]]
