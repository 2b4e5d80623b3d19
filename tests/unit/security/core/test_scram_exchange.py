"""The server's part of SCRAM-SHA-256, before an independent client."""

from __future__ import annotations

from base64 import b64decode, b64encode

import pytest
import scramp

from triplicate.errors import ProtocolError
from triplicate.security import SCRAM, SCRAM_PLUS, ScramExchange, ScramVerifier, mock_verifier

VERIFIER = ScramVerifier.of_password("pencil", b"sixteen bytes of")
END_POINT = b"the hash of a certificate"


def exchange_with(password: str, mechanism: str = SCRAM, client_end_point: bytes | None = None) -> tuple[scramp.ScramClient, str | None]:
    """(the client, the server's last message) of an exchange with the client of scramp."""
    binding = None if client_end_point is None else ("tls-server-end-point", client_end_point)
    client = scramp.ScramClient([mechanism], "anna", password, channel_binding=binding)
    server = ScramExchange(VERIFIER, client.get_client_first().encode(), "server", mechanism, END_POINT if client_end_point else None)
    client.set_server_first(server.challenge)
    return client, server.final(client.get_client_final().encode())


def test_the_examples_of_the_standard() -> None:
    """RFC 7677, section 3."""
    verifier = ScramVerifier.of_password("pencil", b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="))
    exchange = ScramExchange(verifier, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", SCRAM, None)
    assert exchange.challenge == "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    final = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert exchange.final(final) == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize(("mechanism", "end_point"), [(SCRAM, None), (SCRAM_PLUS, END_POINT)])
def test_the_right_password_is_proven_on_both_sides(mechanism: str, end_point: bytes | None) -> None:
    client, final = exchange_with("pencil", mechanism, end_point)
    assert final is not None
    client.set_server_final(final)  # Raises unless the server knows the verifier.


@pytest.mark.parametrize("password", ["pencils", "penci", "Pencil", "p"])
def test_another_password_proves_nothing(password: str) -> None:
    assert exchange_with(password)[1] is None


def test_a_proof_of_another_connection_is_refused() -> None:
    with pytest.raises(ProtocolError, match="ends at another server"):
        exchange_with("pencil", SCRAM_PLUS, b"the hash of a false server's certificate")


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        (b"c=biws,r=clientserver,p=eA==", "another length"),
        (b"c=biws,r=clientserver,p=!", "malformed"),
        (b"c=biws,r=clientserver,p=====", "malformed"),
        (b"c=biws,r=clientserver", "malformed"),
        (b"c=biws,r=clientserver,p=", "malformed"),
        (b"c=biws,r=client,p=eA==", "nonce does not match"),
        (b"c=biws,r=clientserver2,p=eA==", "nonce does not match"),
        (b"c=eSws,r=clientserver,p=eA==", "ends at another server"),
        (b"", "malformed"),
        (b"\xff", "not UTF-8"),
        (b"c=biws,r=clientserver,p=eA==\0", "malformed"),
    ],
)
def test_a_final_message_that_does_not_fit_is_refused(sent: bytes, said: str) -> None:
    exchange = ScramExchange(VERIFIER, b"n,,n=,r=client", "server", SCRAM, None)
    with pytest.raises(ProtocolError, match=said):
        exchange.final(sent)


def test_extensions_are_part_of_the_proof() -> None:
    exchange = ScramExchange(VERIFIER, b"n,,n=,r=client,x=more", "server", SCRAM, None)
    assert exchange.challenge.startswith("r=clientserver,s=")
    assert exchange.final(b"c=biws,r=clientserver,y=more,p=" + 43 * b"A" + b"=") is None


def test_a_role_that_does_not_exist_has_one_verifier_of_its_own() -> None:
    mock = mock_verifier(b"secret", "nobody")
    assert mock == mock_verifier(b"secret", "nobody")
    assert len(mock.salt) == len(VERIFIER.salt)
    assert mock.iterations == VERIFIER.iterations
    others = (mock_verifier(b"secret", "somebody"), mock_verifier(b"another secret", "nobody"))
    assert all(other.salt != mock.salt and other.stored_key != mock.stored_key for other in others)
    assert mock.stored_key != mock.server_key != mock.salt


def test_a_byte_of_a_proof_is_not_enough() -> None:
    """Many wrong proofs: the key of one in 256 begins as the right one does."""
    for number in range(4096):
        exchange = ScramExchange(VERIFIER, b"n,,n=,r=client", "server", SCRAM, None)
        proof = b64encode(number.to_bytes(2, "big") + bytes(30)).decode()
        assert exchange.final(f"c=biws,r=clientserver,p={proof}".encode()) is None
