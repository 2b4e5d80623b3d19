"""A false bookie: it does not know the password, sends more than it may, or repeats what it has recorded. It gets no request."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.certificates import CertificateFolder
from tests.unit.client.cluster import QUICK, FakeCluster, fake_cluster, run
from triplicate.client import Client
from triplicate.config import ClientSettings
from triplicate.errors import NotEnoughBookies, ReadFailed
from triplicate.metadata import bookie_service
from triplicate.security import TlsIdentity

PASSWORD = "the password of the writer"
WIRES = ("v2", "v3")
Answer = Callable[[bytes], bytes]
"""The token with which a false bookie answers a token."""


def scram(proof: bytes) -> Answer:
    """Challenges as a bookie does, accepts any proof, and gives this one of its own."""

    def answer(token: bytes) -> bytes:
        if not token.startswith(b"SCRAM-SHA-256\0"):
            return proof
        nonce = token.rpartition(b"r=")[2]
        return b"r=" + nonce + b"false,s=" + b64encode(bytes(16)) + b",i=4096"

    return answer


def digest(proof: bytes) -> Answer:
    return lambda token: proof if token else b'realm="bookkeeper",nonce="' + b64encode(bytes(16)) + b'",charset=utf-8,algorithm=md5-sess'


def login(folder: Path, mechanism: str, wire: str) -> ClientSettings:
    path = folder / "password"
    path.touch(mode=0o600)
    path.write_text(PASSWORD + "\n")
    settings = replace(QUICK, wire=wire, bookie_tls="required", connect_timeout_s=10.0)
    return replace(settings, user="writer", password_file=str(path), mechanism=mechanism)


async def refusal(cluster: FakeCluster, settings: ClientSettings, folder: CertificateFolder) -> str:
    """The error of a writer, which has sent no request to any bookie; the client accepts no bookie for a reading either."""
    async with Client(cluster.host, cluster.metadata, settings, security=folder.client_settings()) as client:
        writer = await client.create()
        with pytest.raises(NotEnoughBookies) as told:
            await writer.append(b"x")
        with pytest.raises(ReadFailed):
            await client.open(writer.ledger_id)
    for bookie in cluster.bookies.values():
        assert bookie.seen == [], "a request was sent to a bookie that was not proven"
        assert all(PASSWORD.encode() not in token for token in bookie.tokens)
    assert "\n" not in str(told.value)
    return str(told.value)


def meets(tmp_path: Path, mechanism: str, wire: str, answer: Answer) -> str:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        async with fake_cluster("abc") as cluster:
            for bookie in cluster.bookies.values():
                bookie.tls = TlsIdentity(folder.settings("bookie"), cluster.host.clock, cluster.host.trace)
                bookie.plugin, bookie.token_answer = "sasl" if mechanism == "DIGEST-MD5" else "triplicate-sasl", answer
            told.append(await refusal(cluster, login(tmp_path, mechanism, wire), folder))

    told: list[str] = []
    run(main())
    return told[0]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("proof", [b"", b"v=" + b64encode(bytes(32)), b"v=", b"e=other-error"], ids=repr)
def test_a_bookie_that_cannot_prove_that_it_knows_the_verifier_gets_no_request(tmp_path: Path, wire: str, proof: bytes) -> None:
    told = meets(tmp_path, "SCRAM-SHA-256", wire, scram(proof))
    assert "did not prove" in told or len(proof) < len(b64encode(bytes(32)))


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("proof", [b"", b"rspauth=" + b"0" * 32, b"rspauth="], ids=repr)
def test_a_bookie_that_cannot_prove_that_it_knows_the_hash_gets_no_request(tmp_path: Path, wire: str, proof: bytes) -> None:
    told = meets(tmp_path, "DIGEST-MD5", wire, digest(proof))
    assert "did not prove" in told or proof == b"rspauth="


def test_a_bookie_that_repeats_a_recorded_login_gets_no_request(tmp_path: Path) -> None:
    """It repeats the challenge and the proof of a true bookie: the client's nonce is another one this time."""
    recorded = b"r=nonce-of-then" + b64encode(bytes(12)) + b",s=" + b64encode(bytes(16)) + b",i=4096"
    final = b"v=" + b64encode(bytes(range(32)))
    meets(tmp_path, "SCRAM-SHA-256", "v2", lambda token: recorded if token.startswith(b"SCRAM") else final)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "DIGEST-MD5"])
def test_a_bookie_that_challenges_at_length_gets_no_request(tmp_path: Path, mechanism: str) -> None:
    begin = digest if mechanism == "DIGEST-MD5" else scram
    meets(tmp_path, mechanism, "v3", lambda token: begin(b"")(token) + b",x=" + b"x" * 100_000)


def test_a_bookie_that_asks_for_much_work_gets_no_request(tmp_path: Path) -> None:
    """A challenge of nine million iterations would occupy the client for seconds, at each connection."""
    told = meets(tmp_path, "SCRAM-SHA-256", "v2", lambda token: scram(b"")(token).replace(b"i=4096", b"i=9000000"))
    assert "iterations" in told


def test_an_announced_frame_of_two_gigabytes_ends_the_connection(tmp_path: Path) -> None:
    async def main() -> None:
        folder = CertificateFolder(tmp_path)
        ended = asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(4)
            writer.write(b"\x7f\xff\xff\xff" + bytes(4096))
            while await reader.read(4096):
                pass
            writer.close()
            ended.set()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with fake_cluster("a") as cluster, server:
            await cluster.metadata.bookies.register("a", bookie_service("127.0.0.1", server.sockets[0].getsockname()[1]))
            settings = replace(QUICK, bookie_tls="required", connect_timeout_s=10.0)
            async with Client(cluster.host, cluster.metadata, settings, security=folder.client_settings()) as client:
                writer = await client.create(ensemble_size=1, write_quorum=1, ack_quorum=1)
                with pytest.raises(NotEnoughBookies, match="exceeds the limit"):
                    await writer.append(b"x")
                await ended.wait()  # The client closed it while the bookie would have gone on.

    run(main())
