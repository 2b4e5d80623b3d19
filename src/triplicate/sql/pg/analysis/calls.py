"""Functions: the types of their arguments and results, and their equivalents in SQLite. Pure.

A function that SQLite has with PostgreSQL's meaning keeps its name. Every other available function becomes one of our SQL functions
(`triplicate.sql.executor.scalars`) or an expression. Functions of PostgreSQL that are not available are refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplicate.errors import SqlError
from triplicate.sql.pg.analysis.type_resolution import TypeResolver, check_ordered, common_type
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.values import types
from triplicate.sql.pg.values.conversions import INTEGERS, MOMENTS, NUMBERS, SHOWN, TEXTS

_I, _F, _T, _B, _N, _Y = types.INT8, types.FLOAT8, types.TEXT, types.BOOL, types.NUMERIC, types.BYTEA
SAME = -1
"""The result has the common type of the arguments."""
FIRST = -2
"""The result has the first argument's type."""
OURS = "triplicate_"


@dataclass(frozen=True, slots=True)
class FunctionSignature:
    """A function's types. `arguments` are the types for constants and parameters; the last one applies to all further arguments."""

    result: int | None
    arguments: tuple[int, ...] = ()
    sqlite: str = ""
    """Its name in SQLite; empty if that is the same."""
    takes_text: bool = False
    """Whether booleans, floats and timestamps among the arguments become PostgreSQL's text of them."""


def _functions() -> dict[str, FunctionSignature]:
    functions: dict[str, FunctionSignature] = {}

    def add(names: str, result: int | None, *arguments: int, ours: bool = False, sqlite: str = "", takes_text: bool = False) -> None:
        for name in names.split():
            functions[name] = FunctionSignature(result, arguments, OURS + name if ours else sqlite, takes_text)

    add("count row_number rank dense_rank changes total_changes last_insert_rowid pg_current_xact_id txid_current pg_backend_pid", _I)
    add("unixepoch json_array_length random_int", _I)
    add("ntile", _I, _I)
    add("triplicate_position", _I)
    add("triplicate_read_node", _T)
    add("triplicate_read_age", _F)
    add("length octet_length instr unicode", _I, _T)
    add("char_length character_length", _I, _T, sqlite="length")
    add("strpos", _I, _T, sqlite="instr")
    add("ascii", _I, _T, ours=True)
    add("total julianday percent_rank cume_dist pi", _F)
    add("avg", _F)
    add("sin cos tan atan atan2 degrees radians log2", _F, _F)
    add("sqrt exp ln power pow log log10 asin acos", _F, _F, ours=True)
    add("lower upper replace ltrim rtrim trim", _T, _T)
    add("btrim", _T, _T, sqlite="trim")
    add("format", _T, _T, ours=True, takes_text=True)
    add("hex quote char printf typeof date time datetime strftime timediff json json_object json_array json_group_array", _T)
    add("json_group_object json_type sqlite_version version current_database current_schema pg_xact_status current_setting", _T)
    add("group_concat", _T)
    add("string_agg", _T, _T, takes_text=True)
    add("quote_literal", _T, _T, ours=True, takes_text=True)
    add("concat concat_ws", _T, _T, takes_text=True)
    add("initcap reverse md5", _T, _T, ours=True)
    add("left right repeat lpad rpad", _T, _T, _I, _T, ours=True)
    add("substr substring", _T, _T, _I, ours=True)
    add("split_part", _T, _T, _T, _I, ours=True)
    add("translate", _T, _T, ours=True)
    add("chr to_hex", _T, _I, ours=True)
    add("starts_with", _B, _T, ours=True)
    add("randomblob zeroblob unhex", _Y)
    add("pg_is_in_recovery pg_advisory_unlock_all", _B)
    add("bool_and every", _B, _B, sqlite="min")
    add("bool_or", _B, _B, sqlite="max")
    add("coalesce nullif ifnull greatest least", SAME)
    add("max min abs sum lag lead first_value last_value nth_value sign ceil ceiling floor", FIRST)
    add("trunc round", FIRST)
    add("mod", SAME)
    add("div", _N, _N)
    add("random", _F)
    add("gen_random_uuid uuid_generate_v4", types.UUID)
    add("to_timestamp", types.TIMESTAMPTZ, _F, ours=True)
    return functions


FUNCTIONS = _functions()
REFUSED = {
    "array_agg", "array_length", "array_position", "array_to_string", "string_to_array", "unnest", "cardinality", "array_append",
    "array_cat", "array_remove", "to_char", "to_date", "to_number", "age", "justify_days", "justify_hours", "make_date", "make_time",
    "make_timestamp", "make_interval", "regexp_replace", "regexp_match", "regexp_matches", "regexp_split_to_table",
    "regexp_split_to_array", "setseed", "overlay", "to_tsvector", "to_tsquery", "percentile_cont", "percentile_disc", "mode",
    "json_agg", "jsonb_agg", "json_build_object", "jsonb_build_object", "json_build_array", "jsonb_build_array", "to_json", "to_jsonb",
    "row_to_json", "jsonb_set", "jsonb_array_elements", "json_array_elements", "jsonb_each", "json_each_text", "jsonb_object_keys",
    "width_bucket", "quote_ident", "encode", "decode", "sha256", "nextval", "currval", "setval", "lastval",
    "timezone", "date_bin", "pg_sleep", "stddev", "variance", "stddev_pop", "stddev_samp", "var_pop", "var_samp",
}  # fmt: skip
"""Functions of PostgreSQL that are not available."""
VOLATILE = {"random", "random_int", "randomblob", "gen_random_uuid", "uuid_generate_v4"}
"""Functions with another result at each call."""
DATE_PARTS = ("extract", "date_part", "date_trunc")
AGGREGATES = {
    "count", "sum", "avg", "total", "min", "max", "group_concat", "string_agg", "bool_and", "bool_or", "every", "json_group_array",
    "json_group_object",
}  # fmt: skip
_OF_NUMBERS = {
    "sum", "avg", "abs", "sign", "ceil", "ceiling", "floor", "trunc", "round", "mod", "div", "sqrt", "exp", "ln", "power", "pow", "log",
    "log10", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "degrees", "radians",
}  # fmt: skip
_OF_INTEGERS = {"to_hex", "chr"}


