"""PostgreSQL's lexical rules, with SQLite's own names and parameters beside them."""

from __future__ import annotations

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import ComposedText, adjacent, nested_comments, quote_string, split_statements, tokenize


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("$1::int", ["$1", "::", "int"]),
        ("a$1 $tag$x$y$tag$ $$it's$$", ["a$1", "$tag$x$y$tag$", "$$it's$$"]),
        ("E'it\\'s' e'\\\\' 'it''s'", ["E'it\\'s'", "e'\\\\'", "'it''s'"]),
        ("a /* b /* c */ d */ e -- f\n g", ["a", "e", "g"]),
        (
            "a<-1 b||-1 c->>'d' e!~*f g<>h i#>>j",
            ["a", "<", "-", "1", "b", "||", "-", "1", "c", "->>", "'d'", *["e", "!~*", "f", "g", "<>", "h", "i", "#>>", "j"]],
        ),
        ("[a b] `c` \"d\" x'00'", ["[a b]", "`c`", '"d"', "x'00'"]),
        (
            "ARRAY[a, ARRAY[1]] x[1] [b]",
            ["ARRAY", "[", "a", ",", "ARRAY", "[", "1", "]", "]", "x", "[", "1", "]", "[b]"],
        ),
        ("1..2 1.5e3 .5 0xff", ["1", "..", "2", "1.5e3", ".5", "0xff"]),
        ("?1 ? :a @b $c", ["?1", "?", ":a", "@b", "$c"]),
        ("'a'\n 'b' 'c' 'd'", ["'a'\n 'b'", "'c'", "'d'"]),
    ],
)
def test_tokens_are_separated(sql: str, expected: list[str]) -> None:
    assert [token.text for token in tokenize(sql)] == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'it''s'", "it's"),
        ("E'a\\n\\t\\'\\\\\\x41\\101\\u00e4\\U0001F600\\q'", "a\n\t'\\AA\u00e4\U0001f600q"),
        ("$$a'b$$", "a'b"),
        ("$t$a$$b$t$", "a$$b"),
        ("'a'\n'b'", "ab"),
        ("'a'''\n  'b'", "a'b"),
        ("N'x'", "x"),
        ("'a\nb'", "a\nb"),
    ],
)
def test_a_string_constant_has_the_value_that_postgresql_gives_it(text: str, value: str) -> None:
    (token,) = tokenize(text)
    assert token.string() == value


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("'a", "42601"),
        ("$$a", "42601"),
        ("E'\\", "42601"),
        ("B'01'", "0A000"),
        ("U&'\\0041'", "0A000"),
        ("E'\\xff'", "22021"),
        ("E'\\ud800'", "22021"),
    ],
)
def test_a_string_constant_that_is_none_is_refused(text: str, state: str) -> None:
    with pytest.raises(SqlError) as refused:
        tokenize(text)[0].string()
    assert refused.value.sqlstate == state


def test_a_name_without_characters_is_refused_with_its_place() -> None:
    with pytest.raises(SqlError, match="zero-length") as refused:
        tokenize('select 1 as "a""b", 2 as ""')
    assert (refused.value.sqlstate, refused.value.position) == ("42601", 26)
    assert [token.text for token in tokenize('select $$""$$, \'""\'')] == ["select", '$$""$$', ",", "'\"\"'"]


def test_a_string_for_sqlite_has_its_quotes_doubled_and_no_nul() -> None:
    assert quote_string("it's") == "'it''s'"
    with pytest.raises(SqlError, match="number 0"):
        quote_string("a\0b")


def nested(sql: str) -> list[tuple[int, int]]:
    return nested_comments(sql, tokenize(sql))


def test_comments_that_hold_comments_are_found() -> None:
    assert nested("select /* a /* b */ c */ 1 /* d */") == [(6, 25)]
    assert nested("select /* a */ 1 /* b */") == []


def test_strings_side_by_side_are_noticed() -> None:
    assert adjacent(tokenize("select 'a' 'b'"))
    assert not adjacent(tokenize("select 'a', 'b', 'c'\n'd'"))


def test_statements_are_cut_outside_of_strings_only() -> None:
    statements = split_statements("select $$;$$; select E'\\';' /* ; /* ; */ ; */; ;")
    assert [statement.sql for statement in statements] == ["select $$;$$", "select E'\\';'"]
    assert [[token.start for token in statement.tokens] for statement in statements] == [[0, 7], [0, 7]]


def test_pieces_know_the_positions_of_their_characters() -> None:
    pieces = ComposedText("select $1::int from t")
    pieces.copy(0, 7)
    pieces.add("CAST(", 7)
    pieces.copy(7, 9)
    pieces.add(" AS int)", 7)
    pieces.copy(14, 21)
    assert pieces.text() == "select CAST($1 AS int) from t"
    assert [pieces.origin(place) for place in (0, 6, 7, 12, 15, 28)] == [0, 6, 7, 7, 7, 20]
