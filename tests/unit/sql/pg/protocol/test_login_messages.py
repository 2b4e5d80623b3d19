"""The messages of a login."""

from __future__ import annotations

import pytest

from triplicate.errors import ProtocolError
from triplicate.sql.pg.protocol.login_messages import (
    authentication_sasl,
    authentication_sasl_continue,
    authentication_sasl_final,
    sasl_initial_response,
)


def test_messages_have_postgresqls_bytes() -> None:
    assert authentication_sasl(["SCRAM-SHA-256"]) == b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"
    assert authentication_sasl_continue("r=1") == b"R\0\0\0\x0b\0\0\0\x0br=1"
    assert authentication_sasl_final("v=1") == b"R\0\0\0\x0b\0\0\0\x0cv=1"
    assert sasl_initial_response(b"SCRAM-SHA-256\0\0\0\0\x03n,,") == ("SCRAM-SHA-256", b"n,,")


@pytest.mark.parametrize(
    "body", [b"", b"SCRAM", b"SCRAM\0", b"SCRAM\0\0\0\0", b"SCRAM\0\0\0\0\2x", b"SCRAM\0\0\0\0\0x", b"S\0\xff\xff\xff\xff"]
)
def test_a_response_that_does_not_have_its_size_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed SASLInitialResponse"):
        sasl_initial_response(body)
