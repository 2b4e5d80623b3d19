"""What the documents point at is there."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.house.source import ROOT, committed_files

DOCUMENTS = [path for path in committed_files() if path.endswith(".md")]


@pytest.mark.parametrize("path", DOCUMENTS)
def test_links_and_paths_lead_somewhere(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    folder = (ROOT / path).parent
    links = [target for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in target]
    missing = [target for target in links if not (folder / target).exists()]
    named = re.findall(r"`((?:src|tests|docs|scripts|benchmarks)/[\w./-]+)`", text)
    missing += [target for target in named if not (ROOT / target).exists()]
    assert not missing, f"{path} points at what is not there"


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if path.startswith(("README", "CONTRIBUTING"))])
def test_make_targets_that_are_named_exist(path: str) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    text = (ROOT / path).read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.MULTILINE))
    assert named <= known


def test_no_two_decisions_share_a_number() -> None:
    names = [path.rpartition("/")[2] for path in DOCUMENTS if re.match(r"docs/decisions/\d{4}-", path)]
    numbers = [name[:4] for name in names]
    assert len(set(numbers)) == len(numbers), names
    for name in names:
        title = (ROOT / "docs" / "decisions" / name).read_text(encoding="utf-8").splitlines()[0]
        assert title.startswith(f"# {int(name[:4])}. "), f"{name} begins with its number"


def test_shell_scripts_parse() -> None:
    for path in ("scripts/setup.sh", ".ci/run"):
        subprocess.run(["bash", "-n", str(ROOT / path)], check=True)
