"""The check of a session's rights before each statement that it runs."""

from __future__ import annotations

import re

from triplicate.errors import FormatError, SqlError
from triplicate.security import PASSWORD_BYTES_MAX, ScramVerifier
from triplicate.sql.core.access_rights import AccessRights
from triplicate.sql.core.audit import AuditEvent, ConnectedClient
from triplicate.sql.core.interface import Prepared, SchemaMoved, StatementKind
from triplicate.sql.core.notifications import Notification
from triplicate.sql.core.rights import Rights
from triplicate.sql.core.role_commands import CreateRole, RenameRole, described
from triplicate.sql.core.schema_cache import LONG_TEXT
from triplicate.sql.core.session_roles import SessionRoles
from triplicate.sql.engine.session_database import HeldWriter, SessionDatabase
from triplicate.sql.executor.definition_rights import changed_relation

TRUNCATE = "TRUNCATE TABLE"
"""The tag of a DELETE that TRUNCATE consists of. It needs another right."""
_REMEMBERED = 10_000
"""Statements that are remembered as allowed."""
_MD5 = re.compile(r"md5[0-9a-f]{32}")
_ATTEMPTS = 10
"""Attempts to find the rights of a statement while the schema, or the rights of roles, change."""


class RightsCheck:
    """Checks the rights of one session's current role.

    Args:
        client: of the session. roles: the session's.
    """

    def __init__(self, database: SessionDatabase, client: ConnectedClient, roles: SessionRoles) -> None:
        self._database = database
        self._client = client
        self._roles = roles

    def access(self, held: HeldWriter | None) -> AccessRights:
        """The roles and rights that the session's next statement meets."""
        if held is None or held.transaction.over:
            return self._database.roles.access
        return held.writer.current_access

    async def require(
        self, role: str | None, prepared: Prepared, held: HeldWriter | None, snapshot_schema: int | None, *, locks: bool = False
    ) -> None:
        """Check the rights of a role to run a statement now. When it returns, nothing has been awaited since the check.

        A superuser's statement is checked too: views, triggers and foreign keys of other roles act in it with the rights of their owners.

        Args:
            role: None for the administrator.
            snapshot_schema: the version of the schema that the open transaction reads; None where it reads the present one.
            locks: whether the statement locks the rows that it reads.

        Raises:
            SqlError: 42501; 40001, the schema has changed since the snapshot of the transaction, so the rights to it are unknown.
        """
        database = self._database
        is_shared = held is None or held.transaction.over or not held.writer.has_altered_schema
        key, is_plain = (role, prepared.sql), not locks and prepared.tag != TRUNCATE
        is_caught_up = False
        for _ in range(_ATTEMPTS):
            version, access = database.schema_version, self.access(held)
            if access.owners_are_superusers and (role is None or access.is_superuser(role)):
                return
            if snapshot_schema is not None and snapshot_schema != version:
                raise SqlError("40001", "the schema was changed after this transaction began to read", hint="Run it again.")
            is_remembered = is_plain and is_shared and access is database.roles.access
            if is_remembered and key in database.roles.allowed:
                return
            rights = await self._rights_of(prepared, held if not is_shared else None, locks=locks)
            if version == database.schema_version and access is self.access(held):
                if not is_caught_up and access.refusal(role, rights) is not None:
                    is_caught_up = True
                    await self._catch_up()
                    continue
                self._require(role, prepared, access, rights)
                if is_remembered and len(prepared.sql) <= LONG_TEXT:
                    self._remember(key)
                return
        raise SchemaMoved

    async def _catch_up(self) -> None:
        """A session may have read a grant before this copy has reported the rights of its state."""
        catch_up = self._database.roles.catch_up
        if catch_up is not None:
            await catch_up()

    def _require(self, role: str | None, prepared: Prepared, access: AccessRights, rights: Rights) -> None:
        refusal = access.refusal(role, rights)
        if refusal is not None:
            self._audit(AuditEvent.STATEMENT_REFUSED, prepared, refusal.facts())
            raise refusal.error

    def _remember(self, key: tuple[str | None, str]) -> None:
        allowed = self._database.roles.allowed
        if len(allowed) >= _REMEMBERED:
            allowed.clear()
        allowed.add(key)

    async def _rights_of(self, prepared: Prepared, held: HeldWriter | None, *, locks: bool) -> Rights:
        """Args:
        held: the writer, where only its open transaction has the schema.
        """
        found: Rights
        if held is not None:
            writer, run = held.writer, held.transaction.run
            if locks:
                found = await run(writer.rights.of_lock, prepared.sql)
            elif prepared.tag == TRUNCATE:
                found = await run(writer.rights.of_truncation, prepared.sql)
            else:
                found = await run(writer.rights.of, prepared.sql, prepared.kind)
            return found
        examiner = self._database.pool.examiner
        if locks:
            return await examiner.lock_rights_of(prepared.sql)
        if prepared.tag == TRUNCATE:
            return await examiner.truncation_rights_of(prepared.sql)
        return await examiner.rights_of(prepared.sql, prepared.kind, self._database.schema_version)

    def check_command(self, prepared: Prepared) -> None:
        """Check what only the node knows of a change of roles: the name of the administrator in the list of databases is taken.

        Raises:
            SqlError: 42710.
        """
        match prepared.command:
            case CreateRole(name) | RenameRole(_, name) if self._database.roles.is_administrator(name):
                raise SqlError("42710", f'role "{name}" already exists', detail="It is the administrator in the list of databases.")

    def refused(self, prepared: Prepared, error: SqlError) -> None:
        """Record a refusal that was found while the statement ran."""
        if error.sqlstate == "42501":
            self._audit(AuditEvent.STATEMENT_REFUSED, prepared, _subject(prepared))

    def changed(self, prepared: Prepared) -> None:
        """Record a change of the schema or of roles."""
        if prepared.kind is StatementKind.SCHEMA:
            event = AuditEvent.SCHEMA_CHANGED if prepared.command is None else AuditEvent.ROLE_CHANGED
            self._audit(event, prepared, _subject(prepared))

    def _audit(self, event: AuditEvent, prepared: Prepared, facts: dict[str, object]) -> None:
        known = {"statement": prepared.tag, "current_role": self._roles.current_user, **facts}
        self._database.roles.audit(event, self._client.facts(**known))


def _subject(prepared: Prepared) -> dict[str, object]:
    """The facts of what a definition or a change of roles changes."""
    if prepared.command is None or isinstance(prepared.command, Notification):
        return {"relation": changed_relation(prepared.sql)}
    return described(prepared.command)


def verifier_text(password: str, salt: bytes) -> str:
    """See `Session.verifier_of`. Takes milliseconds."""
    if _MD5.fullmatch(password):
        raise SqlError("0A000", "verifiers by MD5 are not supported", hint="Give the password, or a verifier by SCRAM-SHA-256.")
    if password.startswith("SCRAM-SHA-256$"):
        try:
            return ScramVerifier.parse(password).text
        except FormatError as error:
            raise SqlError("22023", str(error)) from None
    if len(password.encode()) > PASSWORD_BYTES_MAX:
        raise SqlError("22023", f"a password has at most {PASSWORD_BYTES_MAX} bytes")
    return ScramVerifier.of_password(password, salt).text
