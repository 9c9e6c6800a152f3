"""The EDN reader reads what Jepsen prints and what the usual library reads, and says where a broken file is
broken."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import edn_format
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wrackline.history.jepsen.edn import EdnError, forms
from wrackline.history.jepsen.text import TextError, read
from wrackline.values import Keyword, Map, Text, real, value_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('#jepsen.history.Op{:index 0, :f :poll, :value ([:poll {0 ([0 1])}])}',
         [{"index": 0, "f": "poll", "value": [["poll", {0: [[0, 1]]}]]}]),
        ('{:error [:disconnect #error {:cause "x", :via [{:type java.io.IOException, :at [a.B run "B.java" '
            '2]}]}]}',
         [{"error": ["disconnect", {"cause": "x", "via": [
             {"type": "java.io.IOException", "at": ["a.B", "run", "B.java", 2]}]}]}]),
        ('{:when #inst "2024-01-01T00:00:00.000-00:00" :ch [\\a \\newline \\u00e9 \\{] :r 1/64 :d 1.5M :n '
            '12N}',
         [{"when": "2024-01-01T00:00:00.000-00:00", "ch": ["a", "\n", "é", "{"],
           "r": 1 / 64, "d": 1.5, "n": 12}]),
        ('{:jepsen.nemesis/f :x, :ns/k :a/b, :o #object[java.lang.Object 0x1a "it"] :inf ##Inf}',
         [{"jepsen.nemesis/f": "x", "ns/k": "a/b", "o": ["java.lang.Object", "0x1a", "it"],
           "inf": float("inf")}]),
        ("; a comment\n{:a #{1 2} #_ :b #_ 3 :c nil} ; the end\n#_ {:d 1}\n{:e "
            "true}", [{"a": {1, 2}, "c": None}, {"e": True}]),
        ('[{:a 1}\n ; why\n {:a "two\nlines; \\"quoted\\" {"}]', [{"a": 1}, {"a": 'two\nlines; "quoted" {'}]),
        ("({:a 1} {:a 2})", [{"a": 1}, {"a": 2}]),
        ("{[1 2] 3, {:x 1} 4}", [{(1, 2): 3, Map(x=1): 4}]),
    ],
)  # fmt: skip
def test_the_forms_that_jepsen_prints_are_read(text: str, expected: list[Any]) -> None:
    assert list(forms(text.splitlines(keepends=True))) == list(value_of(expected))


def _plain(form: Any) -> Any:
    match form:
        case edn_format.Keyword() | edn_format.Symbol():
            return Keyword(form.name)
        case Mapping():
            return Map((_plain(key), _plain(value)) for key, value in form.items())
        case str():
            return Text(form)
        case float():
            return real(form)
        case bool() | None:
            return form
    return tuple(_plain(item) for item in form) if hasattr(form, "__iter__") else form


words = st.from_regex(r"[a-z][a-z0-9*+!_?-]{0,6}", fullmatch=True)
atoms = (
    st.integers(-(2**63), 2**63 - 1).map(str)
    | st.sampled_from(["nil", "true", "false", "1.25", "-3e2"])
    | words.map(":{}".format)
    | st.tuples(words, words).map(":{0[0]}/{0[1]}".format)
    | st.text(
        st.characters(codec="ascii", exclude_characters='\\"\x00', exclude_categories=["Cc"]), max_size=6
    ).map('"{}"'.format)
)
texts = st.recursive(
    atoms,
    lambda inner: (
        st.lists(inner, max_size=4).map(" ".join).map("[{}]".format)
        | st.lists(inner, max_size=4).map(", ".join).map("({})".format)
        | st.dictionaries(words, inner, max_size=3).map(
            lambda pairs: "{" + ", ".join(f":{key} {value}" for key, value in pairs.items()) + "}"
        )
    ),
    max_leaves=12,
)


@settings(max_examples=150)
@given(texts)
def test_it_reads_what_the_library_reads(text: str) -> None:
    [found] = forms(["{:it " + text + "}"])
    assert found["it"] == _plain(edn_format.loads(text))


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("{:a 1}\n{:a 2\n", 2, "within what line 2 begins; was it cut off"),
        ("{:a 1}\n{:a [2}\n", 2, r"} where \] must close"),
        ("{:a 1}\n}\n", 2, "} closes nothing"),
        ('{:a 1}\n{:b "x}\n{:c 2}\n', 2, "a string that begins here has no end"),
        ("{:a 1 :b}", 1, "a map with 3 forms"),
        ("[{:a 1}\n{:a 2}\n", 2, "was it cut off"),
    ],
)
def test_a_broken_file_is_broken_somewhere(text: str, line: int, why: str) -> None:
    with pytest.raises(EdnError, match=why) as failed:
        list(forms(text.splitlines(keepends=True)))
    said = failed.value.line
    assert said == line or "cut off" in why


def test_a_compressed_history(tmp_path: Path) -> None:
    path = tmp_path / "history.edn.gz"
    path.write_bytes(gzip.compress(b"{:type :ok}\n" * 3))
    assert len(list(read(path))) == 3
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(TextError, match="not readable as gzip"):
        list(read(path))
    path = tmp_path / "history.json.gz"
    path.write_bytes(gzip.compress(b'[{"type": "ok"}]'))
    assert list(read(path)) == [{"type": "ok"}]


def test_what_is_no_text_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "test.jepsen"
    path.write_bytes(b"JEPSEN\x00\x01\xff\xfe")
    with pytest.raises(TextError, match=r"give history\.edn"):
        list(read(path))
