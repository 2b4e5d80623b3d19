"""Texts and maps that describe the server, the node and its clients. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triplicate.kv.resp.core.replies import Reply

COMPATIBLE_VERSION = "7.2.0"
"""The version of Redis whose commands these are, for programs that ask for it."""
SERVER = "triplicate"


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """One connection, for CLIENT LIST and CLIENT INFO."""

    connection: int
    peer: str
    name: str
    user: str
    store: str
    version: int
    library: str
    subscriptions: int
    age_s: int

    @property
    def line(self) -> str:
        facts = {
            "id": self.connection,
            "addr": self.peer,
            "name": self.name,
            "age": self.age_s,
            "db": 0,
            "sub": self.subscriptions,
            "user": self.user or "default",
            "store": self.store,
            "lib-name": self.library,
            "resp": self.version,
        }
        return " ".join(f"{name}={_word(str(value))}" for name, value in facts.items())


def _word(text: str) -> str:
    """A text without spaces and line breaks, which separate the facts and the clients. The names of users may have any characters."""
    return "".join(each if each.isprintable() and each != " " else "".join(f"\\x{byte:02x}" for byte in each.encode()) for each in text)


@dataclass(frozen=True, slots=True)
class ReplicationFacts:
    """The part of this node in its store."""

    is_leader: bool
    leader: str | None
    position: int

    def role(self) -> Reply:
        """The answer of ROLE."""
        if self.is_leader:
            return [b"master", self.position, []]
        host, port = _host_and_port(self.leader)
        return [b"slave", host.encode(), port, b"connected" if self.leader else b"connect", self.position]

    def lines(self) -> dict[str, object]:
        """The lines of INFO."""
        if self.is_leader:
            return {"role": "master", "master_repl_offset": self.position}
        host, port = _host_and_port(self.leader)
        link = "up" if self.leader else "down"
        return {"role": "slave", "master_host": host, "master_port": port, "master_link_status": link, "slave_repl_offset": self.position}


def hello_map(version: str, protocol: int, connection: int, *, is_leader: bool) -> Mapping[bytes, Reply]:
    """The answer of HELLO."""
    return {
        b"server": SERVER.encode(),
        b"version": version.encode(),
        b"proto": protocol,
        b"id": connection,
        b"mode": b"standalone",
        b"role": b"master" if is_leader else b"replica",
        b"modules": [],
    }


def info_text(sections: Mapping[str, Mapping[str, object]]) -> str:
    """The text of INFO."""
    parts = []
    for name, facts in sections.items():
        parts.append("\r\n".join([f"# {name.capitalize()}", *(f"{key}:{value}" for key, value in facts.items())]))
    return "\r\n\r\n".join(parts) + "\r\n"


def _host_and_port(address: str | None) -> tuple[str, int]:
    host, _, port = (address or "").rpartition(":")
    return host.strip("[]"), int(port) if port.isdigit() else 0
