"""The names of relations through schema changes."""

from __future__ import annotations

import pytest

from triplicate.sql.backup.relation_names import RelationNames, follow


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ((), {"a": "a", "B": "B"}),
        (("alter table a rename to c",), {"a": "c", "A": "c", "b": "b"}),
        (("alter table a rename to c", "create table a(x)", "alter table a rename to d", "drop table d"), {"a": "c"}),
        (("alter table a rename to c", "alter table b rename to A", "alter table c rename to b"), {"a": "b", "b": "A"}),
        (("drop table a", "create table a(x)", "alter table a rename to b2"), {"a": None}),
        (("alter table a rename to c", 'drop table "C"'), {"a": None}),
        (("drop view if exists a", "create view a as select 1"), {"a": None}),
        (("create index i on a(x)", "drop index i", "alter table a add column y", "create trigger r after insert on a begin select 1; end"),
         {"a": "a"}),
    ],
)  # fmt: skip
def test_a_relation_keeps_its_identity_under_other_names(changes: tuple[str, ...], names: dict[str, str | None]) -> None:
    moved: dict[str, str | None] = {}
    for change in changes:
        moved = follow(moved, change)
    found = RelationNames(0, 0, moved)
    assert {name: found.now(name) for name in names} == names
