"""The tree that is read from a statement, written here as nested brackets."""

from __future__ import annotations

import dataclasses

import pytest

from triplicate.errors import SqlError
from triplicate.sql.core.lexer import tokenize
from triplicate.sql.pg.syntax import nodes
from triplicate.sql.pg.syntax.statement_parser import StatementParser, parse

_HIDDEN = (
    "start",
    "end",
    "oid",
    "as_oid",
    "as_modifiers",
    "width",
    "is_stored",
    "enclosed",
    "at",
    "arguments_end",
    "spans",
    "is_plain",
    "quoted",
)


def shown(part: object) -> str:
    if isinstance(part, nodes.Name):
        return ".".join(part.parts)
    if isinstance(part, nodes.TypeName):
        return part.name + (str(list(part.modifiers)) if part.modifiers else "") + "[]" * part.dimensions
    if isinstance(part, nodes.Literal):
        return repr(part.value) if part.kind == "string" else part.value
    if isinstance(part, nodes.Parameter):
        return f"${part.number}"
    if isinstance(part, nodes.ColumnRef):
        return shown(part.name)
    if isinstance(part, nodes.Binary):
        return f"({shown(part.left)} {part.operator} {shown(part.right)})"
    if isinstance(part, nodes.Logical):
        return "(" + f" {part.operator} ".join(map(shown, part.operands)) + ")"
    if isinstance(part, nodes.Unary):
        return f"({part.operator} {shown(part.operand)})"
    if isinstance(part, nodes.Cast):
        return f"({shown(part.operand)})::{shown(part.type)}"
    if isinstance(part, list | tuple):
        return "[" + " ".join(map(shown, part)) + "]"
    if not isinstance(part, nodes.SyntaxNode):
        return str(part)
    fields = [(field.name, getattr(part, field.name)) for field in dataclasses.fields(part) if field.name not in _HIDDEN]
    return (
        type(part).__name__
        + "("
        + ", ".join(f"{name}={shown(value)}" for name, value in fields if value not in (None, [], (), False, ""))
        + ")"
    )


def expression(text: str) -> nodes.Expression:
    parser = StatementParser(tokenize(text), len(text))
    found = parser.expression()
    assert parser.token.kind == "end", f"read to its end, not to {parser.token.text!r}"
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$2::int + -1::int ^ 2", "(($2)::int + ((- (1)::int) ^ 2))"),
        ("a || b + 1", "(a || (b + 1))"),
        ("not a = b and c or d", "(((NOT (a = b)) AND c) OR d)"),
        ("a = b in (1)", "(a = In(operand=b, items=[1]))"),
        ("a < b is null", "IsTest(operand=(a < b), test=NULL)"),
        ("a -> 'b' ->> 'c' = 'd'", "(((a -> 'b') ->> 'c') = 'd')"),
        ("~ a + b", "(~ (a + b))"),
        ("- a * b % c", "(((- a) * b) % c)"),
        ("a like b || 'c' escape '!'", "Like(operand=a, pattern=(b || 'c'), kind=LIKE, escape='!')"),
        ("a not ilike b and c", "(Like(operand=a, pattern=b, kind=ILIKE, negated=True) AND c)"),
        ("a between 1 and 2 and b", "(Between(operand=a, low=1, high=2) AND b)"),
        ("a is not distinct from b + 1", "IsTest(operand=a, test=DISTINCT, negated=True, other=(b + 1))"),
        ("a isnull or b not null", "(IsTest(operand=a, test=NULL) OR IsTest(operand=b, test=NULL, negated=True))"),
        ("x = any($1::int[])", "Quantified(left=x, operator==, quantifier=ANY, right=($1)::int[])"),
        (
            "x <> all (select 1)",
            "Quantified(left=x, operator=<>, quantifier=ALL, query=QueryExpression(body=Select(items=[SelectItem(expression=1)])))",
        ),
        ("cast(a as numeric(10, 2))", "(a)::numeric[10, 2]"),
        ("date '2024-01-05'", "('2024-01-05')::date"),
        ("timestamp(3) with time zone 'x'", "('x')::timestamptz[3]"),
        ("a::double precision::character varying(3)", "((a)::double precision)::character varying[3]"),
        ("a at time zone 'UTC' = b", "(AtTimeZone(operand=a, zone='UTC') = b)"),
        ('a collate "C" < b', "(Collate(operand=a, collation=C) < b)"),
        ("case when a then 1 else b end", "Case(branches=[[a 1]], otherwise=b)"),
        ("(a, b) = row(1, 2)", "(RowConstructor(items=[a b]) = RowConstructor(items=[1 2], is_explicit=True))"),
        ("array[1, 2]", "ArrayConstructor(items=[1 2])"),
        ("extract(year from a)", "Call(name=extract, arguments=['year' a], words=[FROM])"),
        ("substring(a from 1 for 2)", "Call(name=substring, arguments=[a 1 2], words=[FROM FOR])"),
        ("position('a' in b)", "Call(name=position, arguments=['a' b], words=[IN])"),
        ("trim(both 'x' from a)", "Call(name=trim, arguments=['x' a], words=[BOTH FROM])"),
        ("count(distinct a) filter (where b)", "Call(name=count, arguments=[a], is_distinct=True, filter=b)"),
        ("now() - current_date", "(CurrentTime(name=now) - CurrentTime(name=current_date))"),
        (
            "sum(a) over (partition by b order by c rows 1 preceding)",
            "Call(name=sum, arguments=[a], window=WindowDefinition(partition=[b], order=[Sort(expression=c)]), is_window=True)",
        ),
        ("x operator(pg_catalog.~) 'a'", "(x ~ 'a')"),
        ("((select 1) + 2)", "(Subquery(query=QueryExpression(body=Select(items=[SelectItem(expression=1)]))) + 2)"),
        ('"A"."b".C', "A.b.c"),
        ("a[1]", "Subscript(operand=a, index=1)"),
    ],
)
def test_operators_bind_as_in_postgresql(text: str, expected: str) -> None:
    assert shown(expression(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "select * from t a, lateral (select 1) b left join c on a.x = c.x where x order by 1 desc nulls last limit all offset 5 rows",
        "insert into t as q (a, b) overriding system value values (default, $1) on conflict (a) where b > 1 do update set (a, b) = (1, 2)",
        "insert into t default values",
        "insert or replace into t values (1) on conflict do nothing",
        "with recursive x(a) as not materialized (values (1) union all select a + 1 from x) select x.* from x group by a having a > 1",
        "update only t set a = b.x from (values (1)) b(x) where t.a = b.x returning t.a as z",
        "delete from t using u where u.a = t.a",
        "((select 1) union select 2) order by 1 fetch first 3 rows only",
        "select [a b], `c` from t indexed by i limit 3, 4",
        "select from t for update of t skip locked",
        "select a from generate_series(1, 2) with ordinality g(a, b)",
    ],
)
def test_statements_of_both_dialects_are_read(text: str) -> None:
    found = parse(tokenize(text), len(text))
    assert found is not None
    assert (found.start, found.end) == (0, len(text))


