"""The formats of a node's name and directory."""

from __future__ import annotations

import pytest

from triplicate.errors import FormatError
from triplicate.replica.node_registration import NodeRegistration, decode_identity, decode_registration, encode_registration


def test_a_registration_is_read_as_it_was_written_in_its_first_format() -> None:
    value = NodeRegistration("n", "h:1", "ab" * 16, "cd" * 8)
    data = b'{"address":"h:1","directory":"abababababababababababababababab","life":"cdcdcdcdcdcdcdcd","node":"n","v":1}'
    assert encode_registration(value) == data
    assert decode_registration(data) == value
    with_tls = NodeRegistration("n", "h:1", "ab" * 16, "cd" * 8, has_tls=True)
    assert encode_registration(with_tls) == data.replace(b'"v":1', b'"tls":true,"v":1')
    assert decode_registration(encode_registration(with_tls)) == with_tls
    for wrong in (b"", b"{}", b'{"v":2}', b'{"v":1,"node":"n"}'):
        with pytest.raises(FormatError):
            decode_registration(wrong)


def test_the_identity_of_a_directory_is_read_as_it_was_written_in_its_first_format() -> None:
    assert decode_identity(b'{"directory": "abab", "v": 1}\n', "NODE") == "abab"
    with pytest.raises(FormatError, match="NODE: of format 2, this release knows 1: start the release that wrote it"):
        decode_identity(b'{"directory": "abab", "v": 2}', "NODE")
    with pytest.raises(FormatError, match="NODE: not the identity of a node's directory"):
        decode_identity(b"", "NODE")
