"""How far the scrubber is: the pass that runs, the last full pass, and the damage found. No I/O.

The state is kept in the file ``scrub`` of the first ledger directory: JSON with ``v`` (1), ``present``, ``last`` and ``damage``. A pass
continues at its next entry log after a restart. A state that cannot be read only means that a pass begins at the first entry log.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace

from triplicate.errors import FormatError
from triplicate.ledger import LedgerMetadata, write_set

SCRUB_FORMAT = 1
DAMAGE_KEPT = 100
"""Number of findings that the state lists. Further ones are only counted."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Entries of one ledger that cannot be read as they were written.

    Args:
        first, last: ids of the first and the last entry.
        log: number of the entry log that holds them.
    """

    ledger_id: int
    first: int
    last: int
    log: int
    reason: str

    @property
    def count(self) -> int:
        """Number of entries."""
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class ScrubPass:
    """One pass over the entry logs.

    Args:
        began_ms, ended_ms: milliseconds since the epoch; `ended_ms` is 0 until the pass has ended.
        first_log: the first entry log of the pass.
        next_log: the first entry log that the pass has not read.
        last_log: the last entry log of the pass. Later logs belong to the next pass.
        entries, size_bytes: the entries read, and the bytes of their runs.
        damaged: number of damaged entries.
        index_faults: number of entry logs whose rows in the index could not be read.
    """

    began_ms: int
    first_log: int
    next_log: int
    last_log: int
    entries: int = 0
    size_bytes: int = 0
    damaged: int = 0
    index_faults: int = 0
    ended_ms: int = 0


@dataclass(frozen=True, slots=True)
class ScrubState:
    """See the module's text.

    Args:
        present: the pass that runs; None between passes.
        last: the last full pass; None before the first.
        damage: what the present pass has found, or the last one between passes; at most `DAMAGE_KEPT` findings.
    """

    present: ScrubPass | None = None
    last: ScrubPass | None = None
    damage: tuple[Damage, ...] = ()

    def due_in_s(self, now_ms: int, interval_s: float) -> float:
        """Seconds until the next pass begins or continues; 0 if it is due. A clock that was set back delays it by at most the interval."""
        if self.present is not None or self.last is None:
            return 0.0
        return min(max(0.0, self.last.began_ms / 1000 + interval_s - now_ms / 1000), interval_s)

    def begun(self, logs: Iterable[int], now_ms: int) -> ScrubState:
        """The state in which a pass over these entry logs runs: the one that was interrupted, or a new one."""
        if self.present is not None:
            return self
        numbers = sorted(logs)
        first, last = (numbers[0], numbers[-1]) if numbers else (0, -1)
        return ScrubState(ScrubPass(now_ms, first, first, last), self.last)

    def with_damage(self, found: Sequence[Damage]) -> ScrubState:
        """The state with these findings of the present pass."""
        assert self.present is not None, "a pass runs"
        present = replace(self.present, damaged=self.present.damaged + sum(damage.count for damage in found))
        return replace(self, present=present, damage=(*self.damage, *found)[:DAMAGE_KEPT])

    def with_index_fault(self) -> ScrubState:
        """The state after rows of the index could not be read."""
        assert self.present is not None, "a pass runs"
        return replace(self, present=replace(self.present, index_faults=self.present.index_faults + 1))

    def with_bytes(self, entries: int, size_bytes: int) -> ScrubState:
        """The state after this much more was read."""
        assert self.present is not None, "a pass runs"
        present = self.present
        return replace(self, present=replace(present, entries=present.entries + entries, size_bytes=present.size_bytes + size_bytes))

    def with_log_read(self, log: int) -> ScrubState:
        """The state after an entry log was read to its end."""
        assert self.present is not None, "a pass runs"
        return replace(self, present=replace(self.present, next_log=log + 1))

    def ended(self, now_ms: int) -> ScrubState:
        """The state after the present pass."""
        assert self.present is not None, "a pass runs"
        return replace(self, present=None, last=replace(self.present, ended_ms=now_ms))

    def next_log(self, logs: Iterable[int]) -> int | None:
        """The entry log that the present pass reads next; None at its end."""
        assert self.present is not None, "a pass runs"
        first, last = self.present.next_log, self.present.last_log
        return min((log for log in logs if first <= log <= last), default=None)


@dataclass(frozen=True, slots=True)
class ScrubPace:
    """The limits of the scrubber.

    Args:
        bytes_per_s: maximum rate of reading.
        share_of_time: maximum share of the time in which it reads and checks.
    """

    bytes_per_s: int
    share_of_time: float

    def pause_s(self, size_bytes: int, busy_s: float) -> float:
        """Seconds to wait after a portion of this size that took `busy_s`."""
        return max(size_bytes / self.bytes_per_s, busy_s / self.share_of_time) - busy_s if size_bytes or busy_s > 0 else 0.0


def promised_damage(metadata: LedgerMetadata, bookie_id: str, damage: Iterable[Damage]) -> list[Damage]:
    """The damaged entries that the metadata promise on this bookie, by ascending entry ids as given."""
    found: list[Damage] = []
    for each in damage:
        start: int | None = None
        for entry_id in range(each.first, each.last + 1):
            promised = _is_promised(metadata, bookie_id, entry_id)
            if promised and start is None:
                start = entry_id
            if start is not None and (not promised or entry_id == each.last):
                found.append(replace(each, first=start, last=entry_id if promised else entry_id - 1))
                start = None
    return found


def _is_promised(metadata: LedgerMetadata, bookie_id: str, entry_id: int) -> bool:
    if metadata.is_closed and entry_id > metadata.last_entry_id:
        return False
    ensemble = metadata.ensemble_of(entry_id)
    return bookie_id in [ensemble[position] for position in write_set(entry_id, len(ensemble), metadata.write_quorum)]


def encode_scrub_state(state: ScrubState) -> bytes:
    """The file's bytes."""
    return json.dumps({"v": SCRUB_FORMAT, **asdict(state)}, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def decode_scrub_state(data: bytes) -> ScrubState:
    """Raises FormatError: the file is damaged, or was written by a newer release."""
    try:
        fields = json.loads(data)
        if fields["v"] != SCRUB_FORMAT:
            raise FormatError(f"the scrubber's state has format {fields['v']}, this release knows {SCRUB_FORMAT}")
        passes = [None if fields[name] is None else ScrubPass(**fields[name]) for name in ("present", "last")]
        return ScrubState(passes[0], passes[1], tuple(Damage(**damage) for damage in fields["damage"]))
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"not a scrubber's state: {error!r}") from error
