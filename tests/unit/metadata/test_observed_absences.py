"""The record of absences is replaced, deleted when nobody is absent, and refused in another format."""

from __future__ import annotations

import pytest

from tests.unit.metadata.stores import run
from triplicate.errors import FormatError
from triplicate.metadata import ClusterMetadata, MemoryStore, MemoryTree, ObservedAbsences
from triplicate.metadata.observed_absences import decode_absences
from triplicate.runtime import real_host


def test_a_record_is_written_replaced_and_deleted() -> None:
    async def body() -> None:
        host = real_host("test", seed=1)
        async with await ClusterMetadata.open(MemoryTree(MemoryStore(host.clock)), host, create=True) as metadata:
            absences = metadata.absences
            await absences.write(ObservedAbsences(0, {}))
            assert await absences.read() is None
            for absent_s in ({"b": 1.04}, {"b": 2.0, "c": 0.0}):
                await absences.write(ObservedAbsences(5, absent_s))
                found = await absences.read()
                assert found is not None
                assert found.time_ms == 5
                assert found.absent_s == {bookie_id: round(seconds, 1) for bookie_id, seconds in absent_s.items()}
            await absences.write(ObservedAbsences(0, {}))
            assert await absences.read() is None

    run(body())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'{"v":2}',
        b'{"v":1,"time_ms":0}',
        b'{"v":1,"time_ms":0,"absent_s":[]}',
        b'{"v":1,"time_ms":0,"absent_s":{"b":-1}}',
    ],
)
def test_another_format_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="observed absences"):
        decode_absences(data)
