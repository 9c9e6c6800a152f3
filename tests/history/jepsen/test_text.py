"""Histories are read from and written to EDN and JSON."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wrackline.history.jepsen.text import TextError, read, write
from wrackline.values import Keyword, value_of

OP = {
    "index": 0,
    "type": "ok",
    "process": 3,
    "f": "poll",
    "value": (("poll", {0: ((12, 45),)}),),
    "error": None,
}


def _written(tmp_path: Path, text: str, name: str = "history.edn") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        "{:index 0, :type :ok, :process 3, :f :poll, :value [[:poll {0 [[12 45]]}]], :error nil}",
        "#jepsen.history.Op{:index 0 :type :ok :process 3 :f :poll :value ([:poll {0 [[12 45]]}]) :error "
        "nil}",
        "[{:index 0 :type :ok\n  :process 3 ; the reader\n  :f :poll :value [[:poll {0 [[12 45]]}]] :error "
        "nil}]",
    ],
)
def test_the_shapes_jepsen_writes(tmp_path: Path, text: str) -> None:
    assert list(read(_written(tmp_path, text))) == [OP]


def test_json_is_an_array_or_lines(tmp_path: Path) -> None:
    for text in ('[{"type": "ok"}, {"type": "info"}]', '{"type": "ok"}\n\n{"type": "info"}\n'):
        assert list(read(_written(tmp_path, text, "h.json"))) == [{"type": "ok"}, {"type": "info"}]


READ = {"type": "ok", "value": 1}


JSON = (
    b'{"type": "ok", "value": 1}@{"type":"ok","value":1}@',
    b'[{"type": "ok", "value": 1},@ {"type": "ok", "value": 1.0}]@',
)
PRETTY = b'{@  "type": "ok",@  "value": 1@}@{@  "type": "ok", "value": 1@}@'
EDN = (
    b"{:type :ok :value 1}@{:type :ok, :value 1}@",
    b"[{:type :ok :value 1}@{:type :ok :value 1}]@",
    b"({:type :ok@ :value 1} #jepsen.history.Op{:type :ok :value 1})@",
)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
@pytest.mark.parametrize("zipped", [False, True], ids=["text", "gzip"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        *((name, text) for name in ("h.json", "h.jsonl", "h.json.gz") for text in (*JSON, PRETTY)),
        *((name, text) for name in ("h.edn", "history", "h.log", "h.edn.gz") for text in (*EDN, *JSON)),
    ],
)
def test_a_history_is_known_by_its_content(
    tmp_path: Path, name: str, text: bytes, mark: bytes, zipped: bool, end: bytes
) -> None:
    path = tmp_path / name
    whole = mark + text.replace(b"@", end)
    path.write_bytes(gzip.compress(whole) if zipped else whole)
    assert list(read(path)) == [READ, READ]


def test_an_integer_of_json_has_all_its_digits(tmp_path: Path) -> None:
    large = 10**30 + 1
    for text in (f'{{"value": {large}}}\n', f'[{{"value": {large}}}]', f'{{\n"value": {large}}}'):
        assert list(read(_written(tmp_path, text, "h.json"))) == [{"value": large}]


def test_strings_as_keys_are_still_edn(tmp_path: Path) -> None:
    assert list(read(_written(tmp_path, '{"type" :ok "value" 1}'))) == [READ]


def test_a_long_file_is_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "long.edn"
    path.write_text("".join(f"{{:index {n} :type :ok}}\n" for n in range(4321)))
    told: list[int] = []
    assert [op["index"] for op in read(path, told.append)] == list(range(4321))
    assert told == [2000, 4000]


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("", "h.edn", "empty"),
        ("{:a 1}\n{:a", "h.edn", "line 2: no EDN"),
        ("{:a", "h.edn", "no EDN"),
        ("[1 2]", "h.edn", "item 1 is no operation"),
        ("{:a 1}", "h.json", "an EDN history must not end in .json"),
        ('{"a": 1}\n{"a": ', "h.json", "line 2: no JSON .* was it cut off"),
        ('{"a": NaN}', "h.json", "line 1: no JSON"),
        ('{\n"a": NaN}', "h.json", "NaN is no number of JSON"),
        ('{"a": "x', "h.json", "was it cut off"),
        ("[" * 101 + "]" * 101, "h.json", "nested more than 100 deep"),
        ("[{:a " + "[" * 101, "h.edn", "nested more than 100 deep"),
    ],
)
def test_what_is_no_history_is_one_line(tmp_path: Path, text: str, name: str, said: str) -> None:
    with pytest.raises(TextError, match=said) as failed:
        list(read(_written(tmp_path, text, name)))
    assert "\n" not in str(failed.value)
    assert name in str(failed.value)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.integers(0, 99), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(
    st.lists(st.fixed_dictionaries({"type": st.sampled_from(["ok", "info"]), "value": values}), max_size=3)
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory, ops: list[dict[str, object]]
) -> None:
    path = tmp_path_factory.mktemp("edn") / "h.edn"
    said = [{**op, "type": Keyword(str(op["type"]))} for op in ops]
    assert write(said, path, "edn") == len(ops)
    if ops:
        assert list(read(path)) == list(value_of(ops))
