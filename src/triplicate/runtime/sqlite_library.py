"""Which SQLite library may write files that several connections share."""

from __future__ import annotations

from triplicate.errors import ConfigError

SOUND_SINCE = (3, 51, 3)
"""SQLite 3.7.0 to 3.51.2 can lose a commit in WAL mode when two connections checkpoint and write at once (sqlite.org/wal.html, "the
WAL-reset bug")."""


def require_sound_sqlite() -> None:
    """Check the SQLite inside apsw. Wheels of apsw carry their own; a package of a distribution may use the system's.

    Raises:
        ConfigError: it is older than `SOUND_SINCE`.
    """
    # Not every user of this room needs SQLite.
    import apsw

    found = apsw.sqlite_lib_version()
    if tuple(int(part) for part in found.split(".")) < SOUND_SINCE:
        needed = ".".join(str(part) for part in SOUND_SINCE)
        raise ConfigError(
            f"apsw uses SQLite {found}, which can lose a commit of a file that several connections write; "
            f"SQLite {needed} or later is needed: pip install --upgrade --force-reinstall 'apsw>={needed}'"
        )
