"""Lost copies of acknowledged entries are made again only in as many fault domains as new entries need."""

from collections.abc import Callable

from triplicate.ledger import PlacementPolicy

TESTS = [
    "tests/unit/ledger/placement/test_ensemble_choice.py::test_copies_of_acknowledged_entries_only_prefer_the_domains",
    "tests/unit/client/test_cluster_placement.py::test_copies_are_made_again_though_too_few_domains_are_left",
]


def apply(patch: Callable[[object, str, object], None]) -> None:
    patch(PlacementPolicy, "for_copies", property(lambda policy: policy))
