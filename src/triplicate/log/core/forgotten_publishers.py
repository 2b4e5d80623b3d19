"""Publishers whose own nodes were deleted: the last batch of each, so that no batch is published twice.

`docs/formats/log.md` fixes the form. Names are kept as digests, because thousands must fit into one node.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from triplicate.errors import CorruptionError, FormatError

VERSION = 1
FORGOTTEN_MAXIMUM = 1000
"""Most publishers in the node, so that it stays below 64 KiB. Beyond it, those whose nodes were deleted first are dropped for good."""


@dataclass(frozen=True, slots=True)
class ForgottenPublishers:
    """Last batches by digest of the publisher's name, in the order in which the publishers' nodes were deleted."""

    batches: Mapping[str, int] = field(default_factory=dict)

    def last_batch(self, application: str) -> int | None:
        """The last batch of a publisher, or None if it is not among them."""
        return self.batches.get(digest_of(application))

    def with_publisher(self, application: str, batch: int) -> ForgottenPublishers:
        """With one more, and without the first ones if there are too many."""
        digest = digest_of(application)
        batches = {key: value for key, value in self.batches.items() if key != digest}
        batches[digest] = batch
        return replace(self, batches=dict(list(batches.items())[-FORGOTTEN_MAXIMUM:]))


def digest_of(application: str) -> str:
    """The first 64 bits of the SHA-256 of the name, hexadecimal."""
    return hashlib.sha256(application.encode()).hexdigest()[:16]


def encode_forgotten(forgotten: ForgottenPublishers) -> bytes:
    """The node's bytes."""
    items = [[digest, batch] for digest, batch in forgotten.batches.items()]
    return json.dumps({"publishers": items, "v": VERSION}, sort_keys=True, separators=(",", ":")).encode()


def decode_forgotten(data: bytes, name: str) -> ForgottenPublishers:
    """Read the node of log `name`. Raises FormatError: a later release wrote it. CorruptionError: any other invalid content."""
    what = f"the forgotten publishers of log {name!r}"
    try:
        value = json.loads(data)
        if value["v"] != VERSION:
            raise FormatError(f"{what} have format version {value['v']!r}; this release reads version {VERSION}: upgrade Triplicate")
        return ForgottenPublishers({str(digest): int(batch) for digest, batch in value["publishers"]})
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptionError(f"{what} cannot be read: {error!r}") from error
