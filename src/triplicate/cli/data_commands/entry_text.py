"""Input and output of entries: payloads from arguments or from lines of a file or pipe; entries as text, hex or JSON."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from typing import Any

from triplicate.cli.terminal.pipes import write_output
from triplicate.ledger import Entry
from triplicate.runtime import Worker

FORMATS = ("text", "hex", "json", "raw")
CHUNK_BYTES = 1 << 18
LINE_BYTES_MAX = 64 << 20


class LineSource:
    """Lines of a file or pipe, read by a worker thread. A batch has the available lines, so lines of a slow pipe are passed on one by one.

    Lines come without their line feed; a last line without one counts.
    """

    def __init__(self, descriptor: int, worker: Worker) -> None:
        self._descriptor = descriptor
        self._worker = worker
        self._rest = b""
        self._ended = False

    async def next_batch(self) -> list[bytes]:
        """At least one line, or none at the end.

        Raises:
            OSError: the read failed. ValueError: a line is longer than `LINE_BYTES_MAX`.
        """
        while not self._ended:
            chunk = await self._worker.run(os.read, self._descriptor, CHUNK_BYTES)
            if not chunk:
                self._ended = True
                last, self._rest = self._rest, b""
                return [last] if last else []
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            if len(self._rest) > LINE_BYTES_MAX:
                raise ValueError(f"a line is longer than {LINE_BYTES_MAX} bytes")
            if lines:
                return lines
        return []


class FixedSource:
    """Payloads from arguments, as one batch."""

    def __init__(self, payloads: Sequence[str]) -> None:
        # Python escapes bytes of an argument that are not UTF-8; the ledger receives the original bytes.
        self._payloads = [payload.encode("utf-8", "surrogateescape") for payload in payloads]

    async def next_batch(self) -> list[bytes]:
        payloads, self._payloads = self._payloads, []
        return payloads


class EntryPrinter:
    """Writes entries to standard output.

    Args:
        form: ``text`` (bytes that are no UTF-8 are escaped), ``hex``, ``json`` (one object a line) or ``raw`` (payloads alone).
        with_ids: put the entry id and a tab first; JSON has it anyway.
    """

    def __init__(self, form: str, *, with_ids: bool) -> None:
        self._form = form
        self._with_ids = with_ids

    def write(self, entries: Sequence[Entry]) -> None:
        """Write and flush, so that a reader of the pipe receives the entries at once."""
        write_output(b"".join(self._encode(entry) for entry in entries))

    def _encode(self, entry: Entry) -> bytes:
        if self._form == "raw":
            return bytes(entry.payload)
        if self._form == "json":
            return json.dumps(entry_facts(entry), ensure_ascii=False, sort_keys=True).encode() + b"\n"
        text = entry.payload.hex() if self._form == "hex" else entry.payload.decode("utf-8", "backslashreplace")
        return (f"{entry.entry_id}\t{text}\n" if self._with_ids else f"{text}\n").encode()


def entry_facts(entry: Entry) -> dict[str, Any]:
    """An entry for JSON: ``payload`` if it is UTF-8, else ``payload_base64``."""
    facts: dict[str, Any] = {"entry_id": entry.entry_id, "last_add_confirmed": entry.last_add_confirmed, "length": entry.length}
    try:
        return {**facts, "payload": entry.payload.decode("utf-8")}
    except UnicodeDecodeError:
        return {**facts, "payload_base64": base64.b64encode(entry.payload).decode("ascii")}
