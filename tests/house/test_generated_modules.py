"""The generated protobuf modules are what their .proto files say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from grpc_tools import protoc  # type: ignore[import-untyped]

SOURCE = Path(__file__).resolve().parents[2] / "src"


def without_versions(text: str) -> str:
    """A generated module without the protobuf version that made it."""
    text = re.sub(r"# Protobuf Python Version: .*", "", text)
    return re.sub(r"Domain\.PUBLIC,\s*\d+,\s*\d+,\s*\d+,", "Domain.PUBLIC,", text)


@pytest.mark.parametrize("proto", sorted(str(path.relative_to(SOURCE)) for path in SOURCE.glob("triplicate/*/*.proto")))
def test_generated_modules_are_up_to_date(proto: str, tmp_path: Path) -> None:
    assert protoc.main(["protoc", f"-I{SOURCE}", f"--python_out={tmp_path}", f"--pyi_out={tmp_path}", proto]) == 0
    for suffix in ("_pb2.py", "_pb2.pyi"):
        name = proto.removesuffix(".proto") + suffix
        committed = without_versions((SOURCE / name).read_text(encoding="utf-8"))
        made = without_versions((tmp_path / name).read_text(encoding="utf-8"))
        assert committed == made, f"{name} is stale: in src/, run python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. {proto}"
