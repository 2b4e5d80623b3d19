"""The record of a run: every fact in order, and one running digest over all of them that identifies the run.

Two runs with the same digest did the same things at the same virtual instants. Facts are recorded in a canonical form, so that neither the
order of a set nor the address of an object can enter.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import marshal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
"""Types whose values are canonical as they are. Exactly these: a subclass may have another representation."""

GATHERED_MAX = 512
"""Notes that are serialised and hashed together, which is many times faster than one by one."""

MARSHAL_VERSION = 2
"""Later versions write an object that occurs twice as a reference and mark interned strings, neither of which belongs to the run."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line of a run's timeline."""

    time_s: float
    node: str
    kind: str
    facts: tuple[tuple[str, object], ...]

    def __str__(self) -> str:
        words = " ".join(f"{name}={canonical(value)}" for name, value in self.facts)
        return f"{self.time_s:12.6f}  {self.node:<12} {self.kind:<28} {words}".rstrip()


class Recorder:
    """Records facts of all nodes, the network and the disks.

    Args:
        time: the virtual clock.
        facts_max: facts of nodes that are kept for reading. The digest always covers all.
    """

    def __init__(self, time: Callable[[], float], *, facts_max: int = 100_000) -> None:
        self.facts: list[Fact] = []
        self.counts: dict[str, int] = {}
        self.dropped = 0
        """Facts beyond those kept. Some findings are searched for among the facts, so a run that dropped any is not judged."""
        self._time = time
        self._facts_max = facts_max
        self._hash = hashlib.blake2b(digest_size=16)
        self._gathered: list[tuple[float, tuple[Any, ...]]] = []

    def note(self, *parts: object) -> None:
        """Add values to the digest only: frequent, and readable only as part of the whole."""
        if not PLAIN.issuperset(map(type, parts)):
            parts = tuple(part if type(part) in PLAIN else canonical(part) for part in parts)
        self._gathered.append((self._time(), parts))
        if len(self._gathered) >= GATHERED_MAX:
            self._hash_gathered()

    def fact(self, node: str, kind: str, facts: Mapping[str, object]) -> None:
        """Add a fact of a node to the digest and the timeline."""
        self.note(node, kind, facts)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        if len(self.facts) < self._facts_max:
            self.facts.append(Fact(self._time(), node, kind, tuple((name, _frozen(value)) for name, value in facts.items())))
        else:
            self.dropped += 1

    def hexdigest(self) -> str:
        """The digest of the run so far."""
        self._hash_gathered()
        return self._hash.hexdigest()

    def _hash_gathered(self) -> None:
        # Each is serialised by itself, so that the size of the group does not show.
        self._hash.update(b"".join([marshal.dumps(gathered, MARSHAL_VERSION) for gathered in self._gathered]))
        self._gathered.clear()


def canonical(value: object) -> str:
    """A value as text that is the same in every process: sets sorted, dictionaries by key, errors by class and message, no address.

    Raises:
        TypeError: a type whose text might differ between processes.
    """
    if type(value) in PLAIN:
        return repr(value)
    if isinstance(value, tuple | list | range):
        return "(" + ", ".join(canonical(item) for item in value) + ")"
    if isinstance(value, enum.Enum):
        return str(value.name)
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str):
        return repr(str(value))
    if isinstance(value, bytes):
        return repr(bytes(value))
    if isinstance(value, bytearray | memoryview):
        return repr(bytes(value))
    if isinstance(value, dict | Mapping):
        return "{" + ", ".join(sorted(f"{canonical(key)}: {canonical(item)}" for key, item in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(canonical(item) for item in value)) + "}"
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__ + canonical({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    raise TypeError(f"a trace takes plain values, not {type(value).__name__}: its text may differ from one process to the next")


def _frozen(value: object) -> object:
    """An immutable copy of a value."""
    return value if value is None or isinstance(value, int | float | str | bytes) else canonical(value)
