"""The demonstration's plot: departure delays of 2013 at the end of the pipeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

INK = "#1f2933"
QUIET = "#9aa5b1"
BARS = "#3e7cb1"
HOT = "#d1495b"


def draw(
    path: Path,
    *,
    by_airline: Mapping[str, tuple[int, int]],
    by_hour: Mapping[int, tuple[int, int]],
    worst_routes: Sequence[tuple[str, int, int]],
    caption: str,
) -> None:
    """Draw three panels and save a PNG.

    Args:
        by_airline, by_hour: (flights, sum of delays in minutes) each.
        worst_routes: (route, flights, sum), worst first.
        caption: one line below: a summary of this run.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"font.size": 9, "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK})
    figure, (hours, airlines, routes) = plt.subplots(1, 3, figsize=(15, 6), width_ratios=(1.1, 1.2, 1))
    clock = sorted(by_hour)
    means = [by_hour[hour][1] / by_hour[hour][0] for hour in clock]
    peak = max(means)
    hours.bar(clock, means, color=[HOT if mean == peak else BARS for mean in means], width=0.8)
    hours.set_title("By hour of scheduled departure", loc="left", fontweight="bold")
    hours.set_xlabel("hour")
    hours.set_ylabel("mean departure delay, minutes")
    hours.set_xticks(clock[::2])
    ranked = sorted(by_airline.items(), key=lambda item: item[1][1] / item[1][0])
    _horizontal(airlines, [(name, count, total / count) for name, (count, total) in ranked], "By airline")
    worst = [(route.replace("-", " \u2192 "), count, total / count) for route, count, total in reversed(worst_routes)]
    _horizontal(routes, worst, "Worst ten routes")
    for axes in (hours, airlines, routes):
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(QUIET)
    figure.suptitle("Flights from New York City, 2013: how late they left", x=0.01, ha="left", fontsize=15, fontweight="bold")
    figure.text(0.01, 0.012, caption, ha="left", fontsize=8.5, color=QUIET)
    figure.tight_layout(rect=(0, 0.035, 1, 0.97))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _horizontal(axes: object, rows: Sequence[tuple[str, int, float]], title: str) -> None:
    """Bars to the right, each labelled with its mean and its number of flights."""
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    names = [name for name, _, _ in rows]
    means = [mean for _, _, mean in rows]
    axes.barh(names, means, color=[HOT if mean == max(means) else BARS for mean in means], height=0.72)
    for place, (_, count, mean) in enumerate(rows):
        axes.text(mean + max(means) * 0.015, place, f"{mean:.1f}  ({count:,})", va="center", fontsize=7.5, color=INK)
    axes.set_xlim(0, max(means) * 1.28)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.set_xlabel("mean departure delay, minutes (flights)")
