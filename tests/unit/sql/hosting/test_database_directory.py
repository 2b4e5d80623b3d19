"""The entry of a database in the list of databases."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from triplicate.errors import FormatError
from triplicate.security import ScramVerifier
from triplicate.sql.hosting.database_directory import Administrator, DatabaseInfo, decode_info, encode_info

VERIFIER = ScramVerifier.of_password("secret", b"sixteen bytes of").text
PLAIN = DatabaseInfo("shop", bytes(range(16)), "database.shop.00010203", 1_700_000_000_000, 750)
SECURED = replace(PLAIN, administrator=Administrator("anna", VERIFIER))
GOLDEN = (
    b'{"administrator":{"name":"anna","verifier":"SCRAM-SHA-256$4096:c2l4dGVlbiBieXRlcyBvZg==$VsCHQlzw4Y9SgAP6oLiZ8v'
    b'uqbsb3F4NIIMpbkLKHSdk=:YkvE9Qimx42r7Zod8PXmIwuT1SAaxLShrBgtlmrFBNc="},"created":1700000000000,"id":"0001020304'
    b'05060708090a0b0c0d0e0f","lease":750,"log":"database.shop.00010203","name":"shop","v":3}'
)


def test_an_entry_with_an_administrator_has_a_format_that_earlier_releases_refuse() -> None:
    assert encode_info(SECURED) == GOLDEN
    assert decode_info(GOLDEN) == SECURED


def test_an_entry_without_one_keeps_the_format_of_earlier_releases() -> None:
    data = encode_info(PLAIN)
    assert json.loads(data)["v"] == 2
    assert "administrator" not in json.loads(data)
    assert decode_info(data) == PLAIN


@pytest.mark.parametrize("administrator", [None, "anna", {}, {"name": "anna"}, []])
def test_a_damaged_administrator_makes_the_entry_unreadable(administrator: object) -> None:
    fields = {**json.loads(GOLDEN), "administrator": administrator}
    with pytest.raises(FormatError, match="cannot be read"):
        decode_info(json.dumps(fields).encode())


def test_a_later_format_is_refused() -> None:
    with pytest.raises(FormatError, match="versions up to 4"):
        decode_info(GOLDEN.replace(b'"v":3', b'"v":5'))


def test_the_verifier_is_not_shown() -> None:
    assert "SCRAM" not in repr(SECURED)
    assert "SCRAM" not in repr(Administrator("anna", VERIFIER).login)
