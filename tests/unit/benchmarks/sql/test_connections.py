"""The messages of a connection that works: their lengths, and a statement that is prepared before it is executed."""

from __future__ import annotations

from benchmarks.sql.connections import execute, prepare, query, work


def kinds(message: bytes) -> str:
    """The kinds of the messages one after another; their lengths must fill the bytes."""
    found = ""
    while message:
        found += chr(message[0])
        size = int.from_bytes(message[1:5], "big")
        assert len(message) > size, "a message is cut off"
        message = message[1 + size :]
    return found


def test_each_message_has_its_length() -> None:
    assert kinds(query("SELECT 1")) == "Q"
    assert kinds(prepare("kept", "SELECT $1")) == "PS"
    assert kinds(execute("kept", "17")) == "BES"


def test_a_parameter_is_sent_as_text() -> None:
    assert b"\0kept\0\0\0\0\1\0\0\0\x0217\0\0" in execute("kept", "17")


def test_a_connection_works_in_a_transaction_and_executes_what_it_has_prepared() -> None:
    asked = work(3)
    assert [kinds(message) for message in asked] == ["Q"] * 6 + ["PS", "BES", "BES"]
    assert asked.index(query("BEGIN")) < asked.index(query("COMMIT"))
    assert work(4)[0] != asked[0]
