"""Transactions of a file: who decides, and in which words."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.columns import Transactions
from wrackline.checkers.exact.transactions.placement import Limits
from wrackline.checkers.jvm.answers import Judgement
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.classpath import JvmUnavailable
from wrackline.checkers.models.protocol import Operation, Outcome
from wrackline.harness.check.formatting import details
from wrackline.harness.check.objects import Asking
from wrackline.harness.check.results import Verdict
from wrackline.harness.check.transactions import decide_transactions
from wrackline.harness.cli.verdicts.check import check_command
from wrackline.harness.jepsen.object_histories import transactions

NO_TIME, ENOUGH = Limits(0.0, 1 << 30), Limits(60.0, 1 << 30)
STRICT, SNAPSHOTS = "strict-serializable", "snapshot-isolation"


class Elle:
    """Says what it was told to say."""

    def __init__(self, says: Judgement | None) -> None:
        self._says = says
        self.asked: list[str] = []

    def serializable(
        self, _model: str, _txns: Transactions, *, consistency: str, deadline_s: float
    ) -> Judgement:
        assert deadline_s >= 0
        assert self._says is not None
        self.asked.append(consistency)
        return self._says

    def bridge(self) -> Bridge:
        if self._says is None:
            raise JvmUnavailable("no Java found")
        return cast(Bridge, self)


def txn(n: int, inv: int, ret: int, *mops: tuple[str, str, int | None]) -> Operation:
    argument = tuple((f, key, value if f == "w" else None) for f, key, value in mops)
    return Operation(n, "txn", argument, mops, inv, ret, Outcome.OK, at=inv, until=ret)


SKEW = [txn(0, 1, 3, ("r", "x", None), ("w", "y", 1)), txn(1, 2, 4, ("r", "y", None), ("w", "x", 1))]
GOOD = [txn(0, 1, 2, ("w", "x", 1)), txn(1, 3, 4, ("r", "x", 1))]
TWO_ORDERS = [
    *(txn(n, 1, 20, ("w", "x", n)) for n in range(3)),
    *(txn(3 + n, 2, 21, ("r", "x", n), ("w", f"y{n}", 1)) for n in range(3)),
    txn(9, 22, 23, ("w", "z", 1)),
    txn(9, 24, 25, ("w", "z", 2)),
    txn(8, 26, 27, ("r", "z", 1)),
]


def verdict(
    done: list[Operation], elle: Elle, *, level: str = STRICT, by: str = "", limits: Limits = ENOUGH
) -> Verdict:
    asking = Asking("rw-register", None, by, None, False, limits, elle.bridge, lambda _line: None, level)
    return decide_transactions(transactions(done, "rw-register"), asking)


@pytest.fixture
def search_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing follows, and the search looks at its clock all the time."""
    where = "wrackline.checkers.exact.transactions"
    monkeypatch.setattr(f"{where}.decide.begin", lambda _graph, _reading: None)
    monkeypatch.setattr(f"{where}.decide.saturate", lambda _graph, _reading: True)
    monkeypatch.setattr(f"{where}.placement._STEPS", 1)


VALID, INVALID = Judgement(Answer.VALID), Judgement(Answer.INVALID, refuted=("serializable",))


def test_what_is_ours_to_decide_needs_no_jvm() -> None:
    nobody = Elle(None)
    for level in (STRICT, SNAPSHOTS, "read-committed"):
        found = verdict(GOOD, nobody, level=level)
        assert (found.answer, found.by, found.promise) == (Answer.VALID, "search", level)
    found = verdict(SKEW, nobody)
    assert (found.answer, found.by, [one.type for one in found.anomalies]) == (
        Answer.INVALID,
        "exact",
        ["G2-item"],
    )


def test_a_level_without_an_order_is_elles() -> None:
    elle = Elle(VALID)
    found = verdict(SKEW, elle, level=SNAPSHOTS)
    assert (found.answer, found.by, elle.asked) == (Answer.VALID, "Elle", [SNAPSHOTS])
    with pytest.raises(JvmUnavailable):
        verdict(SKEW, Elle(None), level=SNAPSHOTS)
    assert verdict(SKEW, Elle(None), level=SNAPSHOTS, by="search").answer is Answer.UNKNOWN


@pytest.mark.usefixtures("search_alone")
@pytest.mark.parametrize(
    ("elle", "answer", "by", "words"),
    [
        (Elle(VALID), Answer.UNKNOWN, "search", "no answer within 0 s"),
        (Elle(VALID), Answer.UNKNOWN, "search", "Elle finds nothing, which is no proof"),
        (
            Elle(Judgement(Answer.UNKNOWN, "too late")),
            Answer.UNKNOWN,
            "search",
            "Elle does not decide: too late",
        ),
        (Elle(INVALID), Answer.INVALID, "Elle", "our own search did not decide: no answer within 0 s"),
        (Elle(None), Answer.UNKNOWN, "search", "Elle could be asked: no Java found"),
    ],
)
def test_elle_is_asked_where_our_search_does_not_decide(
    elle: Elle, answer: Answer, by: str, words: str
) -> None:
    found = verdict(TWO_ORDERS, elle, limits=NO_TIME)
    assert (found.answer, found.by, words in found.why + found.note) == (answer, by, True), found


