"""A call of the script for locations that succeeds clears the failure of one for other machines."""

from __future__ import annotations

from collections.abc import Callable

from triplicate.client.location_script import LocationScript

TESTS = ["tests/unit/client/test_location_script.py::test_a_group_of_machines_without_an_answer_is_told_though_another_group_has_one"]


def apply(patch: Callable[[object, str, object], None]) -> None:
    call = LocationScript._call

    async def forgetting(script: LocationScript, machines: list[str]) -> None:
        script._failures.clear()
        await call(script, machines)

    patch(LocationScript, "_call", forgetting)
