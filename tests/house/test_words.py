"""Prose is plain technical English: words that make a reader stop are counted, and may only become fewer."""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from functools import cache

import pytest

from tests.house.allowed import UNPLAIN_WORDS
from tests.house.source import committed_files, read

UNPLAIN = re.compile(
    r"\b(?:told|tells?|telling|whoever|whatever|so many|anew|comes? to nothing)\b|(?:^|(?<=[.!?] ))(?:Who|What|So many)\b", re.MULTILINE
)
"""Verbs that mean anything, and sentences without a plain subject."""

STEMS = re.compile(r"told|tell|whoever|whatever|so many|So many|anew|comes? to nothing|\bWho\b|\bWhat\b")
"""A match of `UNPLAIN` contains one of these: texts without them need not be taken apart, which takes seconds for all of them."""

OUTSIDE = ("CHANGELOG.md", "docs/decisions/", "docs/measured-runs.md", "tests/house/")
"""Records, and the rule itself."""


def prose_of(path: str, text: str) -> str:
    """Comments and strings of a Python file, without strings of one word, which are values; a document as it is."""
    if not path.endswith(".py"):
        return text
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [(token.type, token.string.strip("\"'# \n")) for token in tokens if token.type in (tokenize.COMMENT, tokenize.STRING)]
    return "\n".join(words for kind, words in found if kind == tokenize.COMMENT or not words.isidentifier())


def folder_of(path: str) -> str:
    """The room, or the folder of a file outside the package."""
    parts = path.split("/")
    depth = 3 if parts[0] == "src" else 2 if parts[0] == "tests" else 1
    return "/".join(parts[:depth]).removesuffix(".py") if len(parts) > depth or parts[0] == "src" else "/".join(parts[:-1]) or "."


def unplain_words(path: str, text: str) -> int:
    return len(UNPLAIN.findall(prose_of(path, text))) if STEMS.search(text) else 0


@cache
def counts() -> Counter[str]:
    found: Counter[str] = Counter()
    for path in committed_files():
        if path.endswith((".py", ".md")) and not path.endswith("_pb2.py") and not path.startswith(OUTSIDE):
            found[folder_of(path)] += unplain_words(path, read(path).text)
    return found


def test_unplain_words_only_become_fewer() -> None:
    more = {folder: count for folder, count in counts().items() if count > UNPLAIN_WORDS.get(folder, 0)}
    assert not more, "write the subject and what it does; `grep -rnE` finds them by the pattern of this file"


def test_the_list_follows_when_they_become_fewer() -> None:
    fewer = {folder: counts()[folder] for folder, allowed in UNPLAIN_WORDS.items() if counts()[folder] < allowed}
    assert not fewer, "tests/house/allowed.py allows more than there are; lower it to these numbers"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# What is told here\n", 2),
        ('"""Who asks first, waits. So many may wait."""', 2),
        ('raise Error("whoever it was tells nothing")', 2),
        ("what_is_told = so_many\n", 0),
        ('NAMES = {OutcomeReported: "told"}\n', 0),
        ("# It says what it holds.\n", 0),
    ],
)
def test_the_rule_sees_prose_and_not_names(text: str, found: int) -> None:
    assert unplain_words("a.py", text) == found
