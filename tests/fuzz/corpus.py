"""The seeds of a fuzzer: the golden bytes, whole and in streams, rewritten for each run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzz import logins
from tests.fuzz.database_logins import first_packet_seeds, proof_seeds
from tests.fuzz.resp_requests import request_seeds
from triplicate.metadata import Cookie, bookie_service, encode_cookie, encode_layout, encode_service_info
from triplicate.wire import is_v3

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
FOUND = GOLDEN / "fuzz"
"""Inputs of former findings, in hexadecimal digits, a folder per target."""

_RAW = b"\x00\x00\x00"
"""Prefix of a stream that is used unchanged: see `streams._given`."""
_PACKETS = ("v2_request", "v2_response", "v3_request", "v3_response")
_STREAMS = ("v2_adds", "v2_add_answers", "v3_adds", "v3_add_answers")


def golden_frames() -> list[bytes]:
    """Every frame, with its length, in the golden files: those derived from the protocol's description and those captured."""
    vectors = json.loads((GOLDEN / "protocol.json").read_text(encoding="utf-8"))
    frames = [bytes.fromhex(text) for kind in ("v2_frames", "v3_frames") for text in vectors[kind].values()]
    for path in sorted((GOLDEN / "captured").glob("**/*.json")):
        frames += [data for data in _hex_strings(json.loads(path.read_text(encoding="utf-8"))) if _is_frame(data)]
    return list(dict.fromkeys(frames))


def golden_metadata() -> list[bytes]:
    vectors = json.loads((GOLDEN / "protocol.json").read_text(encoding="utf-8"))
    found = [bytes.fromhex(text) for text in vectors["metadata"].values()]
    for path in sorted((GOLDEN / "captured").glob("**/*.json")):
        found += [data for data in _hex_strings(json.loads(path.read_text(encoding="utf-8"))) if data.startswith(b"BookieMetadataFormat")]
    return found


def seeds(target: str) -> list[bytes]:
    """The seeds of a target, with its former findings."""
    found = list(_seeds(target))
    folder = FOUND / target
    if folder.is_dir():
        found += [bytes.fromhex(path.read_text(encoding="ascii")) for path in sorted(folder.glob("*.hex"))]
    return found


def write_seeds(target: str, folder: Path) -> None:
    """Write one file per seed, named by its content as the fuzzer names its own."""
    folder.mkdir(parents=True, exist_ok=True)
    for data in seeds(target):
        (folder / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)


def _seeds(target: str) -> Iterator[bytes]:
    if target in _PACKETS:
        yield from (frame[4:] for frame in _frames_of(target))
    elif target in _STREAMS:
        frames = _frames_of(target)
        yield from (_RAW + frame * 3 for frame in frames)
        yield _RAW + b"".join(frames)
        yield from _described_streams()
    elif target == "frames":
        yield b"\xff\x01" + b"".join(golden_frames())
        yield from (b"\x10\x07" + frame for frame in golden_frames()[::10])
    elif target == "metadata":
        yield from golden_metadata()
        yield from _metadata_texts()
    else:
        yield from _OTHER[target]()


def _frames_of(target: str) -> list[bytes]:
    """Frames of the target's own version, and one of the other."""
    mine: list[bytes] = []
    others: list[bytes] = []
    for frame in golden_frames():
        (mine if is_v3(frame[4:]) == target.startswith("v3") else others).append(frame)
    return mine + others[:1]


def _described_streams() -> Iterator[bytes]:
    """Runs of adds or answers with ids around the steps of a varint, as bytes for `fields.Fields`."""
    for kind in (64, 192):
        head = bytes([kind]) + bytes(12 if kind == 64 else 0)
        for ids in (b"\x05\x07", b"\x81\x82", b"\x83\x85", b"\x86\x88", b"\x8a\x8c", b"\x8e\x90"):
            for flags in range(0, 64, 13):
                yield head + b"\x00" + ids + ids[:1] + bytes([flags, 9]) + b"\x06\x04data" * 9


def _metadata_texts() -> Iterator[bytes]:
    head = b"BookieMetadataFormatVersion\t"
    for end in (b"", b"\n5\tCLOSED", b"\n-102\tCLOSED"):
        yield head + b"1\n2\n3\n10\n0\tbk1:3181\tbk2:3181\tbk3:3181" + end
    text = b'quorumSize: 2\nensembleSize: 1\nlength: 0\nstate: OPEN\nsegment {\n  ensembleMember: "bk1:3181"\n  firstEntryId: 0\n}\n'
    yield head + b"2\n" + text.replace(b"ensembleSize: 1", b"ensembleSize: 2").replace(b"bk1", b'bk1:3181"\n  ensembleMember: "bk2')
    yield head + b"2\n" + text.replace(b"quorumSize: 2", b"quorumSize: 1") + b'digestType: CRC32C\npassword: "x"\nackQuorumSize: 1\n'


