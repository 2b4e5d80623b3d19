"""The descriptors of processes by kind."""

from __future__ import annotations

import os
import socket

import pytest

from benchmarks.soak.connections import TABLE, Descriptors, TcpTable, count, parse_tcp, read_tcp, targets_of

SHOWN = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:0C3A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 ffff 100 0 0 10 0
   1: 0100007F:D431 0100007F:0C3A 01 00000000:00000000 00:00000000 00000000     0        0 12 1 ffff 20 4 30 10 -1
   2: 0100007F:D432 0100007F:0C3A 01 00000000:00000000 00:00000000 00000000     0        0 13 1 ffff 20 4 30 10 -1
   3: 0100007F:0C3A 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 14 1 ffff 20 4 30 10 -1
   4: 0100007F:D433 0100007F:0C3A 08 00000000:00000000 00:00000000 00000000     0        0 15 1 ffff 20 4 30 10 -1
"""


def test_connections_are_counted_by_server() -> None:
    table = parse_tcp(SHOWN)
    assert table == TcpTable({12: "0100007F:0C3A", 13: "0100007F:0C3A", 14: "0100007F:D431"}, frozenset({"0100007F:0C3A"}))
    client = ["socket:[12]", "socket:[13]", "socket:[15]", "/dev/null", "pipe:[12]"]
    assert count(client, table) == Descriptors(5, 2, 2), "what the other end has closed is no connection"
    files = count(["/data/a", "/data/a", "/data/b", "/dev/null", "/dev/null"], table)
    assert (files, files.others) == (Descriptors(5, again=1, most_of_one=2), 4)
    server = ["socket:[11]", "socket:[14]"]
    assert count(server, table) == Descriptors(2, 1, 0), "a connection that it accepted is to no server"


@pytest.mark.skipif(not os.path.exists(TABLE), reason="needs /proc/net/tcp")
def test_a_connection_of_this_process_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        before = count(targets_of(os.getpid()), read_tcp())
        with socket.create_connection(server.getsockname()), server.accept()[0]:
            after = count(targets_of(os.getpid()), read_tcp())
    assert after.connections - before.connections == 2
    assert after.most_to_one >= 1
    assert targets_of(2**30) == []
