"""Records of logs on the command line: as text, hex, JSON or raw bytes."""

from __future__ import annotations

import base64
import json
from typing import Any

from triplicate.cli.terminal.pipes import write_output
from triplicate.log import LogEntry

FORMATS = ("text", "hex", "json", "raw")


class RecordPrinter:
    """Writes records to standard output.

    Args:
        form: ``text`` (bytes that are no UTF-8 are escaped), ``hex``, ``json`` (one object a line) or ``raw`` (values alone).
        with_offsets: put the offset and a tab first; JSON has it anyway.
    """

    def __init__(self, form: str, *, with_offsets: bool) -> None:
        self._form = form
        self._with_offsets = with_offsets

    def write(self, entry: LogEntry) -> None:
        """Write the records of one entry and flush, so that a reader of the pipe receives them at once."""
        if self._form == "json":
            write_output(b"".join(json.dumps(facts, ensure_ascii=False, sort_keys=True).encode() + b"\n" for facts in record_facts(entry)))
        elif self._form == "raw":
            write_output(b"".join(value or b"" for value in entry.values))
        else:
            write_output(b"".join(self._line(offset, value) for offset, value in zip(entry.offsets, entry.values, strict=True)))

    def _line(self, offset: int, value: bytes | None) -> bytes:
        plain = value or b""
        text = plain.hex() if self._form == "hex" else plain.decode("utf-8", "backslashreplace")
        return (f"{offset}\t{text}\n" if self._with_offsets else f"{text}\n").encode()


def record_facts(entry: LogEntry) -> list[dict[str, Any]]:
    """The records of an entry for JSON. Missing parts are left out; a value that is not UTF-8 is ``value_base64``."""
    keys, times, transactions, headers = entry.keys, entry.timestamps_us, entry.transaction_ids, entry.headers
    found: list[dict[str, Any]] = []
    for slot, (offset, value) in enumerate(zip(entry.offsets, entry.values, strict=True)):
        facts: dict[str, Any] = {"offset": offset, **_text("value", value)}
        facts["timestamp_us"] = entry.wall_time_us if times is None else times[slot]
        if keys is not None and keys[slot] is not None:
            facts.update(_text("key", keys[slot]))
        if transactions is not None:
            facts["transaction_id"] = transactions[slot]
        if headers is not None and headers[slot]:
            facts["headers"] = [{"name": name, **_text("value", item)} for name, item in headers[slot]]
        found.append(facts)
    return found


def _text(name: str, value: bytes | None) -> dict[str, Any]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(value).decode("ascii")}
