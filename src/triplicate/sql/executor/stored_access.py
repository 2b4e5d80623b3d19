"""The roles and rights of the leader's open transaction, and the changes of them as settings of the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import apsw

from triplicate.sql.core.access_rights import DATABASE, Membership, StoredRole
from triplicate.sql.core.column_codec import Value
from triplicate.sql.core.records import SettingChange
from triplicate.sql.core.rights import Action, letters_of
from triplicate.sql.storage.access_tables import (
    GRANT,
    OWNER,
    ROLE,
    load_access_rights,
    member_setting,
    pair_setting,
    role_setting,
    store_access_setting,
)


class StoredAccess:
    """Args:
    connection: the leader's. log: adds a change to those of the open transaction.
    """

    def __init__(self, connection: apsw.Connection, log: Callable[[SettingChange], None]) -> None:
        self._connection = connection
        self._log = log
        self.committed = load_access_rights(connection)
        """Those of the last commit."""
        self.current = self.committed
        """Those of the open transaction."""

    @property
    def is_changed(self) -> bool:
        """Whether the open transaction has changed roles or rights."""
        return self.current is not self.committed

    def begin(self) -> None:
        """A transaction begins, or it was rolled back."""
        self.current = self.committed

    def undone(self) -> None:
        """A part of the transaction was rolled back."""
        if self.is_changed:
            self.current = load_access_rights(self._connection)

    def commit(self) -> None:
        self.committed = self.current

    # Changes.

    def _store(self, settings: Iterable[tuple[str, Value]]) -> None:
        changed = False
        for name, value in settings:
            kind, _, subject = name.partition(":")
            store_access_setting(self._connection, kind, subject, value)
            self._log(SettingChange(name, value))
            changed = True
        if changed:
            self.current = load_access_rights(self._connection)

    def store_role(self, role: StoredRole) -> None:
        self._store([role_setting(role)])

    def store_member(self, role: str, member: str, membership: Membership | None) -> None:
        self._store([member_setting(role, member, membership)])

    def store_grants(self, relation: str, grantee: str, actions: frozenset[Action]) -> None:
        # The row of PUBLIC on the database stays when it is empty: without it, PUBLIC has its first privileges.
        stays = bool(actions) or relation == DATABASE
        self._store([pair_setting(GRANT, relation.lower(), grantee, letters_of(actions) if stays else None)])

    def store_owner(self, relation: str, role: str | None) -> None:
        self._store([(f"{OWNER}:{relation.lower()}", role)])

    def drop_role(self, name: str) -> None:
        """Remove a role with its memberships, and its empty grants."""
        access = self.current
        members = [member_setting(role, member, None) for role, member in access.members if name in (role, member)]
        grants = [pair_setting(GRANT, relation, grantee, None) for relation, grantee in access.grants if grantee == name]
        self._store([*members, *grants, (f"{ROLE}:{name}", None)])

    def rename_role(self, name: str, new: StoredRole) -> None:
        """Give a role's memberships, privileges and relations to it under another name."""
        access = self.current
        settings: list[tuple[str, Value]] = [(f"{ROLE}:{name}", None), role_setting(new)]
        for (role, member), membership in access.members.items():
            if name in (role, member):
                settings.append(member_setting(role, member, None))
                settings.append(member_setting(new.name if role == name else role, new.name if member == name else member, membership))
        for (relation, grantee), actions in access.grants.items():
            if grantee == name:
                settings += [pair_setting(GRANT, relation, name, None), pair_setting(GRANT, relation, new.name, letters_of(actions))]
        settings += [(f"{OWNER}:{relation}", new.name) for relation, owner in access.owners.items() if owner == name]
        self._store(settings)

    def relations_changed(self, before: frozenset[str], after: frozenset[str], *, renames: bool, owner: str | None) -> None:
        """Follow a schema change: a new relation gets its owner, a renamed one keeps its rights, and those of a dropped one vanish.

        Args:
            before, after: the names of the relations. owner: the role that ran the statement; None for the administrator.
        """
        access = self.current
        old, new = {name.lower() for name in before}, {name.lower() for name in after}
        dropped, made = sorted(old - new), sorted(new - old)
        settings: list[tuple[str, Value]] = []
        moved = dict(zip(dropped, made, strict=True)) if renames and len(dropped) == len(made) == 1 else {}
        for relation in dropped:
            heir = moved.get(relation)
            for (of, grantee), actions in access.grants.items():
                if of == relation:
                    settings.append(pair_setting(GRANT, relation, grantee, None))
                    settings += [pair_setting(GRANT, heir, grantee, letters_of(actions))] if heir is not None else []
            held = access.owner(relation)
            if held is not None:
                settings.append((f"{OWNER}:{relation}", None))
                settings += [(f"{OWNER}:{heir}", held)] if heir is not None else []
        if not moved and owner in access.roles:
            settings += [(f"{OWNER}:{relation}", owner) for relation in made]
        self._store(settings)
