"""The decisions about messages by their letters, in any order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplicate.errors import ProtocolError, SqlError
from triplicate.sql.pg.protocol.protocol_state import EXTENDED, TURN_COST, ProtocolState, Reception

SERVED, SKIPPED, LAST = Reception.SERVED, Reception.SKIPPED, Reception.LAST


@given(steps=st.lists(st.tuples(st.sampled_from([b"P", b"B", b"D", b"E", b"C", b"S", b"Q", b"H", b"F", b"d", b"p", b"X"]), st.booleans())))
def test_after_an_error_only_sync_and_terminate_are_not_skipped(steps: list[tuple[bytes, bool]]) -> None:
    state: ProtocolState[str, str] = ProtocolState()
    failed = False
    for letter, fails in steps:
        if letter == b"p" and not failed:
            with pytest.raises(ProtocolError):
                state.receive(letter)
            return
        failed = failed and letter not in (b"S", b"X")
        expected = SKIPPED if failed else LAST if letter == b"X" else SERVED
        assert state.receive(letter) is expected
        assert state.is_busy == (expected is SERVED)
        assert state.is_over == (letter == b"X")
        if expected is LAST:
            return
        if expected is SERVED:
            failed = fails and letter in EXTENDED
            if failed:
                state.fail_message()
            state.is_busy = False


@pytest.mark.parametrize("is_skipping", [False, True])
def test_an_unknown_letter_is_refused(is_skipping: bool) -> None:
    state: ProtocolState[str, str] = ProtocolState()
    state.is_skipping = is_skipping
    with pytest.raises(ProtocolError, match="unknown message type b'z'"):
        state.receive(b"z")


def test_a_cancel_ends_the_message_being_served_and_no_other() -> None:
    state: ProtocolState[str, str] = ProtocolState()
    state.cancel()
    assert not state.is_cancelled
    state.receive(b"Q")
    state.cancel()
    assert state.is_cancelled
    state.is_busy = False
    state.receive(b"Q")
    assert not state.is_cancelled


def test_messages_within_a_message_keep_its_cancel_and_count() -> None:
    state: ProtocolState[str, str] = ProtocolState()
    state.receive(b"Q")
    state.cancel()
    for _ in range(TURN_COST):
        state.receive_within(b"d")
    assert state.is_cancelled
    assert state.turn_cost >= TURN_COST
    assert not state.is_over
    state.receive_within(b"X")
    assert state.is_over


@given(letters=st.lists(st.sampled_from([b"P", b"B", b"E", b"S", b"Q", b"d"]), min_size=TURN_COST, max_size=TURN_COST))
def test_no_turn_is_longer_than_its_limit_of_messages(letters: list[bytes]) -> None:
    state: ProtocolState[str, str] = ProtocolState()
    for letter in letters:
        state.receive(letter)
    assert state.turn_cost >= TURN_COST
    state.begin_turn()
    assert state.turn_cost == 0


def test_names_are_defined_once_and_found() -> None:
    state: ProtocolState[str, str] = ProtocolState(statements_max=2)
    state.check_new_statement("s")
    state.statements["s"] = "select 1"
    state.portals["p"] = "rows"
    assert (state.statement("s"), state.portal("p")) == ("select 1", "rows")
    for check, name, sqlstate in (
        (state.check_new_statement, "s", "42P05"),
        (state.check_new_portal, "p", "42P03"),
        (state.statement, "p", "26000"),
        (state.portal, "s", "34000"),
    ):
        with pytest.raises(SqlError) as caught:
            check(name)
        assert caught.value.sqlstate == sqlstate
    state.statements[""], state.portals[""] = "", ""
    for check in (state.check_new_statement, state.check_new_portal):
        with pytest.raises(SqlError) as caught:
            check("third")
        assert caught.value.sqlstate == "53400"
