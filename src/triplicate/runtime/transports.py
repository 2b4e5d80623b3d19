"""Additions to asyncio's transports."""

from __future__ import annotations

import asyncio


def close_transport(transport: asyncio.Transport) -> None:
    """Send what is buffered and close, also while reading is paused. Idempotent.

    Where the peer ended a TLS connection during a pause, asyncio (3.11) handles the end when reading resumes, and until then `close` does
    nothing at all, without a limit. The protocol may receive the bytes that waited, and must ignore them.
    """
    if not (transport.is_closing() or transport.is_reading()):
        transport.resume_reading()
    transport.close()
