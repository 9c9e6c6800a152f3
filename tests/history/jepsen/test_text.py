"""Histories are read from and written to EDN and JSON."""

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
