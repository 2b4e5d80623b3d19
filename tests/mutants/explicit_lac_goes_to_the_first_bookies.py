"""The explicit last-add-confirmed goes to the ensemble's first bookies instead of those that hold the entry."""

from collections.abc import Callable

from triplicate.client.write import explicit_lac

TESTS = [
    "tests/unit/client/write/test_explicit_lac.py::test_only_the_write_set_of_that_entry_is_sent_the_record",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(explicit_lac, "write_set", lambda entry_id, ensemble_size, write_quorum: tuple(range(write_quorum)))
