"""Counters, gauges and histograms of one process, in Prometheus' text format."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TypeVar, cast

import prometheus_client
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.utils import floatToGoString

from triplicate.errors import ArgumentError

Kind = TypeVar("Kind", bound=Collector)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class UnlockedCounter(Collector):
    """A counter for data paths: no lock, so only one thread may count."""

    __slots__ = ("_help", "_name", "value")

    def __init__(self, name: str, help: str) -> None:
        self._name = name
        self._help = help
        self.value = 0
        """Hot paths may add to it directly instead of calling `inc`."""

    def inc(self, amount: int = 1) -> None:
        self.value += amount

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(self._name, self._help, value=self.value)


class UnlockedHistogram(Collector):
    """A histogram for data paths: no lock, so only one thread may observe."""

    __slots__ = ("_bounds", "_counts", "_help", "_name", "_sum")

    def __init__(self, name: str, help: str, buckets: Sequence[float]) -> None:
        self._name = name
        self._help = help
        self._bounds = tuple(buckets)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def collect(self) -> Iterator[Metric]:
        names = [*map(floatToGoString, self._bounds), "+Inf"]
        yield HistogramMetricFamily(self._name, self._help, list(zip(names, accumulate(self._counts), strict=True)), self._sum)


class SumGauge(Collector):
    """The sum of values that several objects of one process compute when the metrics are read."""

    def __init__(self, name: str, help: str) -> None:
        self._name = name
        self._help = help
        self._sources: dict[GaugeSource, Callable[[], float]] = {}

    def add(self, value: Callable[[], float]) -> GaugeSource:
        """Count this value until the source is removed."""
        source = GaugeSource(self._sources)
        self._sources[source] = value
        return source

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(self._name, self._help, value=sum(value() for value in self._sources.values()))


class GaugeSource:
    """One value of a `SumGauge`."""

    def __init__(self, sources: dict[GaugeSource, Callable[[], float]]) -> None:
        self._sources = sources

    def remove(self) -> None:
        """Count the value no longer. Idempotent."""
        self._sources.pop(self, None)


class Metrics:
    """A registry separate from the library's global one, so that the metrics of two nodes in one process do not mix.

    Repeated calls with one name return the same metric. Increments take a lock: data paths count once per batch, or use `tally` and
    `distribution`.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        self._known: dict[str, tuple[Collector, tuple[str, ...]]] = {}

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> prometheus_client.Counter:
        """A value that only grows. Prometheus adds ``_total`` to the name.

        Raises:
            ArgumentError: the name is in use by another kind of metric or with other labels.
        """
        return self._get(prometheus_client.Counter, name, labels, lambda: prometheus_client.Counter(name, help, labels, registry=None))

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> prometheus_client.Gauge:
        """A value that goes up and down. Raises as `counter`."""
        return self._get(prometheus_client.Gauge, name, labels, lambda: prometheus_client.Gauge(name, help, labels, registry=None))

    def sum_gauge(self, name: str, help: str) -> SumGauge:
        """A gauge whose value is computed when it is read. Raises as `counter`."""
        return self._get(SumGauge, name, (), lambda: SumGauge(name, help))

    def tally(self, name: str, help: str) -> UnlockedCounter:
        """A counter for one thread, without a lock. Raises as `counter`."""
        return self._get(UnlockedCounter, name, (), lambda: UnlockedCounter(name, help))

    def distribution(self, name: str, help: str, *, buckets: Sequence[float] = SECONDS_BUCKETS) -> UnlockedHistogram:
        """A histogram for one thread, without a lock. Raises as `counter`."""
        return self._get(UnlockedHistogram, name, (), lambda: UnlockedHistogram(name, help, buckets))

    def expose(self) -> bytes:
        """All metrics in Prometheus' text format 0.0.4."""
        return prometheus_client.generate_latest(cast("CollectorRegistry", _WithoutCreationTimes(self._registry)))

    def _get(self, kind: type[Kind], name: str, labels: Sequence[str], make: Callable[[], Kind]) -> Kind:
        known = self._known.get(name)
        if known is not None:
            metric, known_labels = known
            if not isinstance(metric, kind) or known_labels != tuple(labels):
                raise ArgumentError(f"metric {name} is already a {type(metric).__name__} with labels {known_labels}")
            return metric
        made = make()
        self._registry.register(made)
        self._known[name] = (made, tuple(labels))
        return made


class _WithoutCreationTimes(Collector):
    """The registry without the ``_created`` series, which would double the page."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
