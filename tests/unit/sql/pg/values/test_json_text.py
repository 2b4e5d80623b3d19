"""Parts of JSON are as written, and jsonb has one form."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triplicate.errors import SqlError
from triplicate.sql.core.interface import Value
from triplicate.sql.pg.values import json_text
from triplicate.sql.pg.values.json_text import json_part, json_part_text, normal_json

TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), inner),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("value", "key", "part", "text"),
    [
        ('{"a":1,"a": [2, 3]}', "a", "[2, 3]", "[2, 3]"),
        ('{ "x" : "y" ,"a\\"b":{"c":1}}', 'a"b', '{"c":1}', '{"c":1}'),
        ('{"c\\\\d":5}', "c\\d", "5", "5"),
        ('{"":"v"}', "", '"v"', "v"),
        ('{"a":null}', "a", "null", None),
        ("[1, 2 ,3]", -1, "3", "3"),
        ("[1, 2 ,3]", 1, "2", "2"),
        ("[]", 0, None, None),
        ("[1,2]", -3, None, None),
        ("[1]", "a", None, None),
        ('{"1":2}', 1, None, None),
        (5, "a", None, None),
        (' {"$.a":1} ', "$.a", "1", "1"),
    ],
)
@pytest.mark.parametrize("is_jsonb", [False, True])
def test_a_part_is_as_it_is_written(*, value: Value, key: Value, part: str | None, text: str | None, is_jsonb: bool) -> None:
    assert json_part(value, key, is_jsonb=is_jsonb) == part
    assert json_part_text(value, key, is_jsonb=is_jsonb) == text


def test_a_scalar_of_jsonb_is_its_only_element() -> None:
    assert json_part('"s"', 0, is_jsonb=True) == json_part('"s"', -1, is_jsonb=True) == '"s"'
    assert json_part_text(7, 0, is_jsonb=True) == "7"
    assert json_part('"s"', 1, is_jsonb=True) is None
    assert json_part('"s"', 0, is_jsonb=False) is None


@given(tree=TREES)
def test_every_part_of_the_one_form_is_in_that_form(tree: object) -> None:
    text = normal_json(json.dumps(tree))
    assert json.loads(text) == tree
    assert normal_json(text) == text
    parts = [(name, tree[name]) for name in tree] if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    for key, part in parts:
        assert json_part(text, key, is_jsonb=True) == normal_json(json.dumps(part))
        as_text = None if part is None else part if isinstance(part, str) else normal_json(json.dumps(part))
        assert json_part_text(text, key, is_jsonb=True) == as_text


@pytest.mark.parametrize(
    ("part", "text"), [("1.50", "1.50"), ("-0", "-0"), ("1E+5", "1E+5"), ("true", "true"), ("false", "false"), (r'"A"', "A")]
)
def test_a_scalar_is_as_it_is_written(part: str, text: str) -> None:
    document = f'{{"a": {part}, "b": [{part}]}}'
    assert (json_part(document, "a", is_jsonb=False), json_part_text(document, "a", is_jsonb=False)) == (part, text)
    assert json_part_text(document, "b", is_jsonb=False) == f"[{part}]"


def test_many_fields_of_one_text_read_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    class Counting(json.JSONDecoder):
        def decode(self, s: str, *_: object) -> object:
            read.append(s)
            return super().decode(s)

    monkeypatch.setattr(json_text, "_VALUES", Counting(parse_int=json_text._VALUES.parse_int))
    document = json.dumps({f"field {at}": at for at in range(20)})
    assert [json_part_text(document, f"field {at}", is_jsonb=False) for at in range(20)] == [str(at) for at in range(20)]
    assert read == [document]


@pytest.mark.parametrize(
    ("text", "sqlstate"), [(r'"\u0000"', "22P05"), (r'"\ud800"', "22P02"), (r'{"\udc00": 1}', "22P02"), (f"1{131_072 * '0'}", "22003")]
)
def test_jsonb_has_no_characters_that_text_cannot_hold(text: str, sqlstate: str) -> None:
    with pytest.raises(SqlError) as refused:
        normal_json(text)
    assert refused.value.sqlstate == sqlstate


@pytest.mark.parametrize("text", ["", "{", '{"a"', "[1", "{'a': 1}", "NaN"])
def test_text_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        normal_json(text)
