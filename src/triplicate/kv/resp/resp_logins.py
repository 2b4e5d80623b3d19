"""Logins by AUTH and HELLO: the role, its password, and the store that it names; counted and audited.

A user name is ``ROLE@STORE``, or ``ROLE`` for the default store. Without authentication there are no roles, and a name without an ``@`` is
the name of the store. A password comes as it is, so it is accepted inside TLS, or from this machine.
"""

from __future__ import annotations

from collections.abc import Callable

from triplicate.kv.core.store_interface import KeyValueStore, KeyValueStores
from triplicate.kv.resp.client_stream import ClientStream
from triplicate.kv.resp.core.command_errors import CommandError
from triplicate.kv.resp.core.connection_commands import DEFAULT_USER, Credentials
from triplicate.kv.resp.resp_security import CredentialsRefused, RespRefusal, RespSecurity, common_name
from triplicate.kv.resp.store_session import StoreSession
from triplicate.runtime import Host, Metrics, Worker, sleep
from triplicate.security import (
    FULL_RIGHTS,
    PASSWORD_BYTES_MAX,
    FailedLogins,
    RefusalLines,
    Rights,
    User,
    audit,
    doubling_delay_s,
    is_loopback,
)

REFUSED_LOGINS = "triplicate_kv_refused_logins"
DELAY_FIRST_S = 0.1
DELAY_LONGEST_S = 3.0
"""Bounds of the delay before the answer to a failed login, in seconds. It doubles with each failure of the address."""

_REFUSED = "WRONGPASS invalid username-password pair or user is disabled."
AUTHENTICATION_REQUIRED = "NOAUTH Authentication required."


