"""A file that is no specification is refused at once, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from wrackline.harness.specification.spec import SpecError, apply_setting, load_mapping
from wrackline.harness.specification.yaml_text import DEEPEST, MOST_BYTES, NotYaml, read

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: \n " + "- " * 5_000, f"nested more than {DEEPEST} deep"),
        ("a: " + "[" * 5_000 + "]" * 5_000, f"nested more than {DEEPEST} deep"),
        ("a: " + "{b: " * 5_000 + "1" + "}" * 5_000, f"nested more than {DEEPEST} deep"),
        ("a: " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), f"nested more than {DEEPEST} deep"),
        ("a: &a [*a]", f"nested more than {DEEPEST} deep"),
        (BOMB, "more than 100,000 values"),
        ("#" * (MOST_BYTES + 1), "more than 1,000,000 bytes"),
    ],
    ids=["dashes", "lists", "mappings", "just too deep", "in itself", "aliases", "too long"],
)
def test_one_line_and_no_traceback(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(NotYaml, match=why):
        read(text)
    file = tmp_path / "x.yaml"
    file.write_text(text)
    with pytest.raises(SpecError, match=why) as refused:
        load_mapping(file)
    assert str(refused.value).startswith(f"{file}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("name: a\n".encode("utf-16"), "the text is UTF-16 or UTF-32: save it as UTF-8"),
        ("name: a\n".encode("utf-32"), "the text is UTF-16 or UTF-32: save it as UTF-8"),
        (b"name: a\n# \xe9\n", "line 2: byte 0xe9 is not UTF-8: save it as UTF-8"),
        (b"name: a\0b\n", "line 1: the character U\\+0000 is none of a text: take it out"),
    ],
)
def test_bytes_that_are_no_text_are_refused_in_one_line(content: bytes, why: str, tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_bytes(content)
    with pytest.raises(SpecError, match=f"^{file}: {why}$"):
        load_mapping(file)


def test_a_file_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(SpecError, match="more than 1,000,000 bytes"):
        load_mapping(Path("/dev/zero"))


def test_what_is_as_deep_as_it_may_be_is_read() -> None:
    found, depth = read("a: " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1))["a"], 0
    while found:
        found, depth = found[0], depth + 1
    assert depth == DEEPEST - 2
    assert read("a: &x [1]\nb: *x") == {"a": [1], "b": [1]}
    assert read("") is None
    with pytest.raises(SpecError, match="nested more than"):
        apply_setting({}, "a=" + "[" * 5_000 + "]" * 5_000)
