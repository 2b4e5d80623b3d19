"""Regular expressions of PostgreSQL, matched by RE2: in linear time, without backtracking, and without the interpreter's lock. Pure.

The translator writes each construct in RE2's syntax, or refuses it by name: RE2 has no references and no lookaround. Only the existence of
a match is asked for, so its length does not matter. Letters and their cases are those of ASCII, as in PostgreSQL's locale C.
Source: PostgreSQL 15 documentation, "Regular Expression Details"; RE2's "Syntax".
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2

from triplicate.errors import SqlError

PATTERN_MAX = 10_000
"""Upper bound on the characters of a pattern, which this program translates."""
_DEPTH_MAX = 200
_MEMORY_BYTES = 2 * 1024 * 1024
"""Limit on the memory of one compiled expression. RE2 refuses an expression whose program takes more than two thirds of it."""
_KEPT = 64
"""Compiled expressions that are kept. RE2's module keeps 128."""
_WORK_MAX = 1_000_000_000
"""Upper bound on the instructions of an expression times the bytes that it is matched against: up to some 3 s, which nothing interrupts."""
_REPETITIONS_MAX = 255

Ranges = tuple[tuple[int, int], ...]
"""A set of characters: the first and last of each range, in order."""

_LAST = 0x10FFFF
_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_NEWLINE: Ranges = ((0x0A, 0x0A),)
_CLASSES: dict[str, Ranges] = {
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "digit": ((0x30, 0x39),),
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "upper": ((0x41, 0x5A),),
    "lower": ((0x61, 0x7A),),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "print": ((0x20, 0x7E),),
    "graph": ((0x21, 0x7E),),
    "word": _WORD,
}
_CLASS_ESCAPES = {"d": _CLASSES["digit"], "s": _CLASSES["space"], "w": _WORD}
_CHARACTER_ESCAPES = {"a": 7, "b": 8, "B": 0x5C, "e": 0x1B, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
_CONSTRAINTS = {"y": r"\b", "Y": "", "A": r"\A", "Z": r"\z", "m": r"\b", "M": r"\b"}
_REPETITION = re.compile(r"\{(\d{1,5})(,?)(\d{0,5})\}", re.ASCII)
_OPTIONS = re.compile(r"\(\?([a-z]*)\)")
_COMMENT = re.compile(r"\(\?#[^)]*\)")
_BLANK = re.compile(r"(?:[ \t\n\r\f\v]+|#[^\n]*)+")
_LOOKAROUND = {"(?=": "lookahead", "(?!": "lookahead", "(?<=": "lookbehind", "(?<!": "lookbehind"}


class Matcher:
    """A compiled regular expression."""

    def __init__(self, pattern: str, ignores_case: bool) -> None:
        """Raises SqlError as `regular_expression`."""
        options = re2.Options()
        options.max_mem, options.dot_nl, options.never_capture, options.log_errors = _MEMORY_BYTES, True, True, False
        try:
            self._compiled = re2.compile(_Translation(pattern, ignores_case).text, options)
        except re2.error as error:
            reason = error.args[0].decode(errors="replace") if error.args and isinstance(error.args[0], bytes) else str(error)
            if reason.startswith(("pattern too large", "invalid repetition size", "expression nested too deeply")):
                raise SqlError(
                    "54000", f"the regular expression needs more than {_MEMORY_BYTES} bytes of memory, or repeats too much"
                ) from None
            raise _invalid(reason) from None

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in a text.

        Raises:
            SqlError: 54000, the text is too long for an expression of this size.
        """
        data = text.encode()
        if len(data) * int(self._compiled.programsize) > _WORK_MAX:
            most = _WORK_MAX // int(self._compiled.programsize)
            raise SqlError("54000", f"this regular expression is matched against {most} bytes, the text has {len(data)}")
        return self._compiled.search(data) is not None


@lru_cache(maxsize=_KEPT)
def regular_expression(pattern: str, ignores_case: bool) -> Matcher:
    """Compile a regular expression of PostgreSQL.

    Raises:
        SqlError: 2201B for a malformed pattern, 54000 for one that is too long or takes too much memory, 54001 for one that is nested too
            deeply, 0A000 for one with a construct that RE2 does not have.
    """
    if len(pattern) > PATTERN_MAX:
        raise SqlError("54000", f"a regular expression may have {PATTERN_MAX} characters, this one has {len(pattern)}")
    return Matcher(pattern, ignores_case)


def _invalid(reason: str) -> SqlError:
    return SqlError("2201B", f"invalid regular expression: {reason}")


def _unavailable(construct: str) -> SqlError:
    return SqlError("0A000", f"{construct} in a regular expression is not available", hint="Use LIKE, or match in the client.")


def _complement(ranges: Ranges) -> Ranges:
    found, begin = [], 0
    for first, last in ranges:
        if first > begin:
            found.append((begin, first - 1))
        begin = last + 1
    return (*found, (begin, _LAST)) if begin <= _LAST else tuple(found)


def _union(ranges: Ranges) -> Ranges:
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def _with_other_case(ranges: Ranges) -> Ranges:
    """With the other case of each letter of ASCII."""
    found = list(ranges)
    for first, last in ranges:
        for begin, end, offset in ((0x41, 0x5A, 32), (0x61, 0x7A, -32)):
            if first <= end and last >= begin:
                found.append((max(first, begin) + offset, min(last, end) + offset))
    return _union(tuple(found))


def _is_of_words(ranges: Ranges) -> bool:
    return bool(ranges) and all(any(begin <= first and last <= end for begin, end in _WORD) for first, last in ranges)


class _Element:
    """A part of an expression, in RE2's syntax.

    Args:
        begins_word, ends_word: whether each of its matches begins, or ends, with a letter, digit or underscore.
    """

    __slots__ = ("begins_word", "edge", "ends_word", "is_constraint", "text")

    def __init__(
        self, text: str, *, begins_word: bool = False, ends_word: bool = False, is_constraint: bool = False, edge: str = ""
    ) -> None:
        self.text = text
        self.begins_word = begins_word
        self.ends_word = ends_word
        self.is_constraint = is_constraint
        self.edge = edge
        """``m`` for the beginning of a word, ``M`` for its end."""


class _Translation:
    """Translates one expression. Its result is `text`."""

    def __init__(self, pattern: str, ignores_case: bool) -> None:
        self._pattern = pattern
        self._at = 0
        self._ignores_case = ignores_case
        self._is_expanded = self._is_literal = False
        self._lines = self._any_but_newline = False
        """Whether ``^`` and ``$`` match at lines, and whether ``.`` and negated brackets leave newlines out."""
        self._read_director()
        if self._is_literal:
            self.text = "".join(self._set(((ord(one), ord(one)),)).text for one in pattern[self._at :])
            return
        self.text = self._alternatives(0).text
        if self._at < len(pattern):
            raise _invalid("parentheses () not balanced")

    def _read_director(self) -> None:
        if self._pattern.startswith("***="):
            self._at, self._is_literal = 4, True
            return
        if self._pattern.startswith("***:"):
            self._at = 4
        elif self._pattern.startswith("***"):
            raise _invalid("invalid regexp (reg version 0.8)")
        options = _OPTIONS.match(self._pattern, self._at)
        if options is None:
            return
        self._at = options.end()
        for letter in options[1]:
            match letter:
                case "c" | "i":
                    self._ignores_case = letter == "i"
                case "n" | "m" | "s" | "p" | "w":
                    self._lines, self._any_but_newline = letter in "nmw", letter in "nmp"
                case "t" | "x":
                    self._is_expanded = letter == "x"
                case "q":
                    self._is_literal = True
                case "b" | "e":
                    raise _unavailable(f"the embedded option {letter!r}")
                case _:
                    raise _invalid("invalid embedded option")

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _skip(self) -> None:
        """Skip comments, and blanks in the expanded syntax."""
        while True:
            skipped = _COMMENT.match(self._pattern, self._at)
            if skipped is None and self._is_expanded:
                skipped = _BLANK.match(self._pattern, self._at)
            if skipped is None:
                return
            self._at = skipped.end()

    def _alternatives(self, depth: int) -> _Element:
        if depth > _DEPTH_MAX:
            raise SqlError("54001", f"a regular expression may be nested {_DEPTH_MAX} levels deep")
        branches = [self._branch(depth)]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._branch(depth))
        begins, ends = all(branch.begins_word for branch in branches), all(branch.ends_word for branch in branches)
        return _Element("|".join(branch.text for branch in branches), begins_word=begins, ends_word=ends)

    def _branch(self, depth: int) -> _Element:
        elements: list[_Element] = []
        self._skip()
        while self._peek() and self._peek() not in "|)":
            elements.append(self._quantified(self._atom(depth)))
            self._skip()
        for index, element in enumerate(elements):
            # RE2 has the edge of a word, and not on which side of it the word is.
            if element.edge == "m" and not (index + 1 < len(elements) and elements[index + 1].begins_word):
                raise _unavailable(r"\m before anything but a character of words")
            if element.edge == "M" and not (index > 0 and elements[index - 1].ends_word):
                raise _unavailable(r"\M behind anything but a character of words")
        text = "".join(element.text for element in elements)
        if not elements:
            return _Element("")
        return _Element(text, begins_word=elements[0].begins_word, ends_word=elements[-1].ends_word)

    def _set(self, ranges: Ranges, *, is_negated: bool = False) -> _Element:
        """The characters of a set, or all others."""
        ranges = _with_other_case(ranges) if self._ignores_case else _union(ranges)
        if is_negated:
            ranges = _complement(_union((*ranges, *_NEWLINE)) if self._any_but_newline else ranges)
        if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
            character = chr(ranges[0][0])
            text = character if character.isascii() and character.isalnum() else f"\\x{{{ord(character):x}}}"
        elif not ranges:
            text = r"[^\x{0}-\x{10ffff}]"
        else:
            text = "[" + "".join(f"\\x{{{first:x}}}-\\x{{{last:x}}}" for first, last in ranges) + "]"
        is_word = _is_of_words(ranges)
        return _Element(text, begins_word=is_word, ends_word=is_word)

    def _atom(self, depth: int) -> _Element:
        character = self._peek()
        self._at += 1
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return self._bracket()
            case "\\":
                return self._escaped()
            case "." if self._any_but_newline:
                return self._set(_NEWLINE, is_negated=True)
            case ".":
                return _Element(".")
            case "^":
                return _Element("(?m:^)" if self._lines else r"\A", is_constraint=True)
            case "$":
                return _Element("(?m:$)" if self._lines else r"\z", is_constraint=True)
            case "*" | "+" | "?":
                raise _invalid("quantifier operand invalid")
            case "{" if self._peek().isdigit():
                raise _invalid("quantifier operand invalid")
        return self._set(((ord(character), ord(character)),))

    def _group(self, depth: int) -> _Element:
        if self._peek() == "?":
            for mark, name in _LOOKAROUND.items():
                if self._pattern.startswith(mark, self._at - 1):
                    raise _unavailable(name)
            if not self._pattern.startswith("?:", self._at):
                raise _invalid("quantifier operand invalid")
            self._at += 2
        inner = self._alternatives(depth + 1)
        if self._peek() != ")":
            raise _invalid("parentheses () not balanced")
        self._at += 1
        inner.text = f"(?:{inner.text})"
        return inner

    def _escaped(self) -> _Element:
        character = self._peek()
        if character == "Y":
            raise _unavailable(r"\Y")  # RE2 finds it between the bytes of one character.
        if character in _CONSTRAINTS and character:
            self._at += 1
            return _Element(_CONSTRAINTS[character], is_constraint=True, edge=character if character in "mM" else "")
        ranges = self._escape()
        return self._set(ranges)

    def _escape(self) -> Ranges:
        """The characters of an escape behind its backslash."""
        character = self._peek()
        self._at += 1
        if not character:
            raise _invalid("invalid escape \\ sequence")
        if character.lower() in _CLASS_ESCAPES:
            ranges = _CLASS_ESCAPES[character.lower()]
            return ranges if character.islower() else _complement(ranges)
        if character in _CHARACTER_ESCAPES:
            code = _CHARACTER_ESCAPES[character]
        elif character == "c":
            code = ord(self._peek() or "\0") & 31
            self._at += 1
        elif character in "uU":
            code = self._number(16, r"[0-9A-Fa-f]{4}" if character == "u" else r"[0-9A-Fa-f]{8}")
        elif character == "x":
            code = self._number(16, r"[0-9A-Fa-f]+")
        elif character == "0":
            code = self._number(8, r"[0-7]{0,2}")
        elif character.isdigit():
            raise _unavailable("a reference to a group")
        elif character.isascii() and character.isalpha():
            raise _invalid("invalid escape \\ sequence")
        else:
            code = ord(character)
        return ((code, code),)

    def _number(self, base: int, digits: str) -> int:
        found = re.compile(digits).match(self._pattern, self._at)
        if found is None:
            raise _invalid("invalid escape \\ sequence")
        self._at = found.end()
        code = int(found[0] or "0", base)
        if code > _LAST or 0xD800 <= code < 0xE000:
            raise _invalid("invalid escape \\ sequence")
        return code

    def _bracket(self) -> _Element:
        for edge, name in (("m", "[:<:]]"), ("M", "[:>:]]")):
            if self._pattern.startswith(name, self._at):
                self._at += len(name)
                return _Element(r"\b", is_constraint=True, edge=edge)
        is_negated = self._peek() == "^"
        self._at += is_negated
        found: list[tuple[int, int]] = []
        begin = self._at
        while self._peek() != "]" or self._at == begin:
            if self._peek() == "-" and self._at > begin and self._pattern[self._at + 1 : self._at + 2] != "]":
                raise _invalid("invalid character range")
            first = self._member()
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                last = self._member()
                if len(first) != 1 or len(last) != 1 or first[0][0] != first[0][1] or last[0][0] != last[0][1] or first[0][0] > last[0][0]:
                    raise _invalid("invalid character range")
                first = ((first[0][0], last[0][0]),)
            found += first
        self._at += 1
        return self._set(tuple(found), is_negated=is_negated)

    def _member(self) -> Ranges:
        """One character, class or escape inside of brackets."""
        character = self._peek()
        if not character:
            raise _invalid("brackets [] not balanced")
        self._at += 1
        if character == "\\":
            if self._peek() in _CONSTRAINTS:
                raise _invalid("invalid escape \\ sequence")
            return self._escape()
        kind = self._peek()
        if character != "[" or kind not in (":", ".", "=") or not kind:
            return ((ord(character), ord(character)),)
        end = self._pattern.find(f"{kind}]", self._at + 1)
        if end < 0:
            raise _invalid("brackets [] not balanced")
        name = self._pattern[self._at + 1 : end]
        self._at = end + 2
        if kind == ":":
            if name not in _CLASSES:
                raise _invalid("invalid character class")
            # PostgreSQL takes both cases for one where a match ignores the case.
            return _CLASSES["alpha"] if self._ignores_case and name in ("upper", "lower") else _CLASSES[name]
        if len(name) != 1:
            raise _unavailable(f"[{kind}{name[:20]}{kind}]")
        return ((ord(name), ord(name)),)

    def _quantified(self, atom: _Element) -> _Element:
        self._skip()
        character = self._peek()
        text = ""
        if character and character in "*+?":
            text, least = character, int(character == "+")
        elif character == "{" and self._pattern[self._at + 1 : self._at + 2].isdigit():
            found = _REPETITION.match(self._pattern, self._at)
            if found is None:
                raise _invalid("invalid repetition count(s)")
            text, least = found[0], int(found[1])
            most = int(found[3] or found[1])
            if max(least, most) > _REPETITIONS_MAX or most < least:
                raise _invalid("invalid repetition count(s)")
        if not text:
            return atom
        if atom.is_constraint:
            raise _invalid("quantifier operand invalid")
        self._at += len(text)
        if self._peek() == "?":
            self._at += 1  # The shortest match exists where a match does.
        self._skip()
        following = self._peek()
        if following and (following in "*+?" or (following == "{" and self._pattern[self._at + 1 : self._at + 2].isdigit())):
            raise _invalid("quantifier operand invalid")
        # A repetition at most once of an expression that repeats is meant by RE2's `??`, so each is put in a group.
        is_kept = least > 0
        return _Element(f"(?:{atom.text}){text}", begins_word=atom.begins_word and is_kept, ends_word=atom.ends_word and is_kept)
