"""The output of pgbench is read as it is, and its command line has each part of a load."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.sql.pgbench import (
    MIXES,
    SCRIPTS,
    Load,
    Report,
    UnreadableReport,
    command,
    latencies_ms,
    latency_figures,
    parts,
    percentiles,
    read_report,
)

OUTPUT = """pgbench (15.20)
transaction type: read.sql
scaling factor: 1
query mode: prepared
number of clients: 16
number of threads: 1
maximum number of tries: 1
duration: 5 s
number of transactions actually processed: 8370
number of failed transactions: 2 (0.024%)
latency average = 9.550 ms
initial connection time = 41.071 ms
tps = 1675.392133 (without initial connection time)
"""


def test_count_failures_and_rate_are_read() -> None:
    assert read_report(OUTPUT) == Report(8370, 2, 1675.392133)


def test_the_rate_without_connecting_is_read_from_an_older_release() -> None:
    older = (
        "number of transactions actually processed: 10\n"
        "tps = 90.5 (including connections establishing)\n"
        "tps = 100.25 (excluding connections establishing)\n"
    )
    assert read_report(older) == Report(10, 0, 100.25)


@pytest.mark.parametrize("line", ["number of transactions", "tps ="])
def test_an_output_without_a_figure_is_refused(line: str) -> None:
    cut = "\n".join(one for one in OUTPUT.splitlines() if not one.startswith(line))
    with pytest.raises(UnreadableReport, match=r"pgbench printed no (count|rate)"):
        read_report(cut)


def test_latencies_are_those_of_transactions_that_did_not_fail_by_script() -> None:
    log = ["0 1 2500 0 1763884800 100", "1 1 failed 0 1763884800 200", "1 2 500 1 1763884800 300", "0 2 700 0 1763884800 400", ""]
    assert latencies_ms(log) == {0: [2.5, 0.7], 1: [0.5]}


def test_a_mix_has_the_p99_of_each_script_besides_that_of_all() -> None:
    by_script = {1: [3.0, 9.0], 0: [2.0, 1.0]}
    assert latency_figures(by_script, ["read", "insert"]) == {"p50_ms": 2.0, "p99_ms": 9.0, "read_p99_ms": 2.0, "insert_p99_ms": 9.0}
    assert latency_figures({0: [2.0, 1.0]}, ["read"]) == {"p50_ms": 1.0, "p99_ms": 2.0}
    assert latency_figures({}, ["read"]) == {}


def test_a_mix_is_of_known_scripts_and_a_script_is_its_only_part() -> None:
    assert all(name in SCRIPTS for mix in MIXES.values() for name, _ in mix)
    assert parts("mixed") == (("read", 9), ("insert", 1))
    assert parts("tpcb") == (("tpcb", 1),)


def test_a_transaction_of_ten_begins_with_a_write_and_has_ten_statements() -> None:
    statements = [line for line in SCRIPTS["ten"].splitlines() if line.endswith(";")]
    assert len(statements) == 10
    assert statements[0] == "BEGIN;"
    assert statements[1].startswith("UPDATE"), "after a read the first write fails with 40001 if another transaction has written"
    assert statements[-1] == "END;"


def test_percentiles_are_by_nearest_rank() -> None:
    assert percentiles([float(number) for number in range(1, 101)]) == {"p50_ms": 50.0, "p99_ms": 99.0}
    assert percentiles([]) == {}


def test_the_command_line_has_protocol_clients_time_and_variables() -> None:
    load = Load("insert", 64, "simple", has_latencies=True, variables={"base": 7})
    words = command(Path("pgbench"), load, [(Path("insert.sql"), 1), (Path("read.sql"), 9)], 2.4, 5432, "bench", Path("log"))
    text = " ".join(words)
    for part in (
        "--protocol simple",
        "--client 64",
        "--time 2",
        "--file insert.sql@1",
        "--file read.sql@9",
        "--port 5432",
        "--log-prefix log",
        "--define base=7",
    ):
        assert part in text
    assert words[-1] == "bench"


def test_a_load_runs_for_a_second_at_least_and_writes_no_latencies_unasked() -> None:
    words = command(Path("pgbench"), Load("read", 1), [(Path("read.sql"), 1)], 0.2, 5432, "bench", Path("log"))
    assert words[words.index("--time") + 1] == "1"
    assert "--log" not in words
