"""The cipher of a ledger, its nonces, and the encryption block."""

from __future__ import annotations

import struct

import pytest

from tests.unit.log.encryption_rig import KEY, encryptor
from triplicate.errors import ArgumentError, ConfigError, EntryNotAuthentic, FormatError, LogKeyMissing
from triplicate.log import KnownKeys
from triplicate.log.core import encryption
from triplicate.log.core.encryption import (
    BLOCK_SIZE,
    ENTRIES,
    SNAPSHOT,
    STAGED,
    EncryptionBlock,
    LedgerDecryptor,
    decode_block,
    encode_block,
)

BODY = b"body " * 10
LOG_ID = "ab" * 16


def opened(
    payload: bytes, *, keys: dict[str, bytes] | None = None, log_id: str = LOG_ID, domain: bytes = ENTRIES, header: bytes = b"head"
) -> bytes:
    block = decode_block(payload, 4)
    decryptor = LedgerDecryptor("l", log_id, KnownKeys({"new": KEY} if keys is None else keys), domain)
    return decryptor.decrypt(block, header, payload[4 + BLOCK_SIZE :], 5, 3)


def without_tag(payload: bytes) -> bytes:
    """The cipher text alone; the tag differs wherever the block does."""
    return payload[4 + BLOCK_SIZE : -encryption.TAG_SIZE]


def test_what_is_encrypted_decrypts_and_does_not_show() -> None:
    payload = encryptor().encrypt(b"head", b"head", BODY, 7)
    assert payload.startswith(b"head")
    assert len(payload) == 4 + BLOCK_SIZE + len(BODY) + encryption.TAG_SIZE
    assert BODY not in payload
    assert opened(payload) == BODY


def test_no_nonce_is_used_twice_under_one_derived_key() -> None:
    one = encryptor()
    payloads = [one.encrypt(b"head", b"head", BODY, 7) for _ in range(100)]
    assert len({decode_block(payload, 4).number for payload in payloads}) == 100
    assert len({without_tag(payload) for payload in payloads}) == 100, "the same body at the same place never looks the same"
    assert [opened(payload) for payload in payloads] == [BODY] * 100


def test_ledgers_and_salts_have_derived_keys_of_their_own() -> None:
    bodies = [
        without_tag(made.encrypt(b"head", b"head", BODY, 7))
        for made in (encryptor(), encryptor(6), encryptor(salt=b"t" * 16), encryptor(log_id="cd" * 16), encryptor(key=bytes(32)))
    ]
    assert len(set(bodies)) == len(bodies)


@pytest.mark.parametrize("place", [0, 4, 4 + BLOCK_SIZE, -1])
def test_any_changed_bit_is_noticed(place: int) -> None:
    payload = bytearray(encryptor().encrypt(b"head", b"head", BODY, 7))
    payload[place] ^= 1
    with pytest.raises((EntryNotAuthentic, LogKeyMissing)):
        opened(bytes(payload), header=bytes(payload[:4]))


def test_every_field_of_the_block_is_authenticated() -> None:
    payload = encryptor().encrypt(b"head", b"head", BODY, 7)
    block = decode_block(payload, 4)
    for change in ({"salt": b"t" * 16}, {"ledger_id": 6}, {"number": 1}, {"place": 8}, {"control": 1}, {"origin": STAGED}):
        changed = encode_block(block._replace(**change))
        with pytest.raises(EntryNotAuthentic, match="log 'l': entry 3 of ledger 5 does not decrypt under key 'new'"):
            opened(payload[:4] + changed + payload[4 + BLOCK_SIZE :])


def test_another_key_log_or_use_does_not_decrypt() -> None:
    payload = encryptor().encrypt(b"head", b"head", BODY, 7)
    for arguments in ({"keys": {"new": bytes(32)}}, {"log_id": "cd" * 16}, {"domain": SNAPSHOT}):
        with pytest.raises(EntryNotAuthentic):
            opened(payload, **arguments)
    with pytest.raises(LogKeyMissing, match="log 'l' is encrypted with key 'new', which is not in the keys of this process"):
        opened(payload, keys={"other": KEY})


def test_the_block_has_the_documented_layout() -> None:
    block = EncryptionBlock("2026-11-26", bytes(range(16)), 5, 6, 7, 2, STAGED)
    data = encode_block(block)
    assert struct.unpack("<16s16sQQQBB6s", data) == (b"2026-11-26".ljust(16, b"\0"), bytes(range(16)), 5, 6, 7, 2, 1, bytes(6))
    assert decode_block(data) == block
    for place, value in ((63, 1), (57, 2), (0, 0)):
        changed = bytearray(data)
        changed[place] = value
        with pytest.raises(FormatError, match="upgrade Triplicate"):
            decode_block(changed)


@pytest.mark.parametrize("key_id", ["", "a" * 17, ".a", "a b", "ü", "a/b", "a\n"])
def test_an_id_that_no_block_can_hold_is_refused(key_id: str) -> None:
    with pytest.raises(ArgumentError, match="no id of a key"):
        encryption.check_key_id(key_id)
    assert encryption.check_key_id("2026-11-26_a.b") == "2026-11-26_a.b"


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.kdf.hkdf", None)
    with pytest.raises(ConfigError, match=r"pip install 'triplicate\[security\]'"):
        encryptor()


def test_a_decryptor_keeps_a_limited_number_of_derived_keys() -> None:
    decryptor = LedgerDecryptor("l", LOG_ID, KnownKeys({"new": KEY}), ENTRIES)
    for ledger_id in range(encryption.CIPHERS_KEPT + 10):
        payload = encryptor(ledger_id).encrypt(b"head", b"head", BODY, 7)
        assert decryptor.decrypt(decode_block(payload, 4), b"head", payload[4 + BLOCK_SIZE :], ledger_id, 0) == BODY
    assert len(decryptor._ciphers) == encryption.CIPHERS_KEPT
