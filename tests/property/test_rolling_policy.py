"""The plan of a writer's rolls under any sequence of sizes, times and failures."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.examples import examples
from triplicate.config.log_settings import LogSettings
from triplicate.log.core.head import Quorums
from triplicate.log.core.quorums import degraded_quorums, full_quorums, quorums_for, reduced_quorums
from triplicate.log.core.rolling_policy import CHECKED_S, HOLD_S, RollingPolicy, RollStep

ROLL_BYTES = 4096
AGE_S = 100.0
RETRY_S = 5.0
SPARE_S = 20.0


class Plan(RuleBasedStateMachine):
    """A writer that follows the plan, with a model of its state."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.plan = RollingPolicy(LogSettings(roll_size_bytes=ROLL_BYTES, roll_age_s=AGE_S), RETRY_S, SPARE_S)
        self.preparing: RollStep | None = None
        self.segment(reduced=False)

    def segment(self, *, reduced: bool) -> None:
        self.began, self.size, self.reduced = self.now, 0, reduced
        self.spare: tuple[float, bool] | None = None
        self.checked = -1e9
        self.held_s = 0.0
        self.plan.begin(self.now, reduced=reduced)

    def ask(self) -> RollStep:
        step = self.plan.step(self.now, self.size, has_records=self.size > 0)
        if step in (RollStep.PREPARE, RollStep.PREPARE_FULL):
            assert self.preparing is None, "one preparation at a time"
            assert step is RollStep.PREPARE or self.reduced, "only a reduced segment insists on all copies"
            self.preparing = step
            self.plan.preparing()
        if step is RollStep.ROLL:
            assert self.spare is not None, "no roll without a next ledger"
            assert self.now - self.spare[0] <= SPARE_S, "an old ledger may be swept"
            assert self.now - self.checked <= CHECKED_S, "the metadata must have answered"
            assert self.size >= ROLL_BYTES or self.now >= self.began + AGE_S or (self.reduced and self.spare[1])
            self.segment(reduced=not self.spare[1])
        return step

    @rule(size=st.integers(1, 2000))
    def append(self, size: int) -> None:
        if self.size >= self.plan.check_bytes(self.now) and self.ask() is RollStep.HOLD:
            return
        self.size += size

    @rule(seconds=st.sampled_from([0.0, 0.01, 0.3, 1.5, 6.0, 30.0, 120.0]))
    def wait(self, seconds: float) -> None:
        # A timer at each moment of the plan: no due action is missed.
        end = self.now + seconds
        while (moment := self.plan.check_at(self.now)) <= end:
            assert moment > self.now
            self.now = moment
            self.ask()
        self.now = end

    @precondition(lambda self: self.preparing is not None)
    @rule(full=st.booleans())
    def succeed(self, full: bool) -> None:
        if self.spare is None or self.now - self.spare[0] > SPARE_S or not self.spare[1]:
            self.spare = (self.now, full or self.preparing is RollStep.PREPARE_FULL)
        self.checked = self.now
        self.preparing = None
        self.plan.prepared(self.now, self.spare[0], full=self.spare[1])
        self.ask()

    @precondition(lambda self: self.preparing is not None)
    @rule(pause=st.sampled_from([0.1, 3.0]))
    def fail(self, pause: float) -> None:
        full = self.preparing is RollStep.PREPARE_FULL
        self.preparing = None
        self.plan.failed(self.now, pause, full=full)
        self.ask()

    @invariant()
    def a_hold_is_short(self) -> None:
        if self.preparing is not None and self.plan.step(self.now, self.size, has_records=True) is RollStep.HOLD:
            assert self.plan.check_at(self.now) <= self.now + HOLD_S

    @invariant()
    def a_segment_that_is_due_is_worked_on(self) -> None:
        if self.preparing is None and self.size >= ROLL_BYTES:
            assert self.plan.check_at(self.now) <= self.now + AGE_S


Plan.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
TestRolling = Plan.TestCase


@given(sizes=st.lists(st.integers(1, 9), min_size=3, max_size=3).map(sorted), writable=st.integers(0, 12))
def test_copies_never_fall_below_the_ack_quorum_and_the_ensemble_shrinks_first(sizes: list[int], writable: int) -> None:
    ack, write, ensemble = sizes
    log = LogSettings(ensemble_size=ensemble, write_quorum=write, ack_quorum=ack)
    copies = quorums_for(log, writable)
    if writable < ack:
        assert copies is None
        return
    assert copies is not None
    assert ack <= copies.write_quorum <= copies.ensemble_size <= min(writable, ensemble)
    assert copies.write_quorum == min(write, writable), "copies go only where bookies are too few for them"
    assert copies.ensemble_size == min(ensemble, writable)
    assert (reduced_quorums(log, copies) is None) == (copies == full_quorums(log))
    assert degraded_quorums(log) == (Quorums(ensemble, ack) if ack < write else None)
