"""The documented ways to read and write values in JSON, Protobuf and Avro."""

from __future__ import annotations

import importlib.util
import re
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.spark.conftest import Bench
from tests.spark.stored_values import AVRO, store

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "spark.md"
PROTO = 'syntax = "proto3"; message Order { int64 id = 1; optional string item = 2; }'


def examples() -> list[str]:
    """The blocks of code of the section, in order."""
    section = re.search(r"\n## Formats\n(.*?)\n## ", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    assert section is not None
    found = re.findall(r"```python\n(.*?)```", section[1], re.DOTALL)
    assert len(found) == 2
    return found


def run_json(bench: Bench, log: str) -> dict[str, Any]:
    names: dict[str, Any] = {"spark": bench.spark, "uri": bench.uri}
    exec(examples()[0].replace('"orders"', repr(log)), names)
    return names


def values(frame: DataFrame) -> list[bytes | None]:
    return [None if value is None else bytes(value) for value in frame.toArrow()["value"].to_pylist()]


def test_json_with_the_id_of_a_schema(bench: Bench) -> None:
    frame = struct.pack(">bI", 0, 2**31 - 1)
    names = run_json(bench, store(bench, frame + b'{"id": 7, "item": "tea"}', frame + b"{no json"))
    last = 2**31 - 1
    assert names["orders"].collect() == [(last, 7, "tea", None), (last, None, None, "{no json")]
    assert names["plain"].first() == ('{"id":7,"item":"tea"}',)
    assert values(names["framed_again"])[0] == struct.pack(">bI", 0, 17) + b'{"id":7,"item":"tea"}'


@pytest.fixture
def functions(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The document's functions, with the module of messages known to driver and executors."""
    protoc = pytest.importorskip("grpc_tools.protoc", reason="the test makes the module of its messages with grpcio-tools")
    (bench.folder / "orders.proto").write_text(PROTO)
    assert protoc.main(["protoc", f"-I{bench.folder}", f"--python_out={bench.folder}", "orders.proto"]) == 0
    monkeypatch.syspath_prepend(str(bench.folder))
    bench.spark.addArtifacts(str(bench.folder / "orders_pb2.py"), pyfile=True)
    if importlib.util.find_spec("fastavro") is None:
        monkeypatch.setitem(sys.modules, "fastavro", _without_fastavro())
    names: dict[str, Any] = {}
    exec(examples()[1], names)
    yield names
    del sys.modules["orders_pb2"]


def _without_fastavro() -> ModuleType:
    """A module with which the document's code can be run, and Protobuf be tried, but not Avro."""
    module = ModuleType("fastavro")
    module.parse_schema = lambda schema: schema  # type: ignore[attr-defined]
    return module


def test_protobuf_and_back(bench: Bench, functions: dict[str, Any]) -> None:
    stored = [functions["Order"](id=7, item="tea").SerializeToString(), b""]
    rows = bench.reader(store(bench, *stored)).load()
    orders = rows.select(functions["from_protobuf"]("value").alias("order"))
    assert orders.select("order.*").collect() == [(7, "tea"), (0, "")]
    assert values(orders.select(functions["to_protobuf"]("order").alias("value")).limit(1)) == stored[:1]


def test_avro_and_back(bench: Bench, functions: dict[str, Any]) -> None:
    if not hasattr(functions["fastavro"], "schemaless_reader"):
        pytest.skip("the documented way to read Avro without a jar needs fastavro, which the project does not")
    rows = bench.reader(store(bench, *AVRO)).load()
    orders = rows.select(functions["from_avro"]("value").alias("order"))
    assert orders.select("order.*").collect() == [(7, "tea"), (300, None)]
    assert values(orders.select(functions["to_avro"]("order").alias("value"))) == list(AVRO)
