"""All fuzz targets by name. A target accepts any bytes; an exception is a finding."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Target:
    place: str
    """Module of this package, dot, function; imported when first called, since a fuzzer's process needs one of them only."""
    share: int
    """Its share of a run's inputs."""
    most_bytes: int = 1024
    """Of one input."""

    def check(self, data: bytes) -> None:
        module, _, name = self.place.partition(".")
        getattr(import_module(f"tests.fuzz.{module}"), name)(data)


TARGETS: dict[str, Target] = {
    "v2_request": Target("decoders.v2_request", 6),
    "v2_response": Target("decoders.v2_response", 6),
    "v3_request": Target("decoders.v3_request", 5),
    "v3_response": Target("decoders.v3_response", 5),
    "v3_damaged": Target("decoders.v3_damaged", 5),
    "written": Target("decoders.written", 5),
    "frames": Target("decoders.frames", 3),
    "v2_adds": Target("streams.v2_adds", 3),
    "v2_add_answers": Target("streams.v2_add_answers", 2),
    "v3_adds": Target("streams.v3_adds", 3),
    "v3_add_answers": Target("streams.v3_add_answers", 2),
    "metadata": Target("stored.metadata", 3),
    "made_metadata": Target("stored.made_metadata", 2),
    "cookie": Target("stored.cookie", 1, 512),
    "service_info": Target("stored.service_info", 1, 512),
    "nodes": Target("stored.nodes", 1, 256),
    "listed": Target("stored.listed", 2),
    "entries": Target("stored.entries", 2),
    "login_packets": Target("database_logins.first_packets", 3),
    "login_proof": Target("database_logins.proof", 3),
    "login_directives": Target("logins.directives", 2),
    "login_tokens": Target("logins.tokens", 3),
    "login_users": Target("logins.users", 1),
    "login_door": Target("logins.door", 3),
    "resp_requests": Target("resp_requests.requests", 3),
}

DECODERS = (
    "wire/frames",
    "wire/status",
    "wire/v2",
    "wire/v2_bulk",
    "wire/v3/bulk",
    "wire/v3/envelope",
    "wire/v3/requests",
    "wire/v3/responses",
)
"""The modules of both protocol versions; the corpus must cover `LEAST_COVERAGE` per cent of their lines."""

LEAST_COVERAGE = 95.0

STORED = ("ledger/metadata_format", "ledger/availability", "ledger/entry", "metadata/cookies", "metadata/core/service_info")
"""Further measured modules, which also contain code that no fuzzer calls."""
