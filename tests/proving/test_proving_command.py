"""``python -m wrackline.proving``: what it writes is a history, and every mistake is one line and
exit code 2."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from wrackline.history import history_files, read_info
from wrackline.history.store.schema import SCHEMA
from wrackline.proving.__main__ import main
from wrackline.proving.mutations.catalogue import mutations
from wrackline.proving.mutations.objects import object_mutations


def test_every_mutation_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    every = [*mutations(), *object_mutations()]
    assert [line.split()[:2] for line in lines] == [[one.anomaly, one.name] for one in every]


@pytest.mark.parametrize(
    "arguments",
    [
        ["make", "DIR", "--operations", "200", "--seed", "3"],
        ["make", "DIR", "--operations", "200", "--drawn"],
        ["make", "DIR", "--workload", "queue"],
        ["make", "DIR", "--workload", "queue", "--drawn", "--seed", "2"],
        ["mutate", "register-not-linearizable", "DIR"],
        ["mutate", "poll-skip", "DIR"],
        ["mutate", "count-too-many", "DIR"],
        ["case", "DIR", "p: a@0 | final a@0"],
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_a_history_is_written_once(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "run"
    call = [str(directory) if one == "DIR" else one for one in arguments]
    assert main(call) == 0
    [file] = history_files(directory)
    assert pq.read_schema(file).names == SCHEMA.names
    assert read_info(directory).test_id == "run"
    assert str(directory) in capsys.readouterr().out
    assert main(call) == 2
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mutate", "poll-skipp", "DIR"], "no mutation and no anomaly is called 'poll-skipp'"),
        (["case", "DIR", "p: a@0 | c: got a"], "so it has an offset"),
        (["make", "DIR", "--operations", "0"], "must be 1 or more"),
        (["make", "DIR", "--seed", "-1"], "the seed 0 or more"),
    ],
    ids=lambda one: one[0] if isinstance(one, list) else "",
)
def test_a_mistake_is_one_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "run"
    assert main([str(directory) if one == "DIR" else one for one in arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not directory.exists()
