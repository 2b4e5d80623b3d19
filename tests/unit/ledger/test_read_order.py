from __future__ import annotations

from itertools import permutations

from triplicate.ledger import Ailment, BookieHealth, Distance, ReadOrder

NEAR = {"r": Distance.OWN_RACK, "g": Distance.OWN_REGION, "h": Distance.OWN_REGION, "x": Distance.ELSEWHERE, "y": Distance.ELSEWHERE}


def order_of(*quarantined: str, ailment: Ailment = Ailment.SLOW, readonly: tuple[str, ...] = (), far: bool = True) -> ReadOrder:
    health = BookieHealth(10.0, 300.0)
    for bookie_id in quarantined:
        assert health.quarantine(bookie_id, ailment, 0.0)
    order = ReadOrder(health)
    order.locate(NEAR if far else {name: NEAR[name] for name in "rgh"}, readonly)
    return order


def test_without_distances_only_the_health_counts() -> None:
    health = BookieHealth(10.0, 300.0)
    order = ReadOrder(health)
    assert order.order("xgr") == ["x", "g", "r"]
    assert order.first_choices("xgr") == ["x", "g", "r"]
    health.quarantine("g", Ailment.SLOW, 0.0)
    assert order.order("xgr") == ["x", "r", "g"]
    assert order.first_choices("xgr") == ["x", "r"]


def test_the_own_rack_is_read_first_then_the_own_region_then_the_rest() -> None:
    order = order_of()
    for given in permutations("xgr"):
        assert order.order(given) == ["r", "g", "x"]
        assert order.first_choices(given) == ["r"]
    assert sorted(order.first_choices("xgh")) == ["g", "h"]


def test_one_bookie_from_elsewhere_comes_after_two_near_ones() -> None:
    assert order_of().order("yxhgr") == ["r", "h", "y", "g", "x"]
    assert order_of("y", "x").order("yxhgr") == ["r", "h", "g", "y", "x"], "a far one in quarantine gains nothing by that"


def test_a_slow_near_bookie_is_read_after_all_healthy_ones() -> None:
    order = order_of("r")
    assert order.order("rgx") == ["g", "x", "r"]
    assert order.order("rx") == ["x", "r"]
    assert order.first_choices("rx") == ["x"]


def test_slow_failing_and_unregistered_bookies_come_last_in_this_order() -> None:
    order = order_of("g", ailment=Ailment.FAILING)
    order._health.quarantine("r", Ailment.SLOW, 0.0)
    assert order.order(["gone", "g", "r", "x"]) == ["x", "r", "g", "gone"]
    assert order.distance("gone") is Distance.ELSEWHERE


def test_a_read_only_bookie_is_read_after_writable_ones_at_the_same_distance() -> None:
    order = order_of(readonly=("g",))
    assert order.order("xgh") == ["h", "g", "x"]
    assert order.first_choices("gh") == ["h"]


def test_batches_are_spread_over_the_own_region() -> None:
    order = order_of(readonly=("g",))
    assert order.batch_rank("r") == order.batch_rank("g") == order.batch_rank("h") < order.batch_rank("x")


def test_the_version_grows_with_each_change() -> None:
    health = BookieHealth(10.0, 300.0)
    order = ReadOrder(health)
    versions = [order.version]
    order.locate(dict(NEAR))
    versions.append(order.version)
    order.locate(dict(NEAR))
    assert order.version == versions[-1]
    health.quarantine("r", Ailment.SLOW, 0.0)
    versions.append(order.version)
    order.locate({})
    versions.append(order.version)
    assert versions == sorted(set(versions))
    assert not order.has_distances


def test_bookies_that_are_away_come_last_without_distances_too() -> None:
    health = BookieHealth(10.0, 300.0)
    order = ReadOrder(health)
    health.quarantine("s", Ailment.SLOW, 0.0)
    before = order.version
    order.miss(frozenset("x"))
    assert order.version > before
    assert order.order("xsgr") == ["g", "r", "s", "x"]
    assert order.first_choices("xgr") == ["g", "r"]
    order.miss(frozenset())
    assert order.order("xgr") == ["x", "g", "r"]
