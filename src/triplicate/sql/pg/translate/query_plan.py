"""SQLite's query plan in the words and the form of PostgreSQL's EXPLAIN. Pure.

SQLite says which tables are read in which order, by which index, and where rows are sorted. It says neither costs nor the conditions that
rows are filtered by, so these are missing. Sources: SQLite documentation, "EXPLAIN QUERY PLAN"; PostgreSQL 15, the output of EXPLAIN.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from triplicate.sql.core.lexer import Statement

_SCAN = re.compile(r"(?:SCAN|SEARCH) (?P<table>.+?)(?: USING (?P<covering>COVERING )?INDEX (?P<index>\S+))?(?P<left> LEFT-JOIN)?")
_SEARCH = re.compile(
    r"SEARCH (?P<table>.+?) USING (?:(?P<rowid>INTEGER PRIMARY KEY|PRIMARY KEY)"
    r"|(?P<automatic>AUTOMATIC )?(?:PARTIAL )?(?P<covering>COVERING )?INDEX ?(?P<index>[^\s(]+)?)"
    r" ?\((?P<condition>.*)\)(?P<left> LEFT-JOIN)?"
)
_VIRTUAL = re.compile(r"SCAN (?P<table>.+?) VIRTUAL TABLE INDEX .*?(?P<left> LEFT-JOIN)?")
_VALUES = re.compile(r"SCAN \d+[- ](?:ROW VALUES CLAUSE|CONSTANT ROWS?)")
_BTREE = re.compile(r"USE TEMP B-TREE FOR (?P<use>.+)")
_SUBQUERY = re.compile(r"(?:(?P<correlated>CORRELATED )?(?P<kind>SCALAR|LIST) SUBQUERY|SUBQUERY) (?P<number>\d+)")
_MADE = re.compile(r"(?:CO-ROUTINE|MATERIALIZE) (?P<name>.+)")
_COMPARISON = re.compile(r"(.+?)(<>|<=|>=|=|<|>)(.*)")
_SETS = {
    "UNION ALL": "Append",
    "UNION": "HashAggregate",
    "EXCEPT": "SetOp Except",
    "INTERSECT": "SetOp Intersect",
}
_RECURSION = ("SETUP", "RECURSIVE STEP")
_CHANGES = {"INSERT": "Insert", "UPDATE": "Update", "DELETE": "Delete"}
_WHERE_ENDS = ("GROUP", "ORDER", "LIMIT", "HAVING", "WINDOW", "UNION", "EXCEPT", "INTERSECT", "OFFSET", "FETCH", "FOR", "RETURNING")


class PlanRow(NamedTuple):
    """One row of SQLite's EXPLAIN QUERY PLAN."""

    number: int
    parent: int
    detail: str


@dataclass(slots=True)
class PlanNode:
    """One node of the plan."""

    kind: str
    relation: str = ""
    index: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    children: list[PlanNode] = field(default_factory=list)
    subplans: list[tuple[str, PlanNode]] = field(default_factory=list)
    """Title and plan of each query within an expression, or in WITH."""

    @property
    def title(self) -> str:
        using = f" using {self.index}" if self.index else ""
        return f"{self.kind}{using} on {self.relation}" if self.relation else self.kind


class Execution(NamedTuple):
    """A run of the statement."""

    seconds: float
    rows: int
    planning_s: float


def plan_tree(rows: Iterable[PlanRow], statement: Statement) -> PlanNode:
    """The plan of a statement.

    Args:
        rows: SQLite's. statement: the client's.
    """
    children: dict[int, list[PlanRow]] = {}
    made: set[str] = set()
    for row in rows:
        children.setdefault(row.parent, []).append(row)
        if (match := _MADE.fullmatch(row.detail)) is not None:
            made.add(match["name"])
    plan = _query(children, 0)
    _name_scans(plan, made)
    if plan.kind == "Seq Scan" and not plan.subplans:
        where = _where(statement)
        if where:
            plan.properties["Filter"] = f"({where})"
    change = _CHANGES.get(_main_word(statement))
    return plan if change is None else _change(change, statement, plan)


def _name_scans(plan: PlanNode, made: set[str]) -> None:
    """Name the scans of queries that stand in WITH or FROM."""
    if plan.kind == "Seq Scan" and plan.relation in made:
        plan.kind = "CTE Scan"
    for child in (*plan.children, *(subplan for _, subplan in plan.subplans)):
        _name_scans(child, made)