def _entry_seeds() -> Iterator[bytes]:
    vectors = json.loads((GOLDEN / "protocol.json").read_text(encoding="utf-8"))
    kinds = {"CRC32": 0, "HMAC": 1, "CRC32C": 2, "DUMMY": 3}
    for vector in vectors["entries"]:
        yield bytes([kinds[vector["digest_type"]]]) + bytes.fromhex(vector["entry"])
        yield bytes([128 + kinds[vector["digest_type"]], 7, 6, 58]) + bytes.fromhex(vector["payload"])
    for vector in vectors["lac_records"]:
        yield bytes([kinds[vector["digest_type"]]]) + bytes.fromhex(vector["record"])


def _cookie_seeds() -> Iterator[bytes]:
    yield encode_cookie(Cookie("bk1:3181", "/bk/journal", ("/bk/ledgers",), "4f8e"))
    yield encode_cookie(Cookie("bk1:3181", "/bk/journal", ("/bk/a", "/bk/b"), "", ("/bk/index",)))
    yield b"3\nbk1:3181\n/bk/journal\n1\t/bk/ledgers\n"


def _service_seeds() -> Iterator[bytes]:
    yield b"\x08bk1:3181"
    for info in (bookie_service("bk1", 3181), bookie_service("bk1", 3181, http_port=8080)):
        yield b"\x08bk1:3181" + encode_service_info(info)


def _node_seeds() -> Iterator[bytes]:
    yield from (b"\x00" + encode_layout(manager) for manager in ("hierarchical", "longhierarchical", "flat"))
    yield b"\x00" + b"1\nhierarchical:1"
    yield b"\x01a name/with%signs"
    yield from (b"\x02" + bytes([kind]) + b"\xff" * 8 for kind in (1, 130, 140, 255))


def _listed_seeds() -> Iterator[bytes]:
    vectors = json.loads((GOLDEN / "protocol.json").read_text(encoding="utf-8"))
    yield bytes.fromhex(vectors["availability_0_to_9"])


def _written_seeds() -> Iterator[bytes]:
    for kind in range(4):
        for message in range(10):
            yield bytes([kind, message, 5, 7]) + bytes(40)
            yield bytes([kind, message]) + b"\x03\x05\x07\x03\x01\x04data" * 5


def _damaged_seeds() -> Iterator[bytes]:
    for kind in range(4):
        for message in range(10):
            for head in (b"\x00\x00", b"\x01\x00\x09\x01\x00", b"\x00\x02\x48\x2a"):
                yield bytes([kind]) + head + bytes([message]) + b"\x03\x05\x07\x03\x01\x04data" * 5


def _made_metadata_seeds() -> Iterator[bytes]:
    for version in range(3):
        yield bytes([version, 2, 1, 1, 1, 0, 5, 2]) + b"\x04word\x01\x03key\x05\x01\x07\x3a"


_OTHER = {
    "written": _written_seeds,
    "v3_damaged": _damaged_seeds,
    "made_metadata": _made_metadata_seeds,
    "cookie": _cookie_seeds,
    "service_info": _service_seeds,
    "nodes": _node_seeds,
    "listed": _listed_seeds,
    "entries": _entry_seeds,
    "login_packets": first_packet_seeds,
    "login_proof": proof_seeds,
    "login_directives": logins.seeds_of_directives,
    "login_tokens": logins.seeds_of_tokens,
    "login_users": logins.seeds_of_users,
    "login_door": logins.seeds_of_door,
    "resp_requests": request_seeds,
}


def _hex_strings(node: Any) -> Iterator[bytes]:
    """Every string of hexadecimal digits anywhere in a JSON value."""
    if isinstance(node, dict):
        for value in node.values():
            yield from _hex_strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from _hex_strings(value)
    elif isinstance(node, str) and len(node) >= 8 and len(node) % 2 == 0:
        try:
            yield bytes.fromhex(node)
        except ValueError:
            return


def _is_frame(data: bytes) -> bool:
    return len(data) >= 8 and int.from_bytes(data[:4], "big") == len(data) - 4
