"""Regular expressions: the matches and errors of PostgreSQL 15 with the locale C, and bounds on time, memory and the interpreter's lock."""

from __future__ import annotations

import random
import threading
import time

import pytest

from triplicate.errors import SqlError
from triplicate.sql.pg.values.regular_expressions import PATTERN_MAX, regular_expression


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("^a.c$", "abc", True), ("^b", "ab", False), ("c$", "c\n", False), ("[[:digit:]]+", "a12", True), ("[^a-z]", "abc", False),
        ("(?:ab)+c", "ababc", True), ("a{2,3}", "caab", True), (r"\d\.\w", "1.x", True), ("a|b", "xb", True), ("[]a]", "]", True),
        ("a.c", "a\nc", True), ("", "", True), ("a|", "x", True), ("()", "x", True), ("(a*)*$", "b", True), ("[a-]", "-", True),
        ("[^]a]", "]", False), ("a{", "a{", True), ("a{x", "a{x", True), ("a{,2}", "a", False), ("a{,2}", "a{,2}", True), ("]", "]", True),
        ("a{3}", "aa", False), ("(a{3}){3}", "a" * 9, True), ("(a{3}){3}", "a" * 8, False), ("a{0}b", "b", True), ("a*?b", "aab", True),
        ("[[.-.]]", "-", True), ("[[=a=]]", "a", True), ("é", "É", False), ("[é-ü]", "ê", True), ("^.$", "é", True), ("a+?$", "aa", True),
        # Words.
        (r"\mfoo\M", "a foo b", True), (r"\mfoo\M", "foobar", False), (r"\moo", "foo", False), (r"fo\M", "foo", False),
        ("[[:<:]]foo[[:>:]]", "a foo b", True), (r"\m(?:foo|bar)", "xbar", False), (r"(?:foo|bar)\M", "xbar", True),
        (r"\yfoo\y", "afoo", False), (r"\m[a-f]+\M", "-abc-", True),
        # Escapes.
        (r"\Aa", "ba", False), (r"a\Z", "a\n", False), (r"\x41", "A", True), (r"\u0041", "A", True), (r"\U00000041", "A", True),
        (r"\cA", "\1", True), (r"\e", "\33", True), (r"\B", "\\", True), (r"\b", "\b", True), (r"\a", "\a", True), (r"\011", "\t", True),
        (r"[\d-]", "-", True), (r"[\D]", "1", False), (r"[a\D]", "b", True), (r"[\x41-\x43]", "B", True), (r"[\]]", "]", True),
        (r"\é", "é", True), (r"[\w-]+$", "a_1-", True), (r"\S\s\S", "a b", True), ("[[:word:]]", "_", True),
        # Embedded options and directors.
        ("(?i)a", "A", True), ("(?c)a", "A", False), ("(?n)a.c", "a\nc", False), ("(?n)^b", "a\nb", True), ("(?n)[^a]", "\n", False),
        (r"(?n)\W", "\n", True), (r"(?n)\D", "\n", True), ("(?p)a.c", "a\nc", False), ("(?p)^b", "a\nb", False), ("(?w)^b", "a\nb", True),
        ("(?w)a.b", "a\nb", True), ("(?s)a.c", "a\nc", True), ("(?x) a b # c", "ab", True), ("(?x)[ ]", " ", True),
        (r"(?x)a\ b", "a b", True),
        ("(?t)a b", "a b", True), ("(?q)a.b", "axb", False), ("(?q)a.b", "a.b", True), ("***=a.b", "axb", False), ("***:a.b", "axb", True),
        ("(?#x)a", "a", True), ("a(?#x)*$", "aa", True), ("(?xn) ^b", "a\nb", True),
    ],
)  # fmt: skip
def test_an_expression_matches_as_in_postgresql(pattern: str, text: str, matches: bool) -> None:
    assert regular_expression(pattern, False).matches(text) is matches


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("abc", "aBC", True), ("[b-d]", "C", True), ("[^a]", "A", False), ("É", "é", False), ("[[:upper:]]", "a", True),
        ("[^[:lower:]]", "A", False), ("k", "\u212a", False), ("s", "\u017f", False), ("(?c)a", "A", False), (r"\x41", "a", True),
    ],
)  # fmt: skip
def test_a_match_without_case_takes_the_letters_of_ascii(pattern: str, text: str, matches: bool) -> None:
    assert regular_expression(pattern, True).matches(text) is matches


