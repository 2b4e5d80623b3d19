"""Errors as Spark shows them: short where the message says all, whole where this program is at fault."""

from __future__ import annotations

import pickle
import traceback

import pytest

from triplicate.errors import ConfigError, NoSuchLog
from triplicate.spark.core.plain_errors import plain_errors
from triplicate.spark.logs.log_source import TriplicateDataSource


def deep(levels: int, error: Exception) -> None:
    if levels:
        deep(levels - 1, error)
    try:
        raise KeyError("an inner failure")
    except KeyError:
        raise error  # noqa: B904 - the inner failure is what must not be shown


@plain_errors("schema")
class Source:
    def schema(self, error: Exception) -> None:
        """Fails."""
        deep(10, error)


def shown(error: Exception) -> list[str]:
    with pytest.raises(type(error)) as caught:
        Source().schema(error)
    return "".join(traceback.format_exception(caught.value)).splitlines()


def test_the_message_of_an_error_of_ours_is_among_the_first_lines() -> None:
    lines = shown(NoSuchLog("no log 'nowhere'"))
    assert len(lines) <= 7
    assert lines[-1] == "triplicate.errors.NoSuchLog: no log 'nowhere'"
    assert not any("inner failure" in line for line in lines)


def test_a_fault_of_the_program_is_shown_with_its_way() -> None:
    assert sum("in deep" in line for line in shown(ZeroDivisionError("a fault"))) >= 3


def test_methods_keep_their_names_and_sources_are_pickled() -> None:
    assert (Source.schema.__name__, Source.schema.__doc__) == ("schema", "Fails.")
    source = pickle.loads(pickle.dumps(TriplicateDataSource({"metadataserviceuri": "u", "log": "a", "startingofsets": "0"})))
    with pytest.raises(ConfigError, match="did you mean") as caught:
        source.schema()
    assert len(traceback.extract_tb(caught.value.__traceback__)) == 2