def test_who_is_asked_alone_decides_alone() -> None:
    assert verdict(GOOD, Elle(INVALID), by="elle").by == "Elle"
    elle = Elle(INVALID)
    assert verdict(SKEW, elle, by="search").by == "exact"
    assert elle.asked == []


@pytest.mark.usefixtures("search_alone")
def test_where_the_search_got_stuck_is_told() -> None:
    lines = "\n".join(details(verdict(TWO_ORDERS, Elle(None))))
    assert "there is no place for process 9 :txn [[w z 2]] (operation 24 to 25)" in lines
    assert (
        "when the object holds 1 in key z, which process 8 has yet to read (operation 26), none of" in lines
    )


def check(tmp_path: Path, text: str, *arguments: str) -> Result:
    file = tmp_path / "history.edn"
    file.write_text(text)
    return CliRunner().invoke(check_command, [*arguments, str(file)], standalone_mode=False)


def history(*done: tuple[str, str]) -> str:
    return "\n".join(
        f"{{:process {n} :type :{kind} :f :txn :value {value}}}"
        for n, (begun, ended) in enumerate(done)
        for kind, value in (("invoke", begun), ("ok", ended))
    )


@pytest.mark.parametrize(
    ("model", "done", "said"),
    [
        (
            "rw-register",
            [("[[:w :x 1]]",) * 2, ("[[:r :x nil]]", "[[:r :x 2]]")],
            "T1 read 2 of key x, which nobody wrote",
        ),
        (
            "list-append",
            [("[[:append :x 1]]",) * 2, ("[[:r :x nil]]", "[[:r :x [1 7]]]")],
            "T1 read 7 of key x, which nobody",
        ),
        (
            "rw-register",
            [("[[:r :x nil] [:w :x 1]]", "[[:r :x 1] [:w :x 1]]")],
            "T1 read 1 of key x before it wrote that",
        ),
        (
            "rw-register",
            [("[[:w :x 1] [:r :x nil]]", "[[:w :x 1] [:r :x 2]]")],
            "by what it did itself it is 1",
        ),
        (
            "rw-register",
            [("[[:w :x 1]]",) * 2, ("[[:w :x 1]]",) * 2, ("[[:r :x nil]]", "[[:r :x 1]]")],
            "operations 1 and 3 both wrote 1 to key x",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(
    tmp_path: Path, model: str, done: list[tuple[str, str]], said: str
) -> None:
    for level in (STRICT, SNAPSHOTS):
        found = check(tmp_path, history(*done), "-m", model, "--consistency", level)
        assert said in found.output
        assert found.return_value == (3 if "both" in said else 1)
        assert "Assert" not in found.output


def test_a_level_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    found = check(tmp_path, "", "-m", "rw-register", "--consistency", "strictish")
    assert "there is no consistency 'strictish', only strict-serializable" in str(found.exception)


def test_each_of_several_levels_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    stale = history(("[[:w :x 1]]",) * 2, ("[[:w :x 2]]",) * 2, ("[[:r :x nil]]", "[[:r :x 1]]"))
    levels = "serializable, strict-serializable,strong-session-serializable,serializable"
    found = check(tmp_path, stale, "-m", "rw-register", "--consistency", levels)
    assert [line for line in found.output.splitlines() if not line.startswith("  ")] == [
        "history: serializable (search, 3 transactions)",
        "history: not strict-serializable (exact, 3 transactions)",
        "history: strong-session-serializable (search, 3 transactions)",
    ]
    assert found.return_value == 1


def test_what_was_decided_stays_where_nobody_is_there_to_decide_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrackline.harness.check.files.Judge._bridge", lambda _: Elle(None).bridge())
    skew = """\
{:process 0 :type :invoke :f :txn :value [[:r :x nil] [:w :y 1]]}
{:process 1 :type :invoke :f :txn :value [[:r :y nil] [:w :x 1]]}
{:process 0 :type :ok :f :txn :value [[:r :x nil] [:w :y 1]]}
{:process 1 :type :ok :f :txn :value [[:r :y nil] [:w :x 1]]}"""
    found = check(tmp_path, skew, "-m", "rw-register", "--consistency", f"serializable,{SNAPSHOTS}")
    assert "history: not serializable (exact, 2 transactions)" in found.output
    assert "no Java found" in found.output
    assert found.return_value == 1


def test_any_of_several_levels_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    found = check(tmp_path, "", "-m", "rw-register", "--consistency", "serializable,,snapshots")
    assert "there is no consistency '', only" in str(found.exception)
