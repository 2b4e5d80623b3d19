"""A short run of every fuzz target with a fixed seed, and a run over golden bytes and former findings without a fuzzer."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import streams
from tests.fuzz.corpus import FOUND, seeds
from tests.fuzz.instrumented import COUNTED_ONLY, SOURCE, is_watched
from tests.fuzz.run import fuzz_all, is_available, shares
from tests.fuzz.targets import DECODERS, STORED, TARGETS
from triplicate.wire import AddRequest, AddRun, Request, scan_adds, v2

INPUTS = 6_000
SEED = 20130101


@pytest.mark.parametrize("target", TARGETS)
def test_golden_bytes_and_former_findings_pass(target: str) -> None:
    for data in seeds(target):
        TARGETS[target].check(data)


@pytest.mark.parametrize("target", TARGETS)
def test_the_fuzzer_watches_the_modules_that_a_target_calls(target: str) -> None:
    check, inputs, files = TARGETS[target].check, seeds(target), set[str]()
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    try:
        for data in inputs:
            check(data)
    finally:
        sys.setprofile(None)
    ours = [Path(file) for file in files if file.startswith(f"{SOURCE}/triplicate/")]
    called = {".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in ours} - set(COUNTED_ONLY)
    assert called, "no module of the product was called"
    assert [module for module in sorted(called) if not is_watched(module, TARGETS[target].place.partition(".")[0])] == []


@pytest.mark.parametrize("module", [*DECODERS, *STORED])
def test_a_module_whose_lines_are_counted_exists(module: str) -> None:
    assert (SOURCE / "triplicate" / f"{module}.py").is_file()


def test_every_former_finding_belongs_to_a_target() -> None:
    assert {path.name for path in FOUND.iterdir() if path.is_dir()} <= set(TARGETS)


@pytest.mark.skipif(not is_available(), reason="atheris has wheels for CPython 3.11 to 3.13 on Linux x86-64 only")
def test_a_short_run_finds_nothing(tmp_path: Path) -> None:
    outcomes = fuzz_all(shares(INPUTS, list(TARGETS)), SEED, tmp_path)
    assert [finding for outcome in outcomes for finding in outcome.findings] == []
    assert sum(outcome.inputs for outcome in outcomes) >= INPUTS


def test_a_scanner_that_reads_another_id_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_too_many(*arguments: Any) -> AddRun | None:
        run = scan_adds(*arguments)
        return None if run is None else replace(run, entry_ids=[entry_id + 1 for entry_id in run.entry_ids])

    monkeypatch.setattr(streams, "scan_adds", one_too_many)
    assert _is_found("v2_adds")


def test_a_scanner_that_gives_up_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(*arguments: Any) -> None:
        return None

    monkeypatch.setattr(streams, "scan_v3_add_responses", gives_up)
    assert _is_found("v3_add_answers")


def test_a_decoder_that_loses_a_flag_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = v2.decode_request

    def without_recovery(body: bytes) -> Request:
        request = decode(body)
        return replace(request, high_priority=not request.high_priority) if isinstance(request, AddRequest) else request

    monkeypatch.setattr(v2, "decode_request", without_recovery)
    assert _is_found("v2_request")


def _is_found(target: str) -> bool:
    for data in seeds(target):
        try:
            TARGETS[target].check(data)
        except AssertionError:
            return True
    return False
