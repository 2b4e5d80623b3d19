"""The file of users: for each a verifier of SCRAM, a hash for DIGEST-MD5, and roles. TOML, read and written.

A verifier does not let its reader log in. The hash does: for BookKeeper's realm it is as good as the password. So the file is as secret as
the passwords. A user that is only for Triplicate's clients needs no hash.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field

from triplicate.errors import ArgumentError, FormatError
from triplicate.security.core.bookie_rights import BookieRole, parse_roles
from triplicate.security.core.digest_md5 import hash_of
from triplicate.security.core.scram_verifier import PASSWORD_BYTES_MAX, ScramVerifier, prepared

USER_BYTES_MAX = 255
HASH_BYTES = 16

_HEAD = """\
# The users of a bookie. Written by `triplicate bookie user`; a bookie reads it again when it has changed.
# `digest_md5` is as good as the password: with it one can log in. Only the owner of this file may read it.
"""


@dataclass(frozen=True, slots=True)
class User:
    """One user. The secrets are not part of its `repr`."""

    name: str
    roles: tuple[BookieRole, ...]
    scram: ScramVerifier = field(repr=False)
    password_hash: bytes | None = field(default=None, repr=False)
    """For DIGEST-MD5; None: this user cannot use it."""


def new_user(name: str, password: str, roles: tuple[BookieRole, ...], salt: bytes, *, digest_md5: bool = True) -> User:
    """A user with this password. It takes milliseconds.

    Args:
        salt: random, new for each password.
        digest_md5: whether Apache's clients may log in as this user.

    Raises:
        ArgumentError: no user can have this name or this password.
    """
    check_name(name)
    if not password or len(password.encode()) > PASSWORD_BYTES_MAX or "\0" in password:
        raise ArgumentError(f"a password has 1 to {PASSWORD_BYTES_MAX} bytes and no NUL")
    return User(name, roles, ScramVerifier.of_password(password, salt), hash_of(name, password) if digest_md5 else None)


def check_name(name: str) -> None:
    """Raises ArgumentError: no user can have this name, since a mechanism would send another one, or none."""
    fits = 0 < len(name.encode()) <= USER_BYTES_MAX and name.isprintable() and ":" not in name and prepared(name) == name
    if not fits:
        raise ArgumentError(f"{name!r} cannot be a user's name: up to {USER_BYTES_MAX} bytes of printable characters without a colon")


def parse_users(text: str) -> dict[str, User]:
    """The users in a file, by name.

    Raises:
        FormatError: it is no such file. The error names the user and repeats no secret.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"this is not TOML: {_without_quotes(str(error))}") from None
    tables = content.pop("users", {})
    if content or not isinstance(tables, dict):
        raise FormatError("a file of users has tables [users.NAME] and nothing else")
    return {name: _parse_user(name, table) for name, table in tables.items()}


def format_users(users: Mapping[str, User]) -> str:
    """The file that `parse_users` reads."""
    return _HEAD + "".join(f"\n{_format_user(users[name])}" for name in sorted(users))


def _parse_user(name: str, table: object) -> User:
    if not isinstance(table, dict) or not table.keys() <= {"roles", "scram", "digest_md5"}:
        raise FormatError(f"user {name!r} has something else than roles, scram and digest_md5")
    roles, scram, digest = table.get("roles"), table.get("scram"), table.get("digest_md5")
    if not isinstance(roles, list) or not all(isinstance(each, str) for each in roles):
        raise FormatError(f"user {name!r} has no list of roles")
    if not isinstance(scram, str):
        raise FormatError(f"user {name!r} has no verifier (scram)")
    try:
        check_name(name)
        return User(name, parse_roles(roles), ScramVerifier.parse(scram), _parse_hash(digest))
    except (ArgumentError, FormatError, ValueError) as error:
        raise FormatError(f"user {name!r}: {error}") from None


def _parse_hash(text: object) -> bytes | None:
    if text is None:
        return None
    try:
        value = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        value = b""
    if len(value) != HASH_BYTES:
        raise FormatError(f"digest_md5 is not {2 * HASH_BYTES} hexadecimal digits")
    return value


def _format_user(user: User) -> str:
    lines = [
        f"[users.{_quoted(user.name)}]",
        f"roles = [{', '.join(_quoted(role.value) for role in user.roles)}]",
        f"scram = {_quoted(user.scram.text)}",
    ]
    if user.password_hash is not None:
        lines.append(f'digest_md5 = "{user.password_hash.hex()}"')
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A TOML string. Names and values have only printable characters."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _without_quotes(message: str) -> str:
    """The parser's message without what it quotes of the text, which may be a secret: only its place is kept."""
    place = message.rfind("(at ")
    return message[place:] if place >= 0 else "it cannot be read"
