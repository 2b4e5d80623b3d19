"""Whether a prepared statement ends after a number of steps that does not depend on the tables' content. Pure.

SQLite compiles a statement to a program, which EXPLAIN shows. A program is bounded when each of its instructions is known, cheap, and runs
at most once. Loops over rows that the statement itself has made, for RETURNING, and over ``sqlite_sequence`` are bounded as well.

The limit of SQLite's progress handler does not serve this purpose: a change that it interrupts takes the whole transaction with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

MAX_INSTRUCTIONS = 400
"""Longer programs are not bounded: a list of many rows, or a table with many indexes."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STRAIGHT = _words(
    "Add AddImm Affinity And BitAnd BitOr BitNot Blob Cast Close CollSeq Column ColumnsUsed Compare Concat Copy CursorHint DeferredSeek"
    " Delete Divide Explain FinishSeek FkCheck FkCounter IdxDelete IdxInsert IdxRowid Insert Int64 IntCopy Integer IsTrue MakeRecord MemMax"
    " Move Multiply NewRowid Noop Not Null NullRow OpenEphemeral OpenRead OpenWrite Or Real RealAffinity ReleaseReg Remainder ReopenIdx"
    " ResetCount ResultRow RowData Rowid SCopy SeekHit Sequence ShiftLeft ShiftRight SoftNull String String8 Subtract Transaction TypeCheck"
    " Variable"
)
_JUMPS = _words(
    "ElseEq Eq FkIfZero Found Ge Goto Gt IdxGE IdxGT IdxLE IdxLT If IfEmpty IfNoHope IfNot IfNotZero IfNullRow IfPos Init IsNull IsType Le"
    " Lt MustBeInt Ne Next NoConflict NotExists NotFound NotNull Once Rewind SeekGE SeekGT SeekLE SeekLT SeekRowid"
)
"""Those that go on at their second parameter, or at the next instruction."""
_HALTS = _words("Halt HaltIfNull")
_ROLLBACK = 1
"""The parameter of a halt that ends the whole transaction, for OR ROLLBACK."""
_FILLS = _words("Insert IdxInsert")
_OPENS = _words("OpenEphemeral OpenRead OpenWrite ReopenIdx")
_CALLS = _words("Function PureFunc")
_FUNCTIONS = _words(
    "abs ceil ceiling changes coalesce date datetime floor hex ifnull iif instr json_valid julianday last_insert_rowid length lower ltrim"
    " max min mod nullif octet_length quote random round rtrim sign strftime substr substring time total_changes trim trunc typeof unicode"
    " unixepoch upper pg_current_xact_id triplicate_divisor triplicate_limit triplicate_single triplicate_stored_numeric"
    " triplicate_greatest triplicate_least triplicate_quotient triplicate_remainder triplicate_step triplicate_whole"
    " triplicate_round_even triplicate_numeric_abs triplicate_numeric_add triplicate_numeric_subtract triplicate_numeric_multiply"
    " triplicate_numeric_divide triplicate_numeric_order triplicate_numeric_text triplicate_numeric_round triplicate_numeric_trunc"
    " triplicate_numeric_ceil triplicate_numeric_floor triplicate_float_add triplicate_float_subtract triplicate_float_multiply"
    " triplicate_float_divide triplicate_date_part triplicate_date_trunc triplicate_date_add triplicate_date_difference"
    " triplicate_to_timestamp triplicate_substr triplicate_left triplicate_right triplicate_starts_with"
)
"""Functions whose cost is small for small arguments, and whose results are not much larger."""
_CASTS = "triplicate_to_"
_TO_NUMERIC = "triplicate_to_numeric"
"""It makes a number of 131,072 digits of a short text with an exponent."""


class Instruction(NamedTuple):
    """One row of EXPLAIN."""

    address: int
    opcode: str
    p1: int
    p2: int
    p3: int
    p4: Any
    p5: int
    comment: str | None


def is_bounded(program: Sequence[Instruction], small_roots: frozenset[int] = frozenset()) -> bool:
    """Whether each run of a program executes a bounded number of instructions, and leaves the transaction open.

    Args:
        program: all rows of EXPLAIN. Instructions of triggers follow those of the statement; the one that runs them is not among the cheap.
        small_roots: first pages of tables that are known to have few rows.
    """
    if len(program) > MAX_INSTRUCTIONS or not all(map(_is_cheap, program)):
        return False
    loops = frozenset(one.address for one in program if one.opcode == "Next" and _is_small_loop(one, program, small_roots))
    violates_keys = any(one.opcode == "FkCounter" and one.p1 == 0 and one.p2 > 0 for one in program)
    return not _has_cycle([_successors(one, loops, violates_keys=violates_keys) for one in program])


def _is_cheap(one: Instruction) -> bool:
    opcode = one.opcode
    if opcode in _CALLS:
        name = str(one.p4).partition("(")[0]
        return name in _FUNCTIONS or (name.startswith(_CASTS) and name != _TO_NUMERIC)
    if opcode in _HALTS:
        return one.p2 != _ROLLBACK
    return opcode in _STRAIGHT or opcode in _JUMPS


def _is_small_loop(end: Instruction, program: Sequence[Instruction], small_roots: frozenset[int]) -> bool:
    """Whether the loop that ends here is over few rows, holds no other loop, and does not fill what it reads."""
    body = program[end.p2 : end.address]
    if any((one.opcode in _JUMPS and one.p2 <= one.address) or (one.opcode in _FILLS and one.p1 == end.p1) for one in body):
        return False
    opened = [one for one in program if one.opcode in _OPENS and one.p1 == end.p1]
    if opened and all(one.opcode == "OpenEphemeral" for one in opened):
        return True
    # The loop over sqlite_sequence follows the opening of its cursor, whose number another table may have had before.
    before = [one for one in opened if one.address < end.address]
    return bool(before) and before[-1].opcode != "OpenEphemeral" and before[-1].p2 in small_roots


def _successors(one: Instruction, loops: frozenset[int], *, violates_keys: bool) -> tuple[int, ...]:
    """The addresses at which a program goes on after an instruction; without the way back of the loops."""
    following = one.address + 1
    if one.opcode == "Halt":
        return ()
    if one.opcode == "Goto":
        return (one.p2,)
    if one.opcode == "FkIfZero" and one.p1 == 0 and not violates_keys:
        return (one.p2,)  # No statement violates a foreign key and stays, so there is none whose repair must be looked for.
    # No program jumps to its first instruction: 0 stands for no jump.
    if one.opcode in _JUMPS and one.p2 != 0 and one.address not in loops:
        return (one.p2, following)
    return (following,)


def _has_cycle(successors: Sequence[tuple[int, ...]]) -> bool:
    """Whether an instruction that the program reaches from its first can run twice. An address beyond the program counts as one."""
    is_open: dict[int, bool] = {}
    """The instructions that were reached; True while their successors are followed."""
    path: list[tuple[int, int]] = [(0, 0)]
    while path:
        address, index = path.pop()
        if index == 0:
            if address >= len(successors):
                return True
            is_open[address] = True
        if index == len(successors[address]):
            is_open[address] = False
            continue
        path.append((address, index + 1))
        target = successors[address][index]
        if is_open.get(target):
            return True
        if target not in is_open:
            path.append((target, 0))
    return False