@pytest.mark.parametrize(
    "text",
    [
        "pragma user_version",
        "select a b c",
        "create table t(a)",
        "select * from t where",
        "insert into t values (1",
        "select 1 2",
        "delete from t limit 1",
        "",
    ],
)
def test_what_is_not_of_the_grammar_is_left_alone(text: str) -> None:
    assert parse(tokenize(text), len(text)) is None


@pytest.mark.parametrize(
    "text",
    [
        "1 < 2 = true", "a = b = c", "a <> b >= c", "not a = b < c", "a is distinct from b is null", "a like b like c",
        "a between 1 and 2 between 3 and 4", "a between 1 and 2 in (true)", "a like b not in (c)", "a in ()", "a not in ()",
    ],
)  # fmt: skip
def test_what_is_a_mistake_in_postgresql_is_one_here(text: str) -> None:
    with pytest.raises(SqlError, match="syntax error at or near") as refused:
        expression(text)
    assert refused.value.sqlstate == "42601"


@pytest.mark.parametrize(
    "text",
    ["(1 < 2) = true", "true = (1 < 2)", "a is null is null", "a in (1) in (true)", "a = b is null", "a like b = c", "a = b and c = d",
     "(a like b) like c", "a is null = true", "a = any(array[1]) = true"],
)  # fmt: skip
def test_operators_in_brackets_and_behind_whole_ones_may_follow(text: str) -> None:
    assert expression(text) is not None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("merge into t using s on true when matched then delete", "MERGE"),
        ("with x as (select 1) merge into t using x on true when matched then delete", "MERGE"),
        ("table t", "TABLE"),
        ("(table t)", "TABLE"),
        ("select 1 union table t", "TABLE"),
        ("select (table t)", "TABLE"),
        ("insert into t table s", "TABLE"),
        ("with x as (table t) select 1", "TABLE"),
    ],
)
def test_merge_and_table_are_refused_by_name(text: str, name: str) -> None:
    with pytest.raises(SqlError, match=f"^{name} ") as refused:
        parse(tokenize(text), len(text))
    assert refused.value.sqlstate == "0A000"


def test_too_deep_and_too_long_a_statement_is_refused() -> None:
    for text in (
        "select " + "(" * 500 + "1" + ")" * 500,
        "select " + "+".join("1" for _ in range(500)),
        "select " + "-" + " - " * 500 + "1",
    ):
        with pytest.raises(SqlError) as refused:
            parse(tokenize(text), len(text))
        assert refused.value.sqlstate == "54001"


def test_long_lists_and_conditions_are_read() -> None:
    text = "select * from t where a in (" + ",".join("1" for _ in range(2000)) + ") and " + " or ".join("b = 1" for _ in range(2000))
    assert parse(tokenize(text), len(text)) is not None


def _all_nodes(node: nodes.SyntaxNode) -> list[nodes.SyntaxNode]:
    return [node, *(inner for child in node.children() for inner in _all_nodes(child))]


def test_every_part_lies_within_its_parent_and_behind_the_part_before_it() -> None:
    text = (
        "with c as (select 1 a) insert into t(a) select (a + $1)::int, case a when 1 then 2 else 3 end, count(*) filter (where a > 1) "
        "from t x join (select 2) y on x.a = any($2) where a between 1 and 2 and b like 'x' escape 'y' group by a having max(a) > 1 "
        "order by a desc limit 1 offset 2 on conflict (a) do update set a = 1 where t.a > 1 returning a || 'x', array[1, 2]"
    )
    found = parse(tokenize(text), len(text))
    assert found is not None
    for node in _all_nodes(found):
        at = node.start
        for child in node.children():
            assert at <= child.start <= child.end <= node.end, f"{shown(child)} in {shown(node)}"
            at = child.end


@pytest.mark.parametrize("call", ["nosuch.upper('a')", "nosuch.now()", "1::nosuch.int4", "cast('a' as nosuch.text)", "db.nosuch.f(1)"])
def test_a_function_or_type_of_another_schema_is_refused(call: str) -> None:
    with pytest.raises(SqlError, match='schema "nosuch" does not exist') as refused:
        parse(tokenize(f"select {call}"), len(f"select {call}"))
    assert refused.value.sqlstate == "3F000"