def _change(kind: str, statement: Statement, plan: PlanNode) -> PlanNode:
    tokens = statement.tokens
    word = {"Insert": "INTO", "Update": "UPDATE", "Delete": "FROM"}[kind]
    at = next((index for index, token in enumerate(tokens) if token.upper == word), len(tokens))
    name = tokens[at + 1].name if at + 1 < len(tokens) else None
    return PlanNode(kind, name or "", children=[plan])


def _main_word(statement: Statement) -> str:
    """The first word of the statement after WITH."""
    depth = 0
    for token in statement.tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.upper in (*_CHANGES, "SELECT", "VALUES"):
            return token.upper
    return ""


def _where(statement: Statement) -> str:
    """The text of the statement's own WHERE; empty without one."""
    depth, start, end = 0, -1, len(statement.sql)
    for token in statement.tokens:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.upper == "WHERE" and start < 0:
            start = token.end
        elif depth == 0 and start >= 0 and token.upper in _WHERE_ENDS:
            end = token.start
            break
    return statement.sql[start:end].strip() if start >= 0 else ""


def _query(children: dict[int, list[PlanRow]], parent: int) -> PlanNode:
    """The plan of one query: its tables in the order in which they are joined, beneath what is done with the rows."""
    plan: PlanNode | None = None
    subplans: list[tuple[str, PlanNode]] = []
    wrappers: list[str] = []
    rows = children.get(parent, ())
    steps = [_query(children, row.number) for row in rows if row.detail in _RECURSION]
    if steps:
        return PlanNode("Recursive Union", children=steps)
    for row in rows:
        found = _row(children, row)
        if isinstance(found, str):
            if found:
                wrappers.append(found)
        elif isinstance(found, tuple):
            subplans.append(found)
        else:
            plan = found[0] if plan is None else _joined(plan, found[0], is_left=found[1])
    plan = plan or PlanNode("Result")
    for kind in wrappers:
        plan = PlanNode(kind, children=[plan])
    plan.subplans += subplans
    return plan


def _joined(outer: PlanNode, inner: PlanNode, *, is_left: bool) -> PlanNode:
    return PlanNode("Nested Loop Left Join" if is_left else "Nested Loop", children=[outer, inner])


def _row(children: dict[int, list[PlanRow]], row: PlanRow) -> list[Any] | tuple[str, PlanNode] | str:
    """A row as [node, whether it is the right side of a left join], as a subplan, or as the kind of a node above the query."""
    detail = row.detail
    if (match := _BTREE.fullmatch(detail)) is not None:
        return _above(match["use"])
    if (match := _SUBQUERY.fullmatch(detail)) is not None:
        title = "SubPlan" if match["correlated"] or match["kind"] == "LIST" else "InitPlan"
        return f"{title} {match['number']}", _query(children, row.number)
    if (match := _MADE.fullmatch(detail)) is not None:
        return f"CTE {match['name']}", _query(children, row.number)
    if detail.startswith(("COMPOUND QUERY", "MERGE (")):
        return [_compound(children, row), False]
    if detail == "MULTI-INDEX OR":
        parts = [_query(children, one.number) for one in children.get(row.number, ())]
        relation = next((part.relation for part in parts if part.relation), "")
        return [PlanNode("Bitmap Heap Scan", relation, children=[PlanNode("BitmapOr", children=parts)]), False]
    return _access(detail)


def _access(detail: str) -> list[Any] | str:
    """The reading of one table."""
    if detail == "SCAN CONSTANT ROW":
        return [PlanNode("Result"), False]
    if _VALUES.fullmatch(detail) is not None:
        return [PlanNode("Values Scan", '"*VALUES*"'), False]
    if (match := _VIRTUAL.fullmatch(detail)) is not None:
        return [PlanNode("Function Scan", match["table"]), bool(match["left"])]
    if (match := _SEARCH.fullmatch(detail)) is not None:
        index = match["index"] or (f"{match['table']}_pkey" if match["rowid"] else "automatic_index")
        kind = "Index Only Scan" if match["covering"] and not match["automatic"] else "Index Scan"
        return [PlanNode(kind, match["table"], index, {"Index Cond": _condition(match["condition"])}), bool(match["left"])]
    if (match := _SCAN.fullmatch(detail)) is not None:
        kind = "Seq Scan" if not match["index"] else "Index Only Scan" if match["covering"] else "Index Scan"
        return [PlanNode(kind, match["table"], match["index"] or ""), bool(match["left"])]
    return "" if detail.startswith("BLOOM FILTER") else detail.capitalize()


