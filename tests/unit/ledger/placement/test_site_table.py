from __future__ import annotations

import pytest

from triplicate.errors import ArgumentError
from triplicate.ledger import DEFAULT_LOCATION, NetworkLocation, RegisteredBookie, parse_location, resolve_sites
from triplicate.ledger.placement.site_table import DEFAULT, REGISTRATION, SCRIPT, TABLE

TWO = [RegisteredBookie("a", "h1", "/own"), RegisteredBookie("b", "h2")]


def test_a_location_has_one_or_two_names() -> None:
    assert str(parse_location("/r")) == "/default-region/r"
    assert parse_location("/west/r") == NetworkLocation("west", "r")
    for text in ("", "r", "/", "/a/b/c", "/a//b", "/a b", "//r"):
        with pytest.raises(ArgumentError, match="no network location"):
            parse_location(text)


def test_the_table_precedes_the_script_and_the_registration() -> None:
    found = resolve_sites(TWO, {"a": "/table"}, {"h1": "/script", "h2": "/script"})
    assert (str(found.sites["a"].location), found.sources["a"]) == ("/default-region/table", TABLE)
    assert (str(found.sites["b"].location), found.sources["b"]) == ("/default-region/script", SCRIPT)
    assert resolve_sites(TWO, {"h1": "/table"}).sources == {"a": TABLE, "b": DEFAULT}
    assert resolve_sites(TWO).sources == {"a": REGISTRATION, "b": DEFAULT}


def test_the_bookies_of_a_machine_share_its_location() -> None:
    found = resolve_sites([RegisteredBookie("a", "h"), RegisteredBookie("b", "h", "/r")])
    assert {str(site.location) for site in found.sites.values()} == {"/default-region/r"}
    assert found.problems == ()


def test_locations_that_contradict_each_other_are_named_and_not_used() -> None:
    found = resolve_sites([RegisteredBookie("a", "h", "/x"), RegisteredBookie("b", "h", "/y"), RegisteredBookie("c", "other", "/x")])
    assert found.problems == ("machine h has several locations (/default-region/x: a; /default-region/y: b)",)
    assert found.sites["a"].location == found.sites["b"].location == DEFAULT_LOCATION
    assert str(found.sites["c"].location) == "/default-region/x"


def test_a_location_that_cannot_be_read_is_named_and_not_used() -> None:
    found = resolve_sites([RegisteredBookie("a", "h", "rack 1")])
    assert found.sites["a"].location == DEFAULT_LOCATION
    (problem,) = found.problems
    assert problem.startswith("registration, bookie a: 'rack 1' is no network location")


def test_free_disk_is_part_of_the_site() -> None:
    assert resolve_sites(TWO, free_bytes={"a": 7}).sites["a"].free_bytes == 7
