"""Each rule reports its offending snippet and lets the lawful one beside it pass.

These are rows of `make mutants` as well: the rule is the test, the snippet the broken code.
"""

from __future__ import annotations

import re

import pytest

from tests.house import rules
from tests.house.source import Source

EXPORTS = {
    room: frozenset({"Client", "Logs", "MetadataTree", "Host", "encode_request", "Entry", "connect"})
    for room in ("client", "log", "metadata", "runtime", "wire", "ledger", "bookie", "sql", "blocking", "")
}
LATER = "".join(["TO", "DO"])
FILLER = "    x = 1\n"

OFFENDING: list[tuple[str, str, str, str]] = [
    ("sqlite_is_that_of_apsw", "metadata/a.py", "import sqlite3", r"imports sqlite3; use apsw"),
    ("pure_rooms_touch_nothing_outside", "ledger/a.py", "import time", r"imports time"),
    ("pure_rooms_touch_nothing_outside", "wire/a.py", "def f():\n    from os import path", r"imports os"),
    ("pure_rooms_touch_nothing_outside", "bookie/core/a.py", "import asyncio.events", r"imports asyncio"),
    ("pure_code_stands_on_pure_code", "log/core/a.py", "from triplicate.runtime import Host", r"triplicate\.runtime"),
    ("pure_code_stands_on_pure_code", "log/core/a.py", "from ..writer import X", r"triplicate\.log\.writer"),
    ("imports_go_down_only", "client/a.py", "from triplicate.log import Logs", r"client imports log"),
    ("imports_go_down_only", "client/a.py", "from ..bookie import Bookie", r"client imports bookie"),
    ("imports_go_down_only", "ledger/a.py", "def f():\n    import triplicate.wire", r"ledger imports wire"),
    ("imports_go_down_only", "client/a.py", "from triplicate import connect", r"client imports triplicate"),
    ("imports_go_down_only", "attic/a.py", "x = 1", r"attic is not in the table"),
    (
        "rooms_meet_at_the_door",
        "log/a.py",
        "from triplicate.client.write.ledger_writer import LedgerWriter",
        r"imports triplicate\.client\.write\.ledger_writer",
    ),
    ("rooms_meet_at_the_door", "log/a.py", "from ..client import _Pool", r"_Pool is internal to client"),
    ("rooms_meet_at_the_door", "log/a.py", "from triplicate import client", r"imports triplicate\.client;"),
    ("tasks_are_made_in_runtime", "client/a.py", "asyncio.create_task(f())", r"calls create_task"),
    ("tasks_are_made_in_runtime", "bookie/a.py", "t = asyncio.ensure_future(f())", r"calls ensure_future"),
    ("tasks_are_made_in_runtime", "log/a.py", "group = asyncio.TaskGroup()", r"calls TaskGroup"),
    ("the_outside_is_behind_ports", "client/a.py", "import time", r"imports time"),
    ("the_outside_is_behind_ports", "bookie/a.py", "import threading\nthreading.Thread(target=f).start()", r"imports threading"),
    ("the_outside_is_behind_ports", "bookie/a.py", "import random\nx = random.random()", r"imports random"),
    ("the_outside_is_behind_ports", "metadata/a.py", "async def f():\n    await asyncio.to_thread(g)", r"calls to_thread"),
    ("queues_have_a_limit", "client/a.py", "q = asyncio.Queue()", r"without a limit"),
    ("queues_have_a_limit", "sql/a.py", "q = queue.Queue(maxsize=0)", r"without a limit"),
    ("futures_are_resolved_in_one_way", "client/a.py", "if not future.done():\n    future.set_result(1)", r"set_result raises"),
    ("futures_are_resolved_in_one_way", "simulator/a.py", "future.set_exception(error)", r"set_exception raises"),
    ("futures_are_resolved_in_one_way", "sql/a.py", "loop.call_soon(answer.set_exception, error)", r"set_exception raises"),
    ("errors_are_not_swallowed", "client/a.py", "try:\n    f()\nexcept Exception:\n    pass", r"ends here unseen"),
    ("errors_are_not_swallowed", "client/a.py", "try:\n    f()\nexcept:\n    x = 1", r"ends here unseen"),
    (
        "errors_are_not_swallowed",
        "client/a.py",
        "try:\n    f()\nexcept (OSError, asyncio.CancelledError):\n    x = 1",
        r"a cancellation ends",
    ),
    ("errors_are_not_swallowed", "client/a.py", "with contextlib.suppress(BaseException):\n    f()", r"suppresses BaseException"),
    ("files_stay_readable", "client/a.py", "x = 1\n" * 601, r"601 lines"),
    ("functions_stay_readable", "client/a.py", "class A:\n  def f():\n" + FILLER * 60, r"A\.f has 61 lines"),
    ("nothing_is_left_for_later", "client/a.py", f"x = 1  # {LATER}: more", r"a note for later"),
]

