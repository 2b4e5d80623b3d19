"""The roles of one session: the one that logged in, and those that it has taken on since. Pure."""

from __future__ import annotations

from enum import IntEnum

from triplicate.errors import SqlError
from triplicate.sql.core.access_rights import AccessRights


class SessionName(IntEnum):
    """The names that a session supplies to its statements."""

    CURRENT = 0
    """Of the current user."""
    SESSION = 1
    """Of the session's user."""
    ACTING = 2
    """Of the current user; empty for the administrator."""
    LOGGED_IN = 3
    """Of the session's user; empty for the administrator."""


class SessionRoles:
    """Args:
    authenticated: name of the role that logged in.
    is_administrator: whether it is the administrator in the list of databases, who may do everything.
    """

    def __init__(self, authenticated: str, *, is_administrator: bool) -> None:
        self._authenticated = authenticated
        self._is_administrator = is_administrator
        self._session: str | None = None
        """Set by SET SESSION AUTHORIZATION."""
        self._role: str | None = None
        """Set by SET ROLE."""
        self._before_local: tuple[str | None, str | None] | None = None
        """The roles before the first SET LOCAL of the transaction."""
        self.acting = self._acting()
        """The role whose rights the session has now; None for the administrator, who may do everything."""

    @property
    def session_user(self) -> str:
        return self._authenticated if self._session is None else self._session

    @property
    def stored_role(self) -> str | None:
        """The role of the database that logged in; None for the administrator in the list of databases."""
        return None if self._is_administrator else self._authenticated

    @property
    def session_role(self) -> str | None:
        """The role of the session's user; None for the administrator."""
        return self.stored_role if self._session is None else self._session

    @property
    def current_user(self) -> str:
        return self.session_user if self._role is None else self._role

    @property
    def role_setting(self) -> str:
        """The value of the parameter ``role``."""
        return "none" if self._role is None else self._role

    def _acting(self) -> str | None:
        return self.session_role if self._role is None else self._role

    def is_superuser(self, access: AccessRights) -> bool:
        """Whether the current role may do everything."""
        return self.acting is None or access.is_superuser(self.acting)

    def set_role(self, name: str | None, access: AccessRights, *, local: bool = False) -> None:
        """SET ROLE; None returns to the session's user.

        Raises:
            SqlError: 22023, there is no such role; 42501, the session's user is no member of it.
        """
        if name is not None and name != self.session_user:
            if not access.exists(name):
                raise SqlError("22023", f'role "{name}" does not exist')
            user = self.session_user
            is_free = (self._is_administrator and self._session is None) or access.is_superuser(user)
            if not is_free and not access.is_member(user, name):
                raise SqlError("42501", f'permission denied to set role "{name}"')
        self._remember(local=local)
        self._role = None if name == self.session_user else name
        self.acting = self._acting()

    def set_session(self, name: str | None, access: AccessRights, *, local: bool = False) -> None:
        """SET SESSION AUTHORIZATION; None returns to the role that logged in.

        Raises:
            SqlError: 22023, there is no such role; 42501, the role that logged in is no superuser.
        """
        if name is not None and name != self._authenticated:
            if not access.exists(name):
                raise SqlError("22023", f'role "{name}" does not exist')
            if not self._is_administrator and not access.is_superuser(self._authenticated):
                raise SqlError("42501", "permission denied to set session authorization")
        self._remember(local=local)
        self._session = None if name == self._authenticated else name
        self._role = None
        self.acting = self._acting()

    def _remember(self, *, local: bool) -> None:
        if not local:
            self._before_local = None
        elif self._before_local is None:
            self._before_local = self._session, self._role

    def reset(self) -> None:
        """Return to the role that logged in."""
        self._session = self._role = self._before_local = None
        self.acting = self._acting()

    def end_transaction(self) -> None:
        """Undo SET LOCAL."""
        if self._before_local is not None:
            (self._session, self._role), self._before_local = self._before_local, None
            self.acting = self._acting()
