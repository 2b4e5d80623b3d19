"""Translates patterns of LIKE to patterns of SQLite's GLOB, and regular expressions to ones that match in bounded time. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from triplicate.errors import SqlError

_SPECIAL = "*?["
_PATTERN_MAX = 1000
_UNBOUNDED_MAX = 3
_CLASSES = {
    "alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r" \t\n\r\f\v", "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "cntrl": r"\x00-\x1f\x7f", "print": " -~", "graph": "!-~",
}  # fmt: skip
_ESCAPES = {"d": "[0-9]", "D": "[^0-9]", "s": r"[ \t\n\r\f\v]", "S": r"[^ \t\n\r\f\v]", "w": "[A-Za-z0-9_]", "W": "[^A-Za-z0-9_]",
            "n": r"\n", "t": r"\t", "r": r"\r", "f": r"\f", "v": r"\v"}  # fmt: skip


@lru_cache(maxsize=1000)
def glob_of_like(pattern: str, escape: str = "\\") -> str:
    """The GLOB pattern that matches the same texts as a case-sensitive LIKE.

    Raises:
        SqlError: 22025 if the pattern ends with its escape character.
    """
    pieces: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            after = next(characters, None)
            if after is None:
                raise SqlError("22025", "LIKE pattern must not end with escape character")
            pieces.append(f"[{after}]" if after in _SPECIAL else after)
        elif character == "%":
            pieces.append("*")
        elif character == "_":
            pieces.append("?")
        else:
            pieces.append(f"[{character}]" if character in _SPECIAL else character)
    return "".join(pieces)


@lru_cache(maxsize=500)
def regular_expression(pattern: str, ignores_case: bool) -> re.Pattern[str]:
    """Compile a regular expression of PostgreSQL, if it matches in bounded time.

    Raises:
        SqlError: 2201B for a malformed pattern, 54000 for one that is too long, 0A000 for one that could take too long or has a feature
            that is not available.
    """
    if len(pattern) > _PATTERN_MAX:
        raise SqlError("54000", f"a regular expression may have {_PATTERN_MAX} characters, this one has {len(pattern)}")
    translated = _Regex(pattern).translate()
    try:
        return re.compile(translated, re.DOTALL | re.ASCII | (re.IGNORECASE if ignores_case else 0))
    except (re.error, OverflowError) as error:
        raise SqlError("2201B", f"invalid regular expression: {error}") from None


class _Regex:
    """Translates the syntax that both dialects have. Any other feature is refused by name."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._unbounded = 0

    def translate(self) -> str:
        text = self._alternatives(0)
        if self._at < len(self._pattern):
            raise SqlError("2201B", "invalid regular expression: parentheses () not balanced")
        return text

    def _refuse(self, feature: str) -> SqlError:
        return SqlError("0A000", f"{feature} in a regular expression is not available", hint="Use LIKE, or match in the client.")

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _alternatives(self, depth: int) -> str:
        if depth > 20:
            raise self._refuse("nesting deeper than 20")
        found: list[str] = []
        while self._peek() and self._peek() != ")":
            if self._peek() == "|":
                found.append("|")
                self._at += 1
                continue
            before = self._unbounded
            atom, is_group = self._atom(depth)
            found.append(atom + self._quantifier(atom, is_group and self._unbounded > before))
        return "".join(found)

    def _atom(self, depth: int) -> tuple[str, bool]:
        character = self._peek()
        self._at += 1
        if character == "(":
            if self._peek() == "?" and not self._pattern.startswith("?:", self._at):
                raise self._refuse(f"(?{self._pattern[self._at + 1 : self._at + 2]}")
            self._at += 2 if self._peek() == "?" else 0
            inner = self._alternatives(depth + 1)
            if self._peek() != ")":
                raise SqlError("2201B", "invalid regular expression: parentheses () not balanced")
            self._at += 1
            return f"(?:{inner})", True
        if character == "[":
            return self._bracket(), False
        if character == "\\":
            return self._escape(), False
        if character in "*+?":
            raise SqlError("2201B", "invalid regular expression: quantifier operand invalid")
        if character == "$":
            return r"\Z", False
        if character == "^":
            return r"\A", False
        return character if character == "." else re.escape(character), False

    def _escape(self) -> str:
        character = self._peek()
        self._at += 1
        if not character:
            raise SqlError("2201B", "invalid regular expression: invalid escape \\ sequence")
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character == "y":
            return r"\b"
        if character == "m":
            return r"\b(?=\w)"
        if character == "M":
            return r"\b(?<=\w)"
        if character.isalnum():
            raise self._refuse(f"\\{character}")
        return re.escape(character)

    def _bracket(self) -> str:
        found = ["["]
        if self._peek() == "^":
            found.append("^")
            self._at += 1
        first = True
        while True:
            character = self._peek()
            if not character:
                raise SqlError("2201B", "invalid regular expression: brackets [] not balanced")
            self._at += 1
            if character == "]" and not first:
                return "".join([*found, "]"])
            first = False
            if character == "[" and self._peek() in (":", ".", "="):
                end = self._pattern.find(":]", self._at)
                name = self._pattern[self._at + 1 : end] if end > 0 else ""
                if self._peek() != ":" or name not in _CLASSES:
                    raise self._refuse(f"[{self._pattern[self._at : self._at + 8]}")
                found.append(_CLASSES[name])
                self._at = end + 2
            elif character == "\\":
                escaped = self._escape()
                if escaped.startswith("[^") or "(" in escaped or escaped == r"\b":
                    raise self._refuse("a negated class inside brackets")
                found.append(escaped[1:-1] if escaped.startswith("[") else escaped)
            elif character == "-":
                found.append("-" if self._peek() not in ("]", "") and len(found) > 1 and found[-1] != "^" else r"\-")
            else:
                found.append(re.escape(character))

    def _quantifier(self, atom: str, holds_unbounded: bool) -> str:
        character = self._peek()
        if not character or character not in "*+?{":
            return ""
        if atom in (r"\A", r"\Z") or atom.startswith(r"\b"):
            raise SqlError("2201B", "invalid regular expression: quantifier operand invalid")
        if character == "{":
            match = re.compile(r"\{(\d{1,3})(,?)(\d{0,3})\}").match(self._pattern, self._at)
            if match is None or int(match[1]) > 255 or int(match[3] or 0) > 255:
                raise SqlError("2201B", "invalid regular expression: invalid repetition count(s)")
            text = match[0]
            unbounded = bool(match[2]) and not match[3]
            repeats = int(match[3] or match[1]) > 1 or unbounded
        else:
            text, unbounded = character, character in "*+"
            repeats = unbounded
        self._at += len(text)
        if repeats and holds_unbounded:
            raise self._refuse("a repetition inside a repetition")
        if self._peek() == "?":
            self._at += 1
        elif self._peek() and self._peek() in "*+{":
            raise SqlError("2201B", "invalid regular expression: quantifier operand invalid")
        self._unbounded += unbounded or repeats
        if self._unbounded > _UNBOUNDED_MAX:
            raise self._refuse(f"more than {_UNBOUNDED_MAX} repetitions")
        return text
