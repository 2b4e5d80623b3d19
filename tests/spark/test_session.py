"""A session leaves nothing outside its run folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.spark.conftest import DOCUMENT, Bench, litter, needs_limits
from triplicate.log import Logs, LogSettings


def test_a_job_leaves_no_file_outside_the_run_folder(bench: Bench, place: Path, litter_before: set[Path]) -> None:
    log = bench.new_log()
    bench.write(log, range(10))
    assert bench.values(log) == list(range(10))
    assert litter() <= litter_before
    assert any((place / "spark" / "local").iterdir())


def test_processes_of_spark_load_pyspark_compiled(bench: Bench) -> None:
    def where(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa
        import pyspark.serializers

        list(batches)
        yield pa.record_batch({"path": [pyspark.serializers.__file__]})

    (row,) = bench.spark.range(1, numPartitions=1).mapInArrow(where, "path string").collect()
    assert ".zip" not in row["path"]


@needs_limits
def test_the_documents_example_runs(bench: Bench) -> None:
    found = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    example = found[1].replace("sqlite:///path/of/cluster/metadata.db", bench.uri)
    for name in ("flights.csv", "lake", "lake-checkpoint"):
        assert f'"{name}"' in example
        example = example.replace(f'"{name}"', repr(str(bench.folder / name)))
    (bench.folder / "flights.csv").write_text("carrier,flight\nAA,1\nUA,2\n")
    bench.run(lambda client: Logs(client).create("flights", LogSettings()))
    exec(example, {})
    rows = bench.spark.read.parquet(str(bench.folder / "lake")).orderBy("offset").collect()
    assert [(row["offset"], row["key"]) for row in rows] == [(0, b"AA"), (1, b"UA")]