@pytest.mark.parametrize(
    ("pattern", "state"),
    [
        ("a(", "2201B"), ("a)", "2201B"), ("*a", "2201B"), ("(*a)", "2201B"), ("a|*b", "2201B"), ("[a", "2201B"), ("[]", "2201B"),
        ("a**", "2201B"), ("a*??", "2201B"), ("a{1}{2}", "2201B"), ("^*", "2201B"), ("a\\", "2201B"), ("a{999}", "2201B"),
        ("a{256}", "2201B"),
        ("a{2,1}", "2201B"), ("a{1", "2201B"), ("{1", "2201B"), ("[b-a]", "2201B"), ("[a-c-e]", "2201B"), (r"[a-\d]", "2201B"),
        ("[[:foo:]]", "2201B"), (r"[\y]", "2201B"), (r"\q", "2201B"), (r"\u004", "2201B"), ("(?z)a", "2201B"), ("***a", "2201B"),
        # Constructs that RE2 does not have, by name.
        (r"(a)\1", "0A000"), ("a(?=b)", "0A000"), ("a(?!b)", "0A000"), ("(?<=a)b", "0A000"), ("(?<!a)b", "0A000"), (r"\Y", "0A000"),
        (r"\m", "0A000"), (r"\m.", "0A000"), (r"\mf?oo", "0A000"), (r".\M", "0A000"), ("(?b)a", "0A000"), ("(?e)a", "0A000"),
        ("[[.space.]]", "0A000"),
        # Limits.
        ("a" * (PATTERN_MAX + 1), "54000"), ("(" * 300 + ")" * 300, "54001"), ("(a{1,255}){1,255}", "54000"),
        ("|".join(f"a.{{{count}}}é" for count in range(200, 255)) * 3, "54000"),
    ],
)  # fmt: skip
def test_a_wrong_or_unavailable_expression_is_refused(pattern: str, state: str) -> None:
    with pytest.raises(SqlError) as refused:
        regular_expression(pattern, False)
    assert refused.value.sqlstate == state


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(ab|a|b|ba){1,30}c", "ab" * 30), ("a*a*a*b", "a" * 30_000), ("a*a*b", "a" * 30_000), ("(a?){24}a{24}b", "a" * 24),
        ("(a+)+b", "a" * 30_000), ("(a|a)*b", "a" * 30_000), ("(a|a)*[bc]", "a" * 25), ("(.*)*b", "a" * 30_000),
    ],
)  # fmt: skip
def test_no_expression_takes_more_than_linear_time(pattern: str, text: str) -> None:
    matcher = regular_expression(pattern, False)
    began_s = time.thread_time()
    assert not matcher.matches(text)
    assert time.thread_time() - began_s < 2.0, "a backtracking matcher takes years"


def test_the_size_of_an_expression_limits_the_text() -> None:
    matcher = regular_expression("[^x]{250}[^y]{250}!", False)
    assert not matcher.matches("a" * 100_000)
    with pytest.raises(SqlError, match="is matched against") as refused:
        matcher.matches("a" * 8_000_000)
    assert refused.value.sqlstate == "54000"


def test_a_match_leaves_the_interpreter_to_other_threads() -> None:
    matcher = regular_expression("[ab]*a[ab]{250}[ab]{250}[ab]{250}c", False)
    chance, has_begun, seen = random.Random(1), threading.Event(), list[float]()
    text = "".join(chance.choices("ab", k=400_000))

    def match() -> None:
        has_begun.set()
        for _ in range(2):
            matcher.matches(text)

    matching = threading.Thread(target=match)
    matching.start()
    has_begun.wait()
    while matching.is_alive():
        time.sleep(0.001)
        seen.append(time.thread_time())
    assert len(seen) > 20, "this thread stood still while the other one matched"


def test_text_that_is_not_unicode_is_an_error_of_the_statement() -> None:
    with pytest.raises(UnicodeEncodeError):
        regular_expression("a", False).matches("\ud800")