def call_type(call: nodes.Call, typing: TypeResolver) -> int | None:
    """Determine the call's type, and the types of arguments that are constants and parameters.

    Raises:
        SqlError: 0A000 for a function that is not available, 42883 for arguments of types that it does not accept.
    """
    name = call.name.last
    if name in REFUSED:
        raise SqlError("0A000", f"function {name}() is not available", hint="docs/sql.md lists the functions that are.")
    if name in DATE_PARTS:
        return _date_part_type(call, typing)
    if name == "position":
        for argument in call.arguments:
            typing.resolve(argument, types.TEXT)
        return types.INT8
    function = FUNCTIONS.get(name)
    if function is None:
        return None
    if name == "substring" and len(call.arguments) > 1 and call.arguments[1].oid in (types.UNKNOWN, *TEXTS):
        raise SqlError(
            "0A000",
            "substring() with a pattern is not available",
            hint="Cast a position to an integer: substring(text FROM $1::int), or substr(text, $1).",
        )
    if name in ("round", "trunc") and len(call.arguments) == 2:
        typing.resolve(call.arguments[0], types.NUMERIC)
    for index, argument in enumerate(call.arguments):
        if function.arguments:
            typing.resolve(argument, function.arguments[min(index, len(function.arguments) - 1)])
    _check_numbers(name, call)
    if name in ("substr", "substring") and call.arguments and call.arguments[0].oid == types.BYTEA:
        return types.BYTEA
    if name == "avg" and call.arguments and call.arguments[0].oid in (*INTEGERS, types.NUMERIC):
        # A float would be rounded half to even.
        return types.NUMERIC
    match function.result:
        case -1:
            return _meeting_type(name, call, typing)
        case -2:
            return _first_type(name, call, typing)
    return function.result


def _check_numbers(name: str, call: nodes.Call) -> None:
    """Refuse text in place of a number, which SQLite would convert to its leading digits or 0. Raises SqlError 42883."""
    accepted = INTEGERS if name in _OF_INTEGERS else NUMBERS if name in _OF_NUMBERS else None
    if accepted is None:
        return
    for argument in call.arguments:
        if argument.oid in SHOWN and argument.oid != types.UNKNOWN and argument.oid not in (*accepted, types.OID):
            shown = ", ".join(SHOWN.get(other.oid or 0, "unknown") for other in call.arguments)
            raise SqlError("42883", f"function {name}({shown}) does not exist", hint="Cast the argument to a number: value::int.")


def _meeting_type(name: str, call: nodes.Call, typing: TypeResolver) -> int | None:
    oids = {argument.oid for argument in call.arguments}
    if name == "nullif" and len(oids & set(MOMENTS)) > 1 and common_type(oids) is not None:
        raise SqlError("0A000", "nullif() of a date and a timestamp is not available", hint="Cast both to one type: value::timestamp.")
    if name in ("greatest", "least"):
        check_ordered(*oids)
    return typing.unify(call.arguments, is_result=True)


def _first_type(name: str, call: nodes.Call, typing: TypeResolver) -> int | None:
    if not call.arguments:
        return None
    if name in ("max", "min"):
        if [argument.oid for argument in call.arguments] == [types.JSONB]:
            raise SqlError("42883", f"function {name}(jsonb) does not exist", hint="Cast the argument: value::text.")
        check_ordered(*[argument.oid for argument in call.arguments])
    if name in ("max", "min") and len(call.arguments) > 1:
        return typing.unify(call.arguments, is_result=True)
    for argument in call.arguments[1:]:
        typing.resolve(argument, types.INT8)
    first = call.arguments[0].oid
    if first == types.UNKNOWN:
        typing.resolve(call.arguments[0], types.TEXT if name in ("max", "min", "lag", "lead") else types.FLOAT8)
        return call.arguments[0].oid
    if name in ("sum", "abs") and first in INTEGERS:
        return types.INT8
    if name in ("trunc", "round") and len(call.arguments) > 1:
        return types.NUMERIC
    if name in ("ceil", "ceiling", "floor", "trunc", "round", "sign") and first in INTEGERS:
        return types.FLOAT8
    return first


def _date_part_type(call: nodes.Call, typing: TypeResolver) -> int | None:
    if len(call.arguments) != 2 or not isinstance(call.arguments[0], nodes.Literal):
        raise SqlError("0A000", f"{call.name.last}() requires the name of a field as a constant")
    field, moment = call.arguments
    field.oid = types.TEXT
    if moment.oid == types.UNKNOWN:
        typing.resolve(moment, types.TIMESTAMPTZ if call.name.last == "date_trunc" else types.TIMESTAMP)
    if moment.oid is not None and moment.oid not in (types.DATE, types.TIME, types.TIMESTAMP, types.TIMESTAMPTZ):
        raise SqlError("42883", f"function {call.name.last}() requires a date, a time or a timestamp", hint="Cast it: value::timestamp.")
    if call.name.last == "date_trunc":
        return types.TIMESTAMPTZ if moment.oid in (types.DATE, types.TIMESTAMPTZ) else moment.oid
    return types.FLOAT8 if call.name.last == "date_part" else types.NUMERIC
