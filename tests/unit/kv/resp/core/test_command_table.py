"""Each name is a command, or refused by name with its reason."""

from __future__ import annotations

import pytest

from triplicate.kv.core.operations import Get
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.command_table import TABLE, chosen, command_info, find
from triplicate.kv.resp.core.connection_commands import Scan
from triplicate.kv.resp.core.key_commands import KeyCommand
from triplicate.kv.resp.core.unsupported import UNSUPPORTED


def refusal(*words: bytes) -> str:
    with pytest.raises(CommandError) as caught:
        find(list(words)).read(list(words))
    return str(caught.value)


def test_a_command_that_redis_has_and_this_server_has_not_is_refused_by_name() -> None:
    assert refusal(b"hset", b"a", b"b", b"c") == "ERR unsupported command 'HSET': this store has strings only (docs/resp.md)"
    assert refusal(b"Eval").startswith("ERR unsupported command 'EVAL': this store runs no scripts")
    assert not UNSUPPORTED.keys() & {name.decode() for name in TABLE}


def test_an_unknown_name_is_repeated_with_the_beginning_of_its_arguments() -> None:
    assert refusal(b"nope", b"x", b"y" * 200).startswith("ERR unknown command 'nope', with args beginning with: 'x' 'yyy")
    assert len(refusal(b"\xff" * 1000, b"a" * 1000)) < 1000


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_wrong_number_of_words_is_refused(name: bytes) -> None:
    spec = TABLE[name]
    if abs(spec.arity) > 1:
        assert refusal(*[name] * (abs(spec.arity) - 1)) == f"ERR wrong number of arguments for '{spec.name}' command"
    if spec.arity > 0:
        assert refusal(*[name] * (spec.arity + 1)) == f"ERR wrong number of arguments for '{spec.name}' command"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("set a b NX XX", "syntax error"),
        ("set a b EX", "syntax error"),
        ("set a b EX 1 PX 1", "syntax error"),
        ("set a b EX 1 KEEPTTL", "syntax error"),
        ("set a b EX 0", "invalid expire time in 'set' command"),
        ("set a b EX x", "not an integer"),
        ("set a b PX 99999999999999999", "invalid expire time in 'set' command"),
        ("setex a -1 b", "invalid expire time in 'setex' command"),
        ("getex a NX", "syntax error"),
        ("mset a b c", "wrong number of arguments for 'mset' command"),
        ("expire a 1 NX GT", "not compatible"),
        ("expire a 1 GT LT", "not compatible"),
        ("expire a 1 ZZ", "Unsupported option ZZ"),
        ("expire a 9223372036854775807", "invalid expire time in 'expire' command"),
        ("decrby a -9223372036854775808", "decrement would overflow"),
        ("setrange a -1 b", "offset is out of range"),
        ("scan x", "invalid cursor"),
        ("scan 18446744073709551616", "invalid cursor"),
        ("scan 0 COUNT 0", "syntax error"),
        ("scan 0 MATCH", "syntax error"),
        ("hello 4", "NOPROTO"),
        ("hello x", "Protocol version is not an integer"),
        ("hello 3 AUTH a", "syntax error"),
        ("hello 3 NOPE", "HELLO option"),
        ("client setname a\x01", "Client names cannot contain"),
        ("client kill", "unsupported subcommand 'kill'"),
        ("client setinfo nope x", "Unrecognized option"),
        ("triplicate.level nope", "there is no level 'nope'; the levels are linearizable"),
        ("triplicate.level bounded", "syntax error"),
        ("triplicate.level bounded nan", "number of seconds"),
        ("triplicate.level any WAIT 5", "syntax error"),
        ("triplicate.position -1", "not negative"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(line: str, message: str) -> None:
    assert message in refusal(*line.encode().split(b" "))


def test_a_password_is_in_no_repr() -> None:
    words = [b"hello", b"3", b"AUTH", b"anna", b"a secret"]
    assert "a secret" not in repr(find(words).read(words))


def test_a_cursor_of_more_than_64_bits_or_of_many_digits_is_refused() -> None:
    words = [b"SCAN", b"%d" % (2**64 - 1)]
    command = find(words).read(words)
    assert isinstance(command, Scan)
    assert command.cursor == 2**64 - 1
    for word in (b"%d" % 2**64, b"0" * 5000, b"9" * 5000, b"-1", b"", "١".encode()):
        assert refusal(b"SCAN", word) == "ERR invalid cursor"


def test_the_table_describes_each_command() -> None:
    assert command_info(TABLE[b"mset"]) is not None
    assert [name for name, spec in chosen((b"GET", b"nope")) if spec is None] == [b"nope"]
    assert all(spec.summary for spec in TABLE.values())


@pytest.mark.parametrize("name", sorted(TABLE))
def test_a_command_is_marked_as_a_read_exactly_if_it_only_gets(name: bytes) -> None:
    spec = TABLE[name]
    for count in range(abs(spec.arity), 5):
        try:
            command = spec.read([name, *[b"1"] * (count - 1)])
        except (CommandError, IndexError):
            continue
        if isinstance(command, KeyCommand):
            assert command.is_read == (not command.conditions and all(isinstance(each, Get) for each in command.operations))
            assert command.is_read or "readonly" not in spec.flags
