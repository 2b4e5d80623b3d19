"""A key-value store on real nodes, used by redis-cli."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.process.at_once import at_once
from tests.process.running import TIMEOUT_S, Up, environment, run
from tests.waiting import LIMIT_S, wait_until
from triplicate.cli.supervision.cluster_folder import CLIENT_FILE

PASSWORD = "correct horse battery staple"


def redis_cli(address: str, *words: str, options: Sequence[str] = (), password: str = "") -> str:
    """The answer of a node to one command."""
    host, _, port = address.rpartition(":")
    command = ["redis-cli", "-h", host, "-p", port, *options, *words]
    variables = environment(REDISCLI_AUTH=password) if password else environment()
    answer = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    return (answer.stdout + answer.stderr).strip()


def leader_of(address: str) -> str:
    """The address at which the leader serves clients, as this node knows it; empty where it knows none."""
    answer = redis_cli(address, "SET", "lead", "1")
    if answer == "OK":
        return address
    found = re.search(r"^READONLY .* is node node-\d at (\S+)$", answer)
    return found[1] if found else ""


def test_a_store_is_used_by_redis_cli_and_outlives_its_leader(tmp_path: Path) -> None:
    with Up(tmp_path / "c", "--bookies", "3", "--nodes", "2", "--resp", restart=True) as up:
        nodes = {name: str(up.members[name]["resp"]) for name in ("node-1", "node-2")}
        assert redis_cli(nodes["node-1"], "PING") == "PONG"
        at_once("kv", "create", "shop", uri=up.uri)
        wait_until(lambda: all(map(leader_of, nodes.values())), LIMIT_S, "both nodes know the leader")
        leader = leader_of(nodes["node-1"])
        assert leader_of(nodes["node-2"]) == leader
        led_by = next(name for name, address in nodes.items() if address == leader)
        assert leader in at_once("kv", "show", "shop", uri=up.uri).stdout
        at_once("kv", "put", "shop", "found", "by the metadata", uri=up.uri)
        follower = next(address for address in nodes.values() if address != leader)
        assert at_once("kv", "get", "shop", "found", "--nodes", follower, uri=up.uri).stdout == "by the metadata\n"

        assert redis_cli(leader, "SET", "greeting", "hello world", "EX", "600") == "OK"
        assert redis_cli(leader, "SET", "short", "x", "PX", "20") == "OK"
        assert redis_cli(leader, "MSET", "user:1", "anna", "user:2", "ben") == "OK"
        assert redis_cli(leader, "GET", "greeting") == "hello world"
        assert sorted(redis_cli(leader, "--scan", "--pattern", "user:*").split()) == ["user:1", "user:2"]
        assert 0 < int(redis_cli(leader, "TTL", "greeting")) <= 600
        wait_until(lambda: redis_cli(leader, "EXISTS", "short") == "0", LIMIT_S, "the key expires")
        assert redis_cli(leader, "EVAL", "return 1", "0").startswith("ERR unsupported command 'EVAL'")

        up.kill_member(led_by)
        other = next(address for name, address in nodes.items() if name != led_by)
        wait_until(lambda: leader_of(other) == other, TIMEOUT_S, "the other node leads")
        assert redis_cli(other, "GET", "greeting") == "hello world"
        assert redis_cli(other, "INCR", "visits") == "1"
        wait_until(lambda: redis_cli(leader, "PING") == "PONG", TIMEOUT_S, "the node serves again at the same address")


@pytest.mark.deep
def test_redis_cli_logs_in_to_a_secured_node_and_its_connection_ends_with_its_user(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    users = str(folder / "security" / "resp-users.toml")
    with Up(folder, "--secure", "--bookies", "3", "--nodes", "1", "--resp") as up:
        for name, roles in (("anna", "read,write"), ("ben@shop", "read")):
            at_once("bookie", "user", "set", name, "--roles", roles, "--users-file", users, TRIPLICATE_USER_PASSWORD=PASSWORD)
        address = str(up.members["node-1"]["resp"])
        for store in ("shop", "bank"):
            run("kv", "create", store, TRIPLICATE_CONFIG=str(folder / CLIENT_FILE))
        tls = ("--tls", "--cacert", str(folder / "security" / "ca.pem"))

        def ask(user: str, *words: str, password: str = PASSWORD) -> str:
            return redis_cli(address, *words, options=(*tls, "--user", user), password=password)

        wait_until(lambda: ask("anna@shop", "SET", "a", "1").endswith("OK"), TIMEOUT_S, "the node leads")
        assert ask("ben@shop", "GET", "a").endswith("1")
        assert "NOPERM" in ask("ben@shop", "SET", "a", "2")
        assert "WRONGPASS" in ask("ben@bank", "GET", "a")
        assert "WRONGPASS" in ask("anna@shop", "GET", "a", password="wrong")
        assert "NOAUTH" in redis_cli(address, "GET", "a", options=tls)
        assert "1" not in redis_cli(address, "GET", "a")
        host, _, port = address.rpartition(":")
        listening = ["redis-cli", "-h", host, "-p", port, *tls, "--user", "ben@shop", "SUBSCRIBE", "__keyspace@0__:a"]
        pipe = subprocess.PIPE
        with subprocess.Popen(listening, env=environment(REDISCLI_AUTH=PASSWORD), stdout=pipe, stderr=pipe, text=True) as subscriber:
            try:
                assert subscriber.stdout is not None
                while "subscribe" not in subscriber.stdout.readline():
                    continue
                at_once("bookie", "user", "remove", "ben@shop", "--users-file", users)
                subscriber.communicate(timeout=TIMEOUT_S)
            finally:
                subscriber.kill()
        assert "WRONGPASS" in ask("ben@shop", "GET", "a")


@pytest.mark.deep
def test_a_secured_cluster_has_an_administrator_of_its_stores(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with Up(folder, "--secure", "--bookies", "3", "--nodes", "1", "--resp") as up:
        run("kv", "create", "shop", TRIPLICATE_CONFIG=str(folder / CLIENT_FILE))
        address = str(up.members["node-1"]["resp"])
        options = ("--tls", "--cacert", str(folder / "security" / "ca.pem"), "--user", "administrator")
        password = (folder / "security" / "administrator.password").read_text().strip()
        wait_until(lambda: redis_cli(address, "SET", "a", "1", options=options, password=password).endswith("OK"), TIMEOUT_S, "it leads")
        assert "WRONGPASS" in redis_cli(address, "GET", "a", options=options, password="another")