def _above(use: str) -> str:
    if use.startswith("GROUP BY"):
        return "GroupAggregate"
    if use.startswith("DISTINCT"):
        return "Unique"
    if "TERM" in use:
        return "Incremental Sort"
    return "Sort" if use.endswith("ORDER BY") else "Aggregate"


def _compound(children: dict[int, list[PlanRow]], row: PlanRow) -> PlanNode:
    kind, plans = "Append", list[PlanNode]()
    for one in children.get(row.number, ()):
        word = next((word for word in _SETS if one.detail.startswith(word)), "")
        kind = _SETS.get(word, kind)
        plans.append(_query(children, one.number))
    if row.detail.startswith("MERGE ("):
        kind = {**_SETS, "UNION ALL": "Merge Append"}.get(row.detail[len("MERGE (") : -1], "Merge Append")
    return PlanNode(kind, children=plans)


def _condition(text: str) -> str:
    """``a=? AND b>?`` as PostgreSQL writes it."""
    parts = [_COMPARISON.fullmatch(part) for part in text.split(" AND ")]
    shown = [f"({part[1]} {part[2]} {part[3]})" if part is not None else text for part in parts]
    return shown[0] if len(shown) == 1 else f"({' AND '.join(shown)})"


# The two formats.


def plan_lines(plan: PlanNode, execution: Execution | None) -> list[str]:
    """The plan as the lines of EXPLAIN."""
    actual = "" if execution is None else f" (actual time=0.000..{execution.seconds * 1000:.3f} rows={execution.rows} loops=1)"
    first, *others = _lines(plan, -1)
    lines = [first + actual, *others]
    if execution is not None:
        lines += [f"Planning Time: {execution.planning_s * 1000:.3f} ms", f"Execution Time: {execution.seconds * 1000:.3f} ms"]
    return lines


def _lines(node: PlanNode, at: int) -> Iterator[str]:
    """Args:
    at: column of the node's arrow; -1 for the root.
    """
    inner = 2 if at < 0 else at + 6
    yield node.title if at < 0 else f"{' ' * at}->  {node.title}"
    for name, value in node.properties.items():
        yield f"{' ' * inner}{name}: {value}"
    for title, plan in node.subplans:
        yield f"{' ' * inner}{title}"
        yield from _lines(plan, inner + 2)
    for child in node.children:
        yield from _lines(child, inner)


def plan_json(plan: PlanNode, execution: Execution | None) -> str:
    """The plan as EXPLAIN (FORMAT JSON) shows it."""
    top: dict[str, Any] = {"Plan": _json(plan)}
    if execution is not None:
        milliseconds = round(execution.seconds * 1000, 3)
        top["Plan"] |= {"Actual Total Time": milliseconds, "Actual Rows": execution.rows, "Actual Loops": 1}
        top |= {"Planning Time": round(execution.planning_s * 1000, 3), "Execution Time": milliseconds}
    return json.dumps([top], indent=2)


def _json(node: PlanNode, **more: str) -> dict[str, Any]:
    is_change = node.kind in _CHANGES.values()
    shown: dict[str, Any] = {"Node Type": "ModifyTable" if is_change else node.kind.replace(" Left Join", ""), **more}
    if is_change:
        shown["Operation"] = node.kind
    elif node.kind.endswith("Left Join"):
        shown["Join Type"] = "Left"
    if node.index:
        shown["Index Name"] = node.index
    if node.relation:
        shown["Relation Name"] = node.relation
    plans = [_json(child) for child in node.children]
    plans += [_json(plan, **{"Subplan Name": title}) for title, plan in node.subplans]
    return {**shown, **node.properties, **({"Plans": plans} if plans else {})}


def rows_of_plan(rows: Sequence[Sequence[Any]]) -> list[PlanRow]:
    """SQLite's rows: number, number of the parent, a number without a use, and the text."""
    return [PlanRow(int(number), int(parent), str(detail)) for number, parent, _, detail in rows]
