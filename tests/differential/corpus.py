"""The corpus: files of scenarios of statements, each with a mark for how its answer relates to PostgreSQL's. Pure.

A scenario begins with ``== title`` and runs in order on an empty schema. A statement ends with ``;`` at the end of a line, or with
``; -- remarks``. Remarks, divided by `` / ``:

- ``with TYPE VALUE, …``: parameters; TYPE may be ``?``: the server infers the type. VALUE is a JSON scalar.
- ``documented ID``: the answer differs, for the reason in the row ID of the table in docs/sql.md.
- ``refused WORD``: refused here, answered by PostgreSQL; the message names WORD.
- ``fault``: the answer differs, and should not.

Without a mark both servers give the same answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "corpus"
_END = re.compile(r";(?:\s+-- (?P<remarks>.*))?$")
_MARK = re.compile(r"(?P<kind>documented|refused|fault)(?: (?P<detail>.+))?")
_PARAMETER = re.compile(r"(?P<type>\?|[a-z]\w*) (?P<value>.+)")
_COMMA = re.compile(r', (?=(?:\?|[a-z]\w*) (?:"|-|\d|null|true|false))')


@dataclass(frozen=True, slots=True)
class Parameter:
    """`type` is PostgreSQL's name of the type, or ``?`` if the server infers it; `value` is the text form, None is NULL."""

    type: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Statement:
    """`mark` is ``""``, ``documented``, ``refused`` or ``fault``; `detail` the id or the word that goes with it."""

    text: str
    place: str
    """File and line."""
    parameters: tuple[Parameter, ...] = ()
    mark: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Scenario:
    title: str
    place: str
    statements: tuple[Statement, ...]


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.sql"))


def read_file(path: Path) -> list[Scenario]:
    return parse(path.read_text(encoding="utf-8"), path.name)


def parse(text: str, name: str) -> list[Scenario]:
    """All scenarios of a file.

    Raises:
        ValueError: a line that cannot be read; the message names file and line.
    """
    scenarios: list[Scenario] = []
    title, begun, statements = "", 0, list[Statement]()
    for number, kind, content in _pieces(text, name):
        if kind == "statement":
            if not title:
                raise ValueError(f"{name}:{number}: a statement before the first scenario")
            statements.append(_statement(content, f"{name}:{number}"))
            continue
        if title:
            scenarios.append(Scenario(title, f"{name}:{begun}", tuple(statements)))
        title, begun, statements = content, number, []
    if title:
        scenarios.append(Scenario(title, f"{name}:{begun}", tuple(statements)))
    return scenarios


def _pieces(text: str, name: str) -> Iterator[tuple[int, str, str]]:
    """Titles and whole statements, each with the line where it begins."""
    begun, lines = 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        if not lines and (not line.strip() or line.startswith("-- ")):
            continue
        if not lines and line.startswith("== "):
            yield number, "title", line[3:].strip()
            continue
        begun = begun if lines else number
        lines.append(line)
        if _END.search(line):
            yield begun, "statement", "\n".join(lines)
            lines = []
    if lines:
        raise ValueError(f"{name}:{begun}: the statement does not end")


def _statement(content: str, place: str) -> Statement:
    end = _END.search(content)
    assert end is not None
    parameters: tuple[Parameter, ...] = ()
    mark, detail = "", ""
    for remark in (end["remarks"] or "").split(" / "):
        if remark.startswith("with "):
            parameters = tuple(_parameter(one, place) for one in _COMMA.split(remark.removeprefix("with ")))
        elif remark.strip():
            found = _MARK.fullmatch(remark.strip())
            if found is None or mark or (found["detail"] is None) != (found["kind"] == "fault"):
                raise ValueError(f"{place}: the remark {remark!r} cannot be read")
            mark, detail = found["kind"], found["detail"] or ""
    return Statement(content[: end.start()], place, parameters, mark, detail)


def _parameter(text: str, place: str) -> Parameter:
    found = _PARAMETER.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{place}: the parameter {text!r} cannot be read")
    value = json.loads(found["value"])
    if value is None or isinstance(value, str):
        return Parameter(found["type"], value)
    return Parameter(found["type"], json.dumps(value))
