"""Named exceptions from the rules of the house. These lists may only shrink: `test_rules.py` refuses an entry that is no longer needed."""

from __future__ import annotations

LONG_FILES: dict[str, int] = {}
"""Path → lines it may have."""

LONG_FUNCTIONS: dict[str, int] = {}
"""``path::dotted.name`` → lines it may have."""

OUTSIDE_PORTS: dict[str, str] = {
    "src/triplicate/metadata/drivers/sqlite_sessions.py": "The SQLite driver is not simulated; it ages sessions by the boot clock.",
    "src/triplicate/metadata/drivers/zookeeper_session.py": "The ZooKeeper driver is not simulated; kazoo makes its connections itself.",
}
"""Path → why this file of a simulated room reaches outside by itself."""

SWALLOWED: dict[str, str] = {
    "src/triplicate/runtime/task_scope.py": "A scope hands a cancellation that met it while waiting to its caller, who raises it.",
    "src/triplicate/sim/virtual_loop.py": "What the coroutines of a crashed node raise while they are unwound concerns nobody.",
}
"""Path → why a broad error may end in this file."""

RESOLVES_FUTURES: dict[str, str] = {
    "src/triplicate/blocking/background_loop.py": "These are futures of threads, whose cancellation has a protocol of its own.",
    "src/triplicate/client/write/ledger_writer.py": "Once per append: a call of `resolve` would cost more than the check.",
    "src/triplicate/log/writing/log_writer.py": "Once per entry of a log: as there.",
}
"""Path → why this file gives a future its result without `runtime.oneshot`."""

UNPLAIN_WORDS: dict[str, int] = {}
"""Folder → words of `test_words.py` that are still in it."""
