"""Seeds that several modules look at run once in a session."""

from __future__ import annotations

from triplicate_simulator import Result, run


class SharedRuns:
    """Results of seeds in this process. A seed runs when its result is first asked for."""

    def __init__(self) -> None:
        self._results: dict[int, Result] = {}

    def result_of(self, seed: int) -> Result:
        """The seed's result, without its facts and events."""
        if seed not in self._results:
            (self._results[seed],) = run([seed]).results
        return self._results[seed]
