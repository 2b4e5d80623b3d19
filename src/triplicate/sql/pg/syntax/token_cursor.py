"""A parser's position in the tokens of a statement, and the rules for names and types. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import Token
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.nodes import Name

_SCHEMAS = ("public", "pg_catalog", "information_schema")


class NotUnderstood(Exception):
    """The grammar here does not cover the text, so SQLite gets it as it is written. `token` is the first token that does not fit."""

    def __init__(self, token: Token) -> None:
        super().__init__(f"at {token.text!r}")
        self.token = token


class TokenCursor:
    """Steps through tokens.

    Args:
        tokens: of one statement. size: characters of its text.
    """

    def __init__(self, tokens: Sequence[Token], size: int) -> None:
        self._tokens = [*tokens, Token("end", "", size, size)]
        self._at = 0
        self._depth = 0
        self._numbers = _parameter_numbers(tokens)

    # Tokens.

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    def ahead(self, distance: int = 1) -> Token:
        index = self._at + distance
        return self._tokens[index] if index < len(self._tokens) else self._tokens[-1]

    def advance(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    @property
    def last_end(self) -> int:
        """The position in the text at which the previous token ends."""
        return self._tokens[self._at - 1].end if self._at else 0

    def accept(self, *words: str) -> bool:
        """Advance past the words if all of them are next, and return whether they are."""
        for distance, word in enumerate(words):
            if self.ahead(distance).upper != word:
                return False
        self._at += len(words)
        return True

    def expect(self, word: str) -> Token:
        if self.token.upper != word:
            raise self.not_understood()
        return self.advance()

    def not_understood(self) -> NotUnderstood:
        return NotUnderstood(self.token)

    # Names.

    def identifier(self) -> Token:
        if self.token.kind not in ("word", "quoted"):
            raise self.not_understood()
        return self.advance()

    def name(self) -> Name:
        """Parse a name of one part."""
        token = self.identifier()
        return Name(token.start, token.end, (folded(token),), ((token.start, token.end),), token.kind == "quoted")

    def dotted(self) -> Name:
        """Parse a name, with a schema and table before it."""
        first = self.identifier()
        parts, spans, last = [folded(first)], [(first.start, first.end)], first
        while self.token.upper == "." and self.ahead().kind in ("word", "quoted"):
            self.advance()
            last = self.advance()
            parts.append(folded(last))
            spans.append((last.start, last.end))
        return Name(first.start, last.end, tuple(parts), tuple(spans), last.kind == "quoted")

    def relation(self) -> str:
        """Parse the name of a table or view, and return it without its schema.

        Raises:
            SqlError: 42P01, the schema has none.
        """
        name = self.dotted()
        if name.parts[:-1] not in ((), ("public",), ("pg_catalog",)):
            raise SqlError("42P01", f'relation "{".".join(name.parts)}" does not exist')
        return name.last

    # Types.

    def type_name(self) -> nodes.TypeName:
        start = self.token.start
        token = self.identifier()
        while self.token.upper == "." and self.ahead().kind in ("word", "quoted"):
            self.advance()
            check_schema(folded(token))
            token = self.advance()
        name = folded(token) if token.kind == "quoted" else token.text.lower()
        if name == "double":
            self.expect("PRECISION")
            name = "double precision"
        elif name in ("character", "char", "bit", "national", "nchar"):
            if name == "national":
                name = self.advance().text.lower()
            if self.accept("VARYING"):
                name = "character varying" if name != "bit" else "bit varying"
        modifiers = self._modifiers()
        if name in ("timestamp", "time") and self.token.upper in ("WITH", "WITHOUT") and self.ahead().upper == "TIME":
            name += "tz" if self.advance().upper == "WITH" else ""
            self.advance()
            self.expect("ZONE")
        dimensions = 0
        while self.token.upper == "[":
            self.advance()
            if self.token.kind == "number":
                self.advance()
            self.expect("]")
            dimensions += 1
        if self.token.upper == "ARRAY" and self.ahead().upper != "[":
            self.advance()
            dimensions += 1
        return nodes.TypeName(start, self.last_end, name, modifiers, dimensions)

    def _modifiers(self) -> tuple[int, ...]:
        if self.token.upper != "(":
            return ()
        self.advance()
        modifiers = []
        while self.token.upper != ")":
            sign = -1 if self.accept("-") else 1
            if self.token.kind != "number" or not self.token.text.isdigit():
                raise self.not_understood()
            modifiers.append(sign * int(self.advance().text))
            if self.token.upper != ")":
                self.expect(",")
        self.expect(")")
        return tuple(modifiers)


def folded(token: Token) -> str:
    """The identifier of a token, in lower case unless it is quoted."""
    name = token.name or token.text
    return name if token.kind == "quoted" else name.lower()


def check_schema(name: str) -> None:
    """Check the schema of a function or a type. Raises SqlError 3F000 if there is none of that name."""
    if name not in _SCHEMAS:
        raise SqlError("3F000", f'schema "{name}" does not exist', hint="There is one schema, public.")


def _parameter_numbers(tokens: Sequence[Token]) -> dict[int, int]:
    """Maps the index of a parameter's token to its number. A bare ``?`` has the number after the largest one before it."""
    numbers: dict[int, int] = {}
    largest = 0
    for index, token in enumerate(tokens):
        if token.kind != "parameter":
            continue
        digits = token.text[1:]
        if digits and not (digits.isascii() and digits.isdigit()):
            continue
        number = int(digits) if digits else largest + 1
        largest = max(largest, number)
        numbers[index] = number
    return numbers
