"""Which modules a fuzzer watches: those that decode what its target is given.

atheris rewrites the bytecode of a module that it watches, which takes a hundred times as long as the import. A target imports its packages
whole, and most of their modules never see its input.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"

CODE: dict[str, tuple[str, ...]] = {
    "decoders": ("triplicate.wire", "triplicate.ledger.entry"),
    "streams": ("triplicate.wire", "triplicate.ledger.entry"),
    "stored": (
        "triplicate.ledger.availability",
        "triplicate.ledger.entry",
        "triplicate.ledger.entry_bulk",
        "triplicate.ledger.ledger_metadata",
        "triplicate.ledger.metadata_format",
        "triplicate.ledger.schedule",
        "triplicate.metadata.cookies",
        "triplicate.metadata.core",
        "triplicate.metadata.layout",
    ),
    "logins": (
        "triplicate.bookie.server.door",
        "triplicate.bookie.server.door_metrics",
        "triplicate.bookie.server.door_policy",
        "triplicate.bookie.server.doorkeeper",
        "triplicate.security.core",
        "triplicate.wire",
    ),
    "database_logins": ("triplicate.security.core", "triplicate.sql.pg.protocol.login_messages", "triplicate.sql.pg.protocol.wire"),
    "resp_requests": ("triplicate.kv.resp.core",),
}
"""By module of the targets: the modules and packages that read their input. `test_fuzz.py` sees that none is missing."""

COUNTED_ONLY = ("triplicate.runtime.metrics",)
"""Called by targets, without their input."""


def is_watched(module: str, targets: str) -> bool:
    """Whether the fuzzer of the targets in a module of this package watches a module of the product."""
    return any(module == place or module.startswith(f"{place}.") for place in CODE[targets])


def left_out(targets: str) -> Iterator[str]:
    """The modules of the product that the fuzzer of these targets does not watch."""
    for path in SOURCE.joinpath("triplicate").rglob("*.py"):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        if not is_watched(module, targets):
            yield module
