"""Verifies the digests of arriving entries. Digest type and password come from the ledger's metadata, which is read once, in the
background, after the first add.
"""

from __future__ import annotations

import asyncio
from collections import deque

from triplicate.bookie.core.ledger_table import LedgerHandle, LedgerTable, Verification
from triplicate.errors import FormatError, MetadataError, NoSuchLedger, TriplicateError
from triplicate.ledger import DigestType, DigestVerifier, LedgerMetadata
from triplicate.metadata import ClusterMetadata
from triplicate.runtime import Host, sleep

RETRY_S = 1.0
WAITING_MAX = 10_000
"""Maximum number of ledgers whose metadata is still to be read. Beyond it, the ledger's next add requests it again."""


class DigestChecks:
    """Fills `LedgerHandle.verifier`.

    Args:
        mode: ``refuse``, ``count`` or ``off``.
    """

    def __init__(self, host: Host, metadata: ClusterMetadata, ledgers: LedgerTable, mode: str) -> None:
        self.enabled = mode != "off"
        self.refuses = mode == "refuse"
        self._host = host
        self.metadata = metadata
        self._ledgers = ledgers
        self._waiting: deque[int] = deque()
        self._wanted = asyncio.Event()

    def request(self, handle: LedgerHandle) -> None:
        """Request the ledger's verifier; returns at once."""
        if self.enabled and handle.verification is Verification.UNKNOWN and len(self._waiting) < WAITING_MAX:
            handle.verification = Verification.ASKED
            self._waiting.append(handle.ledger_id)
            self._wanted.set()

    async def run(self) -> None:
        """Read the metadata of the requested ledgers, one after another."""
        while True:
            if not self._waiting:
                self._wanted.clear()
                await self._wanted.wait()
                continue
            ledger_id = self._waiting.popleft()
            try:
                verification, verifier = verifier_of((await self.metadata.ledgers.get(ledger_id)).value)
            except (NoSuchLedger, FormatError) as error:
                self._resolve(ledger_id, Verification.IMPOSSIBLE, None)
                self._host.trace("bookie.digest_unknown", ledger_id=ledger_id, error=str(error))
            except (MetadataError, TriplicateError, OSError) as error:
                # The metadata is unreachable: entries stay unverified until a later add requests it again.
                self._host.trace("bookie.digest_unknown", ledger_id=ledger_id, error=str(error))
                await sleep(self._host.clock, RETRY_S)
                self._resolve(ledger_id, Verification.UNKNOWN, None)
            except Exception as error:  # noqa: BLE001  unforeseen metadata concern one ledger, and would end every bookie
                self._resolve(ledger_id, Verification.IMPOSSIBLE, None)
                self._host.trace("bookie.digest_unknown", ledger_id=ledger_id, error=repr(error))
            else:
                self._resolve(ledger_id, verification, verifier)

    def _resolve(self, ledger_id: int, verification: Verification, verifier: DigestVerifier | None) -> None:
        handle = self._ledgers.get(ledger_id)
        if handle is not None:
            handle.verification = verification
            handle.verifier = verifier


def verifier_of(metadata: LedgerMetadata) -> tuple[Verification, DigestVerifier | None]:
    """Whether the digests of a ledger's entries can be verified, and the verifier if they can."""
    if metadata.digest_type is DigestType.DUMMY or not metadata.credentials_stored:
        # Metadata of the oldest format has neither digest type nor password, only defaults.
        return Verification.IMPOSSIBLE, None
    return Verification.KNOWN, DigestVerifier(metadata.digest_type, metadata.password)
