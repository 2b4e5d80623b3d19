"""The records that a stream reads while it is killed and restarted, of a log that is appended to, truncated, deleted and made again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from triplicate.spark.cluster.progress import DataLoss, LogState, batch_begins, end_of_batch, resume
from triplicate.spark.core.log_options import log_read_options
from triplicate.spark.core.offsets import LogPosition, LogPositions, decode_positions, encode_positions

LOG = "events"
READ = log_read_options({"metadataserviceuri": "memory:", "log": LOG})
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.just("truncate"), st.integers(0, 5)),
        st.tuples(st.just("make again"), st.just(0)),
        st.tuples(st.sampled_from(["batch", "killed before its commit", "killed after its commit"]), st.integers(1, 6)),
    ),
    max_size=30,
)


class Model:
    """One log of many lives, and one stream with its checkpoint; a record is (life, offset)."""

    def __init__(self) -> None:
        self.life = 0
        self.first = self.end = 0
        self.committed: LogPositions | None = None
        """None: no batch was committed yet, and the stream begins at the earliest offset."""
        self.began: tuple[int, int] | None = None
        """Life and first offset of the log when the first batch was planned."""
        self.planned: LogPositions | None = None
        self.delivered: list[tuple[int, int]] = []
        self.batches: dict[str, list[tuple[int, int]]] = {}
        """The rows of each batch in the sink; a repeated batch adds nothing."""

    def state(self) -> dict[str, LogState]:
        return {LOG: LogState(f"life {self.life}", self.first, self.end)}

    def change(self, what: str, count: int) -> None:
        if what == "append":
            self.end += count
        elif what == "truncate":
            self.first = min(self.end, self.first + count)
        else:
            self.life, self.first, self.end = self.life + 1, 0, 0

    def batch(self, outcome: str, most: int) -> list[DataLoss]:
        """Run one batch; those that a killed stream had planned come first, as they were planned."""
        losses: list[DataLoss] = []
        first = self.committed is None
        start = self.committed or LogPositions({LOG: LogPosition(self.first, f"life {self.life}")})
        if self.planned is None:
            resumed, losses = resume(start, self.state(), READ)
            self.began = self.began or (self.life, self.first)
            ends = {LOG: min(self.end, resumed.logs[LOG].offset + most)}
            self.planned = decode_positions(encode_positions(end_of_batch(start, resumed, ends, first=first)))
        begins, more = batch_begins(start, self.planned, self.state())
        stop = self.planned.logs[LOG]
        records = [(self.life, offset) for offset in range(begins[LOG], stop.offset)] if LOG in begins else []
        if outcome != "killed before its commit":
            kept = self.batches.setdefault(str((self.committed, self.planned)), records)
            assert kept == records or losses or more, "a batch that is planned again is the same, or something was lost"
        if outcome == "batch":
            self.delivered += self.batches[str((self.committed, self.planned))]
            self.committed, self.planned = self.planned, None
        return losses + more


@settings(deadline=None)
@given(STEPS)
def test_without_a_reported_loss_every_record_is_delivered_once_and_in_order(steps: list[tuple[str, int]]) -> None:
    model = Model()
    for what, count in [*steps, ("batch", 1), ("batch", 1000)]:
        if what in ("append", "truncate", "make again"):
            model.change(what, count)
        elif model.batch(what, count):
            return  # The query ends with what happened.
    assert model.began is not None
    life, first = model.began
    assert model.life == life, "a stream knows when the log is another"
    assert model.delivered == [(life, offset) for offset in range(first, model.end)]


@settings(deadline=None)
@given(STEPS)
def test_where_loss_is_allowed_nothing_is_delivered_twice_and_what_is_there_is_delivered(steps: list[tuple[str, int]]) -> None:
    model = Model()
    for what, count in [*steps, ("batch", 1), ("batch", 1000)]:
        if what in ("append", "truncate", "make again"):
            model.change(what, count)
        else:
            model.batch(what, count)
    assert model.delivered == sorted(set(model.delivered))
    assert model.committed is not None
    assert model.committed.logs[LOG] == LogPosition(model.end, f"life {model.life}")
    assert {(model.life, offset) for offset in range(model.first, model.end)} <= set(model.delivered)
