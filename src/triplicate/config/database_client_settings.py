"""Settings of commands that are clients of databases."""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.config.setting import setting


@dataclass(frozen=True, slots=True)
class DatabaseClientSettings:
    """Section ``database_client``: the role as which commands use databases."""

    role: str = setting(
        "",
        "Role as which `triplicate sql` logs in, and the administrator of databases that `triplicate database create` makes. Empty: the "
        "name of the system's user, and no administrator.",
    )
    password_file: str = setting("", "File with the password of `role`; only its owner may read it.")