LAWFUL: list[tuple[str, str, str]] = [
    (
        "pure_rooms_touch_nothing_outside",
        "ledger/a.py",
        "import struct, hashlib\nfrom typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import random",
    ),
    ("pure_rooms_touch_nothing_outside", "client/a.py", "import os"),
    (
        "pure_code_stands_on_pure_code",
        "log/core/a.py",
        "from triplicate.ledger import Entry\nfrom .head import Head\nfrom ...errors import LogError",
    ),
    (
        "imports_go_down_only",
        "log/a.py",
        "from triplicate.client import Client\nfrom triplicate.ledger import Entry\nfrom .core.head import Head",
    ),
    (
        "rooms_meet_at_the_door",
        "log/a.py",
        "from triplicate.client import Client\nfrom triplicate.config.log_settings import LogSettings\nfrom ..errors import LogError",
    ),
    ("tasks_are_made_in_runtime", "runtime/a.py", "asyncio.create_task(f())"),
    ("the_outside_is_behind_ports", "client/a.py", "import random\ndef f(rng: random.Random) -> float: return rng.random()"),
    ("the_outside_is_behind_ports", "sql/a.py", "import threading"),
    ("queues_have_a_limit", "client/a.py", "q = asyncio.Queue(16)"),
    ("futures_are_resolved_in_one_way", "client/a.py", "resolve(future, 1)\nfail(answer, error)"),
    ("errors_are_not_swallowed", "client/a.py", "try:\n    f()\nexcept Exception as error:\n    waiter.set_exception(error)"),
    ("errors_are_not_swallowed", "client/a.py", "try:\n    f()\nexcept asyncio.CancelledError:\n    g()\n    raise"),
    ("files_stay_readable", "client/a.py", "x = 1\n" * 600),
    ("functions_stay_readable", "client/a.py", "def f():\n    '''a\n    b'''\n" + FILLER * 59),
    ("nothing_is_left_for_later", "client/a.py", "todo = 1"),
]


def snippet(path: str, text: str) -> Source:
    place = path if path.startswith("simulator/") else f"src/triplicate/{path}"
    return Source(place, text if text.endswith("\n") else text + "\n", EXPORTS)


@pytest.mark.parametrize(("rule", "path", "text", "pattern"), OFFENDING, ids=[f"{row[0]}-{index}" for index, row in enumerate(OFFENDING)])
def test_the_rule_reports_its_offending_snippet(rule: str, path: str, text: str, pattern: str) -> None:
    findings = list(rules.RULES[rule](snippet(path, text)))
    assert any(re.search(pattern, finding) for finding in findings), findings


@pytest.mark.parametrize(("rule", "path", "text"), LAWFUL, ids=[f"{row[0]}-{index}" for index, row in enumerate(LAWFUL)])
def test_the_rule_lets_lawful_code_pass(rule: str, path: str, text: str) -> None:
    assert list(rules.RULES[rule](snippet(path, text))) == []


def test_every_rule_has_an_offending_snippet() -> None:
    assert {row[0] for row in OFFENDING} == set(rules.RULES)


# Put together here, so that this file names no place itself.
PLACES = ["see {}://{}".format("https", "elsewhere.example")]
PLACES += [f"see /{folder}/someone" for folder in ("work", "home", "root")]


@pytest.mark.parametrize("line", PLACES, ids=["registry", "work", "home", "root"])
def test_a_place_in_committed_text_is_reported(line: str) -> None:
    assert list(rules.text_names_no_place(line))


LAWFUL_PLACES = [form.format("home") for form in ("src/{}/notes", "~/{}/x", "docs/{}/index.md")]


@pytest.mark.parametrize("line", [*LAWFUL_PLACES, "src/{}/notes".format("work"), "the registry's host"])
def test_a_relative_path_is_no_place(line: str) -> None:
    assert not list(rules.text_names_no_place(line))
