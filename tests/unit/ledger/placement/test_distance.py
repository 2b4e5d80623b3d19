from __future__ import annotations

import pytest

from triplicate.ledger import Distance, distance_between, parse_location


@pytest.mark.parametrize(
    ("own", "other", "distance"),
    [
        ("/north/r1", "/north/r1", Distance.OWN_RACK),
        ("/north/r1", "/north/r2", Distance.OWN_REGION),
        ("/north/r1", "/south/r1", Distance.ELSEWHERE),
        ("/r1", "/r2", Distance.OWN_REGION),
        ("/r1", "/default-region/default-rack", Distance.ELSEWHERE),
    ],
)
def test_racks_and_regions_decide(own: str, other: str, distance: Distance) -> None:
    assert distance_between(parse_location(own), parse_location(other)) is distance
