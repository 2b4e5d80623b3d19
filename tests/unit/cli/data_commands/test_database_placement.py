"""Options and texts of the placement of databases."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from triplicate.cli.data_commands.database_placement import alter, copies_text, placed, placement_text
from triplicate.replica import Candidate, missing_copies
from triplicate.sql import EVERYWHERE, DatabaseInfo, ListedNode, NodeEntry, Placement

NODES = [ListedNode(NodeEntry(name), f"{name}:5432", knows_placement=True) for name in ("n1", "n2", "n3")]
COPIES = (Candidate("n1", "n1:5432", 5, "leader"), Candidate("n2", "n2:5432", 5, "diverged"))
SHOP = DatabaseInfo("shop", b"i" * 16, "database.shop", 1, nodes=COPIES, placement=Placement(3, ("n1", "n2"), ("n3",)))


def test_options_change_what_they_name_and_nothing_else() -> None:
    former = Placement(2, ("n1", "n2"), ("n3",), 5.0, "n1")
    assert placed(former, None, (), None) == former
    assert placed(former, "all", ("none",), 1.0, "none") == Placement(None, ("n1", "n2"))
    assert placed(EVERYWHERE, "3", ("n9", "n8", "n9"), 2.0, "n1") == Placement(3, (), ("n8", "n9"), 2.0, "n1")


@pytest.mark.parametrize("copies", ["0", "-1", "many", "1.5", "٢"])
def test_a_number_of_copies_is_a_positive_number_or_all(copies: str) -> None:
    answer = CliRunner().invoke(alter, ["shop", f"--copies={copies}"])
    assert answer.exit_code == 2
    assert "neither a number of copies nor all" in answer.output


def test_an_alteration_of_nothing_is_wrong_usage() -> None:
    answer = CliRunner().invoke(alter, ["shop"])
    assert answer.exit_code == 2
    assert "nothing to change" in answer.output


def test_copies_are_counted_against_the_expected_number() -> None:
    assert copies_text(SHOP, NODES) == "1 of 3 copies, 0 of 1 read-only"
    assert missing_copies(SHOP.placement, NODES, [one.node_id for one in COPIES]) == ["n3"]
    everywhere = DatabaseInfo("shop", b"i" * 16, "database.shop", 1, nodes=COPIES)
    assert copies_text(everywhere, [NODES[0], NODES[1]]) == "1 of 2 copies"
    absent, draining = ListedNode(NodeEntry("n4")), ListedNode(NodeEntry("n5", is_draining=True))
    guest = ListedNode(NodeEntry("n6", is_guest=True))
    assert copies_text(everywhere, [*NODES, absent, draining, guest]) == "1 of 4 copies", "one that does not run is expected to come back"
    assert missing_copies(EVERYWHERE, [*NODES, absent, draining, guest], ["n1", "n2"]) == ["n3", "n4"]


def test_a_placement_is_shown_in_words() -> None:
    assert placement_text(EVERYWHERE) == "a copy on every node"
    assert placement_text(Placement(2, (), ("n3",), 2.5, "n1")) == "2 copies, read-only on n3, weight 2.5, preferred leader n1"
