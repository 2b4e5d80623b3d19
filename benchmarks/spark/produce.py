"""Writes records at a rate to a log or a topic: the time in nanoseconds, and zeros up to the size of a record.

python -m benchmarks.spark.produce ours|kafka PLACE NAME RATE SECONDS
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from triplicate.blocking import connect

SIZE_BYTES = 100
STEPS_PER_S = 100
WAIT_S = 30.0


def paced(rate: int, seconds: float, send: Callable[[list[bytes]], object]) -> None:
    """Send `rate` records each second, a hundredth of them at a time."""
    began = time.monotonic()
    for step in range(int(seconds * STEPS_PER_S)):
        time.sleep(max(0.0, began + step / STEPS_PER_S - time.monotonic()))
        send([time.time_ns().to_bytes(8, "big").ljust(SIZE_BYTES, b"\0")] * (rate // STEPS_PER_S))


def main() -> None:
    side, place, name, rate, seconds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
    if side == "ours":
        with connect(place) as client, client.logs().writer(name) as writer:
            paced(rate, seconds, writer.append_entry_nowait)
            return
    from confluent_kafka import Producer  # type: ignore[import-not-found]  # Only in the environment of this benchmark.

    producer = Producer({"bootstrap.servers": place})

    def send(values: list[bytes]) -> None:
        for value in values:
            producer.produce(name, value)
        producer.poll(0)

    paced(rate, seconds, send)
    producer.flush(WAIT_S)


if __name__ == "__main__":
    main()
