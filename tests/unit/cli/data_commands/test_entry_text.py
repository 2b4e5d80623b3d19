"""Payloads are read line by line from any chunks of a pipe; entries are printed in four forms."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from triplicate.cli.data_commands.entry_text import EntryPrinter, FixedSource, LineSource, entry_facts
from triplicate.ledger import Entry


class InlineWorker:
    """A worker that works at once."""

    def run(self, function: Callable[..., Any], *arguments: Any, answer: asyncio.Future[Any] | None = None) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future() if answer is None else answer
        future.set_result(function(*arguments))
        return future

    async def close(self) -> None:
        return


def lines_of(*chunks: bytes) -> list[bytes]:
    """The lines that a source finds in chunks that arrive one read at a time."""
    waiting = list(chunks)

    async def collect() -> list[bytes]:
        source = LineSource(-1, InlineWorker())
        found: list[bytes] = []
        while batch := await source.next_batch():
            found += batch
        return found

    original = os.read
    try:
        os.read = lambda descriptor, size: waiting.pop(0) if waiting else b""
        return asyncio.run(collect())
    finally:
        os.read = original


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([b"a\nb\n"], [b"a", b"b"]),
        ([b"a", b"b\nc", b"\n"], [b"ab", b"c"]),
        ([b"a\n\nb"], [b"a", b"", b"b"]),
        ([b"\xff\r\n"], [b"\xff\r"]),
        ([], []),
        ([b"\n"], [b""]),
    ],
)
def test_lines_are_found_across_reads(chunks: list[bytes], expected: list[bytes]) -> None:
    assert lines_of(*chunks) == expected


def test_a_line_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("triplicate.cli.data_commands.entry_text.LINE_BYTES_MAX", 10)
    with pytest.raises(ValueError, match="a line is longer than 10 bytes"):
        lines_of(b"x" * 6, b"x" * 6)


def test_an_argument_reaches_the_ledger_with_its_own_bytes() -> None:
    async def collect() -> list[list[bytes]]:
        source = FixedSource(["ü", b"\xff".decode("utf-8", "surrogateescape")])
        return [await source.next_batch(), await source.next_batch()]

    assert asyncio.run(collect()) == [["ü".encode(), b"\xff"], []]


@pytest.mark.parametrize(
    ("form", "with_ids", "expected"),
    [
        ("text", False, b"hi\n\\xff\n"),
        ("text", True, b"0\thi\n1\t\\xff\n"),
        ("hex", True, b"0\t6869\n1\tff\n"),
        ("raw", False, b"hi\xff"),
    ],
)
def test_entries_are_written_in_the_form_asked_for(
    form: str, with_ids: bool, expected: bytes, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    EntryPrinter(form, with_ids=with_ids).write([Entry(7, 0, -1, 2, b"hi"), Entry(7, 1, 0, 3, b"\xff")])
    assert capfdbinary.readouterr().out == expected


def test_a_payload_that_is_no_text_is_base64_in_json() -> None:
    assert entry_facts(Entry(7, 1, 0, 3, b"\xff")) == {"entry_id": 1, "last_add_confirmed": 0, "length": 3, "payload_base64": "/w=="}
    assert json.loads(json.dumps(entry_facts(Entry(7, 0, -1, 3, "ü".encode()))))["payload"] == "ü"