class RespLogins:
    """Lets clients log in.

    Args:
        stores: of the node. default_store: its name; empty for the only one.
    """

    def __init__(
        self,
        host: Host,
        stores: KeyValueStores,
        default_store: str,
        security: RespSecurity,
        failures: FailedLogins,
        metrics: Metrics | None,
    ) -> None:
        self._host = host
        self._stores = stores
        self._default_store = default_store
        self._security = security
        self._failures = failures
        self._lines = RefusalLines(host.clock)
        self._worker: Worker | None = None
        self._refused: Callable[[RespRefusal], None] | None = None
        if metrics is not None:
            text = "Connections and logins of clients of key-value stores that this node refused, by reason."
            counter = metrics.counter(REFUSED_LOGINS, text, ("reason",))
            children = {reason: counter.labels(reason.value) for reason in RespRefusal}
            self._refused = lambda reason: children[reason].inc()

    @property
    def demands_login(self) -> bool:
        return self._security.users is not None

    async def close(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()

    async def log_in(self, stream: ClientStream, session: StoreSession, login: Credentials) -> None:
        """Log in, and choose the store.

        Raises:
            CommandError: the login is refused, or there is no such store. The session is as it was.
        """
        role, _, named = login.user.rpartition("@") if "@" in login.user else (login.user, "", "")
        if self._security.users is None:
            role, named = (role, named) if named else ("", "" if login.user == DEFAULT_USER else login.user)
            proven = None
        else:
            try:
                proven = await self._prove(stream, role, login)
            except CredentialsRefused as error:
                self.refuse(error.reason, stream, error.logged, role=role, store=named)
                raise
        try:
            store = self.store(named)
        except CommandError as error:
            self.refuse(RespRefusal.STORE, stream, str(error), role=role, store=named)
            raise
        session.user, session.proven, session.is_admitted = login.user, proven, True
        session.rights = FULL_RIGHTS if proven is None else Rights.of(proven.roles)
        session.store, session.store_name = store, store.name
        method = "password" if self.demands_login else "trust"
        audit("login accepted", self._host.clock.wall_us(), self._facts(stream, role=role, store=store.name, method=method))

    async def _prove(self, stream: ClientStream, role: str, login: Credentials) -> User:
        """Raises CredentialsRefused."""
        users = self._security.users
        assert users is not None, "the server has users"
        if stream.tls is None and not is_loopback(stream.address):
            raise CredentialsRefused(RespRefusal.PLAIN_TEXT, "ERR a password is accepted inside TLS only; see node.tls")
        self._check_attempts(stream.address)
        user, is_known = users.find(login.user)
        if not is_known and role != login.user:
            user, is_known = users.find(role)
        matches = await self._matches(user, login.password)
        self._check_attempts(stream.address)  # Others from there may have failed meanwhile: a right guess among them must not count.
        if not (matches and is_known):
            failures = self._failures.count(stream.address, self._host.clock.monotonic())
            await sleep(self._host.clock, doubling_delay_s(failures, DELAY_FIRST_S, DELAY_LONGEST_S))
            raise CredentialsRefused(RespRefusal.PASSWORD, _REFUSED, "wrong password" if is_known else "no such user")
        if self._security.certificate_names_role and common_name(stream.tls) != role:
            raise CredentialsRefused(RespRefusal.CERTIFICATE, "WRONGPASS the common name of the client's certificate must be the role")
        now = users.same_user(user)  # The file may have changed while the password was compared.
        if now is None:
            raise CredentialsRefused(RespRefusal.PASSWORD, _REFUSED, "the user changed during the login")
        return now

    async def _matches(self, user: User, password: str) -> bool:
        if len(password.encode()) > PASSWORD_BYTES_MAX:
            return False
        if self._worker is None:
            self._worker = self._host.new_worker("kv-logins")
        return await self._worker.run(user.scram.matches, password)

    def _check_attempts(self, address: str) -> None:
        """Raises CredentialsRefused: too many logins from the address have failed."""
        wait_s = self._failures.wait_s(address, self._host.clock.monotonic())
        if wait_s > 0:
            text = f"WRONGPASS too many failed logins from this address; try again in {max(1, round(wait_s))} s"
            raise CredentialsRefused(RespRefusal.ATTEMPTS, text)

    def store(self, name: str) -> KeyValueStore:
        """The store of this name, the default one for an empty name.

        Raises:
            CommandError: there is none, or none is the default.
        """
        name = name or self._default_store
        if not name:
            names = self._stores.names()
            if len(names) != 1:
                raise CommandError(self._no_store(f"ERR no store is chosen: {_how(is_trusting=not self.demands_login)}"))
            name = names[0]
        store = self._stores.get(name)
        if store is None:
            raise CommandError(self._no_store(f"ERR there is no store '{name[:128]}'"))
        return store

    def _no_store(self, text: str) -> str:
        if self._stores.starting:
            return "LOADING the node is starting and may not have found all stores yet"
        names = self._stores.names()
        here = ", ".join(names[:20]) or "none yet; create one with 'triplicate kv create'"
        return f"{text}; stores here: {here}{', …' if len(names) > 20 else ''}"

    def is_still_user(self, session: StoreSession) -> bool:
        """Whether the entry of an admitted client is still in the file of users, with the same password. Its rights follow the file."""
        users, proven = self._security.users, session.proven
        if users is None or proven is None:
            return True
        user = users.same_user(proven)
        if user is None:
            return False
        session.rights = Rights.of(user.roles)
        return True

    def _facts(self, stream: ClientStream, **more: object) -> dict[str, object]:
        return {"door": "resp", "address": stream.address, "tls": None if stream.tls is None else stream.tls.version(), **more}

    def refuse(self, reason: RespRefusal, stream: ClientStream, cause: str, **facts: object) -> None:
        """Count and audit a refusal."""
        self.count(reason)
        self._lines.write("login refused", self._facts(stream, reason=reason.value, cause=cause, **facts))

    def count(self, reason: RespRefusal) -> None:
        """Count a refusal."""
        if self._refused is not None:
            self._refused(reason)


def _how(*, is_trusting: bool) -> str:
    return "name it as the user, AUTH STORE ''" if is_trusting else "name it with the role, AUTH ROLE@STORE PASSWORD"
