"""Values of a history are as different from each other as in EDN, and equal to what Python writes for
them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrackline.history.jepsen.edn import forms
from wrackline.values import FALSE, TRUE, Initial, Keyword, Map, Text, key_of, real, spelt, value_of

DISTINCT = (
    'nil true false 0 1 1.0 0.0 1.5 "1" :1 "a" :a [] {} #{} [1] #{1} {1 1} [true] #{true} {true 1} {1 true} '
    '[:a] ["a"] #{"a"} {:a 1} {"a" 1} [[1]] [#{1}] ##NaN ##Inf 123456789012345678901234567890 "" "nil" [nil]'
)


def read(text: str) -> Any:
    [found] = forms([f"{{:it {text}}}"])
    return found["it"]


def test_no_two_values_of_edn_are_one() -> None:
    values = read(f"[{DISTINCT}]")
    for at, one in enumerate(values):
        assert [place for place, other in enumerate(values) if other == one] == [at], spelt(one)
        assert all((other != one) is (place != at) for place, other in enumerate(values)), spelt(one)
    assert len(set(values)) == len(values)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("[1 2]", "(1 2)"),
        ("#{1 2}", "#{2 1}"),
        ("{:a 1 :b 2}", "{:b 2 :a 1}"),
        ("##NaN", "##NaN"),
        ("1", "1N"),
        ('#:x{:a 1 :y/b 2 :_/c 3 "d" {:e 4}}', '{:x/a 1 :y/b 2 :c 3 "d" {:e 4}}'),
    ],
)
def test_what_is_one_value_in_edn_is_one(one: str, other: str) -> None:
    assert read(one) == read(other)
    assert len({read(one), read(other)}) == 1


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("true", True), ("false", False), ("1.0", 1.0), (":a", "a"), ('"a"', "a"), ("[1 :a]", (1, "a")),
        ("#{1}", {1}), ("{:a [true]}", {"a": (True,)}),
    ],
)  # fmt: skip
def test_a_literal_of_python_is_equal_to_what_it_is_in_edn(text: str, literal: Any) -> None:
    assert read(text) == literal
    assert literal == read(text)


def test_a_model_can_match_on_words() -> None:
    match read("[:r :x {:from 1}]"):
        case ("r", "x", {"from": 1}):
            return
    pytest.fail("a keyword does not match its word")


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


@given(plain)
def test_values_of_json_are_hashable_and_stay_what_they_are(given: Any) -> None:
    found = value_of(given)
    assert hash(found) == hash(value_of(given))
    assert value_of(found) == found


def test_json_has_one_number_where_edn_has_two() -> None:
    assert value_of([1.0, -0.0, 1]) == (1, 0, 1)
    assert value_of(True) is TRUE
    assert value_of(False) is FALSE
    assert real(1.0) != 1


def test_a_key_of_a_json_map_is_the_number_that_it_spells() -> None:
    assert [key_of(one) for one in ("0", "-7", "a", "01", "1.0", 3)] == [0, -7, "a", "01", "1.0", 3]
    assert key_of(Text("0")) == "0"
    assert key_of(Keyword("0")) == "0"


def test_what_keys_hold_at_first_may_come_from_json() -> None:
    first = Initial({"0": 100, "x": True}, 10)
    assert [first(key) for key in (0, Text("0"), Keyword("x"), Text("x"), 1)] == [100, 100, TRUE, TRUE, 10]
    assert Initial(None, 10)(0) == 10
    assert Initial(7)(0) == 7


def test_a_map_does_not_change() -> None:
    with pytest.raises(TypeError, match="does not change"):
        Map(a=1)["a"] = 2
