"""The SQL layer before and after a change, beside PostgreSQL and plain SQLite, on one machine, in one run: ``make bench-sql``.

pgbench.py       pgbench: its scripts, its command line, and what it prints; pure
targets.py       from runs to one number per target; pure
report.py        the table that is written and printed; pure
plan.py          which side runs which cases, and for how long
cases.py         the measurements of a server
levels.py        the levels of reads; pure
pauses.py        take-over, lag of followers, a position handed over, short reads beside a scan, inserts beside snapshots
restarts.py      restarts and new copies, with a short log and a long one
bulk.py          COPY, INSERT of many rows, executemany
connections.py   a program with many connections
plain_sqlite.py  a program: plain SQLite with synchronous=FULL
servers.py       the sides: nodes before and now, PostgreSQL with a standby, plain SQLite
slow_sync.py     the library that makes each sync cost more, built from slow_sync.c
stages.py        which function belongs to which stage of a statement, and the clock that runs in them
sampling.py      samples of the stack by processor time
staged_node.py   a program: a database node with that clock
staged_run.py    the loads on that node
run.py           the whole run
"""
