"""However a history is written down, every decider gives the same answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.rows import Mop, rows
from wrackline.checkers.jvm.calls import Model as KnossosModel
from wrackline.checkers.models.loading import load
from wrackline.harness.check.files import Judge, Question, models
from wrackline.harness.check.results import Judged, exit_code
from wrackline.harness.cli.verdicts.check import check_command
from wrackline.harness.jepsen.log_histories import logs
from wrackline.harness.jepsen.object_histories import ELLE_MODELS, Asked, Subject, asked, transactions
from wrackline.harness.jepsen.operations import by_key, read_operations
from wrackline.history.jepsen.text import to_edn, to_json
from wrackline.values import Keyword, value_of

Event = dict[str, Any]


def done(process: int, f: str, argument: Any, result: Any, kind: str = "ok") -> list[Event]:
    common = {"process": process, "f": Keyword(f)}
    return [
        {"type": Keyword("invoke"), **common, "value": argument},
        {"type": Keyword(kind), **common, "value": result},
    ]


def word(value: str) -> Keyword:
    return Keyword(value)


@dataclass(frozen=True)
class Case:
    model: str
    good: list[Event]
    bad: list[Event]
    """The same, with one answer that is impossible."""
    settings: dict[str, Any] = field(default_factory=dict)


def reads(model: str, puts: Sequence[Event], argument: Any, good: Any, bad: Any, f: str = "read") -> Case:
    return Case(model, [*puts, *done(1, f, argument, good)], [*puts, *done(1, f, argument, bad)])


WRITES = [*done(0, "write", 1, 1), *done(0, "write", 2, 2)]
MOVED = done(0, "transfer", move := {"from": 0, "to": 1, "amount": 5}, move)
PUT = [*done(0, "enqueue", 1, 1), *done(0, "enqueue", 2, 2)]
R, W = word("r"), word("w")
TXN = done(0, "txn", [[W, 1, 1], [W, 2, 2]], [[W, 1, 1], [W, 2, 2]])
APPENDED = [*done(0, "append", 7, [0, 7]), *done(0, "append", 8, [1, 8])]
FENCED = done(0, "acquire", None, {"client": "a", "fence": 3})
HELD = [*done(0, "acquire", None, None), *done(0, "release", None, None)]
WITH_OWNERS = ("owner-aware-mutex", "reentrant-mutex", "fenced-mutex", "reentrant-fenced-mutex", "semaphore")


def released(client: str) -> list[Event]:
    """A lock that client a has."""
    return [*FENCED, *done(1, "release", None, {"client": client})]


SHARED = done(0, "acquire", {"member": "a"}, {"member": "a", "count": 1})


def accepted(member: str) -> list[Event]:
    """What the record's member answers, or another."""
    return done(1, "accept", {"member": member}, {"member": member})


def inserted(key: int) -> list[Event]:
    """A row of key 1, and one of this key."""
    first, second = [1, [1, None]], [key, [None, 2]]
    return [*done(0, "insert", first, first), *done(1, "insert", second, second)]


CASES = [
    reads("register", WRITES, None, 2, 1),
    reads("cas-register", [*WRITES, *done(0, "cas", [2, 3], [2, 3])], None, 3, 2),
    reads("strict-cas-register", [*WRITES, *done(0, "cas", [1, 3], [1, 3], "fail")], None, 2, 3),
    reads("counter", [*done(0, "add", 2, 2), *done(0, "add", -1, -1)], None, 1, 2),
    reads("set", [*done(0, "add", 1, 1), *done(0, "add", 2, 2)], None, [1, 2], [1]),
    reads("kv", done(0, "put", ["k", 1], ["k", 1]), ["k", None], ["k", 1], ["k", 2], "get"),
    reads("multi-register", TXN, [[R, 1], [R, 2]], [[R, 1, 1], [R, 2, 2]], [[R, 1, 1], [R, 2, None]], "txn"),
    reads("bank", MOVED, None, {0: 5, 1: 15}, {0: 10, 1: 10}),
    reads("fifo-queue", PUT, None, 1, 2, "dequeue"),
    reads("unordered-queue", PUT, None, 2, 3, "dequeue"),
    reads("log", APPENDED, None, [[0, 7], [1, 8]], [[0, 8]]),
    Case("mutex", HELD, [*HELD[:2], *done(1, "acquire", None, None)]),
    *[Case(model, released("a"), released("b")) for model in WITH_OWNERS],
    Case("share", [*SHARED, *accepted("a")], [*SHARED, *accepted("b")]),
]  # fmt: skip
RULES = [
    reads(
        "bank-totals", [*done(0, "read", None, {0: 10, 1: 10}), *MOVED], None, {0: 5, 1: 15}, {0: 5, 1: 10}
    ),
    reads(
        "long-fork",
        done(0, "write", [[W, 1, 1]], [[W, 1, 1]]),
        [[R, 1], [R, 2]],
        [[R, 1, 1], [R, 2, None]],
        [[R, 1, 2], [R, 2, None]],
    ),
    reads("causal", WRITES, None, 2, 1),
    reads("causal-reverse", WRITES, None, [1, 2], [2]),
    reads("sequential", done(0, "write", 5, 5), 5, [5, ["5_1", "5_0"]], [5, ["5_1", None]]),
    reads("monotonic", done(0, "add", None, {"val": 0, "sts": "10"}), None, [{"val": 0, "sts": "10"}], []),
    reads("final-set", done(0, "add", 1, 1), None, [1], []),
    reads("set-full", done(0, "add", 1, 1), None, [1], []),
    reads("queue", PUT, None, [1, 2], [1, 3], "drain"),
    reads("total-queue", PUT, None, [1, 2], [1], "drain"),
    reads("unique-ids", done(0, "generate", None, 1), None, 2, 1, "generate"),
    reads("counter-bounds", [*done(0, "add", 2, 2), *done(0, "add", -1, -1)], None, 1, 2),
    Case("adya", inserted(2), inserted(1)),
]
"""Of checkers, which need no search."""


# --- how a history may be written down


def edn(events: Sequence[Event]) -> bytes:
    return "".join(to_edn(one) + "\n" for one in events).encode()


def plain(events: Sequence[Event]) -> list[Any]:
    return [json.loads(to_json(one)) for one in events]


def numbered(events: Sequence[Event]) -> list[Event]:
    return [{"index": at, "time": at * 1000, **one} for at, one in enumerate(events)]


def named(events: Sequence[Event]) -> list[Event]:
    return [{**one, "process": f"client {one['process']}"} for one in events]


def with_nemesis(events: Sequence[Event]) -> list[Event]:
    found = []
    for one in events:
        found += [
            one,
            {"type": word("info"), "process": word("nemesis"), "f": word("kill"), "value": [word("n1")]},
        ]
    return found


def in_floats(value: Any) -> Any:
    match value:
        case bool():
            return value
        case int():
            return float(value)
        case dict():
            return {key: in_floats(one) for key, one in value.items()}
        case list():
            return [in_floats(one) for one in value]
    return value


FORMS: dict[str, tuple[str, Callable[[Sequence[Event]], bytes]]] = {
    "edn": ("edn", edn),
    "vector": ("edn", lambda events: b"[" + edn(events) + b"]"),
    "list in one line": ("edn", lambda events: b"(" + edn(events).replace(b"\n", b" ") + b")"),
    "ops of Jepsen": ("edn", lambda events: edn(events).replace(b"{:type", b"#jepsen.history.Op{:type")),
    "carriage returns": ("edn", lambda events: edn(events).replace(b"\n", b"\r\n")),
    "byte order mark": ("edn", lambda events: b"\xef\xbb\xbf" + edn(events)),
    "gzip": ("edn", lambda events: gzip.compress(edn(events))),
    "numbered": ("edn", lambda events: edn(numbered(events))),
    "backwards": ("edn", lambda events: edn(numbered(events)[::-1])),
    "named": ("edn", lambda events: edn(named(events))),
    "nemesis": ("edn", lambda events: edn(with_nemesis(events))),
    "below 0": ("edn", lambda events: edn([{**one, "process": ~one["process"]} for one in events])),
    "array": ("json", lambda events: json.dumps(plain(events)).encode()),
    "lines": ("jsonl", lambda events: "\n".join(map(json.dumps, plain(events))).encode()),
    "pretty": ("json", lambda events: "\n".join(json.dumps(one, indent=2) for one in plain(events)).encode()),
    "JSON without its ending": ("log", lambda events: "\n".join(map(json.dumps, plain(events))).encode()),
    "named in JSON": ("json", lambda events: json.dumps(plain(named(events))).encode()),
    "nemesis in JSON": ("json", lambda events: json.dumps(plain(with_nemesis(events))).encode()),
    "floats": ("json", lambda events: json.dumps(in_floats(plain(events))).encode()),
}  # fmt: skip


def write(tmp_path: Path, form: str, events: Sequence[Event]) -> Path:
    ending, written = FORMS[form]
    path = tmp_path / f"history.{ending}"
    path.write_bytes(written(events))
    return path


def judged(path: Path, model: str, **more: Any) -> Judged:
    found = Judged(str(path))
    with Judge(Question(model, **more)) as judge:
        judge.judge(found)
    return found


def test_every_model_of_ours_has_a_case() -> None:
    assert {case.model for case in [*CASES, *RULES]} | set(ELLE_MODELS) == set(models())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", [*CASES, *RULES], ids=lambda case: case.model)
def test_the_answer_does_not_depend_on_how_it_is_written(tmp_path: Path, case: Case, form: str) -> None:
    for events, answer in ((case.good, Answer.VALID), (case.bad, Answer.INVALID)):
        path = write(tmp_path, form, events)
        for by in ("", "search") if case in CASES else ("",):
            found = judged(path, case.model, by=by, **case.settings)
            assert not found.wrong
            assert [one.answer for one in found.verdicts] == [answer], (by, found)
        assert found.left_out == (len(events) if "nemesis" in form else 0)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", [*CASES, *RULES], ids=lambda case: case.model)
def test_a_key_is_an_object_of_its_own(tmp_path: Path, case: Case, form: str) -> None:
    """The good one is of key 1, the bad one of key 2; an operation without a key is a line, and no more."""
    keyed = [
        {**one, "process": 10 * key + one["process"], "value": [key, one["value"]]}
        for key, events in ((1, case.good), (2, case.bad))
        for one in events
    ]
    path = write(tmp_path, form, [*keyed, *done(99, "read", None, None)])
    found = judged(path, case.model, independent=True)
    answers = {one.key[0] if isinstance(one.key, list) else one.key: one.answer for one in found.verdicts}
    assert answers == {1: Answer.VALID, 2: Answer.INVALID}
    assert "with --independent a value is [key value]" in found.wrong
    assert exit_code([found]) == 1


OF_KNOSSOS = [case for case in CASES if case.model in list(KnossosModel) and case.model != "log"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", OF_KNOSSOS, ids=lambda case: case.model)
def test_knossos_is_asked_the_same(tmp_path: Path, case: Case, form: str) -> None:
    def calls(name: str) -> Any:
        read = read_operations(write(tmp_path, name, case.good)).done
        return Subject(None, read, asked(read, case.model, load(case.model))).calls(KnossosModel(case.model))

    first, second = calls("edn"), calls(form)
    assert len(second)
    assert [first.order().tolist(), first.a.tolist(), first.b.tolist(), first.flat.tolist()] == [
        second.order().tolist(), second.a.tolist(), second.b.tolist(), second.flat.tolist()
    ]  # fmt: skip


APPENDS = [
    *done(0, "txn", [[word("append"), 1, 7]], [[word("append"), 1, 7]]),
    *done(1, "txn", [[R, 1]], [[R, 1, [7]]]),
]
REGISTERS = [*done(0, "write", [[W, 1, 7]], [[W, 1, 7]]), *done(1, "read", [[R, 1, None]], [[R, 1, 7]])]


def micro_operations(asked: Asked) -> list[tuple[Mop, ...]]:
    return [one.mops for one in rows(asked.transactions)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("model", "events"), [("list-append", APPENDS), ("rw-register", REGISTERS)])
def test_elle_is_asked_the_same(tmp_path: Path, model: str, events: list[Event], form: str) -> None:
    first = transactions(read_operations(write(tmp_path, "edn", events)).done, model)
    found = transactions(read_operations(write(tmp_path, form, events)).done, model)
    assert len(found.transactions) == 2
    assert [micro_operations(found), found.names] == [micro_operations(first), first.names]
    nameless = [{key: value for key, value in one.items() if key != "f"} for one in events]
    other = transactions(read_operations(write(tmp_path, form, nameless)).done, model)
    assert micro_operations(other) == micro_operations(found)


@pytest.mark.parametrize(
    ("model", "events"),
    [
        ("list-append", [*APPENDS, *done(2, "txn", [[R, 1, None]], [[R, 1, [7, 8]]])]),
        ("rw-register", [*REGISTERS, *done(2, "txn", [[R, 1, None]], [[R, 1, True]])]),
        ("rw-register", [*REGISTERS, *done(2, "txn", [[R, 2, None]], [[R, 2, 7]])]),
    ],
)
def test_a_value_that_nobody_wrote_needs_no_elle(tmp_path: Path, model: str, events: list[Event]) -> None:
    found = judged(write(tmp_path, "edn", events), model)
    [verdict] = found.verdicts
    assert verdict.answer is Answer.INVALID
    [anomaly] = verdict.anomalies
    assert (anomaly.type, anomaly.count) == ("garbage-read", 1)
    assert "which nobody" in anomaly.examples[0].sentence
    assert exit_code([found]) == 1


def test_a_process_that_goes_on_after_an_unknown_outcome_is_another_for_elle(tmp_path: Path) -> None:
    events = [*done(0, "txn", [[W, 1, 7]], None, "info"), *REGISTERS, *REGISTERS[2:]]
    found = transactions(read_operations(write(tmp_path, "edn", events)).done, "rw-register")
    first, second, *others = found.transactions.process.tolist()
    assert first == 0
    assert second not in (0, 1)
    assert others == [1, 1]


def test_what_is_no_transaction_refuses_no_other(tmp_path: Path) -> None:
    bad = [*REGISTERS, *done(2, "txn", [[R, 1, None]], [[R, 1, 8]]), *done(3, "sync", None, None)]
    found = judged(write(tmp_path, "edn", bad), "rw-register")
    assert [one.answer for one in found.verdicts] == [Answer.INVALID]
    assert "operation 7: a transaction's value is a list of [f k v], not nil" in found.wrong


# --- the completion's value


RECORD = {"value": "a", "version": 1}


@pytest.mark.parametrize("by", ["", "search"])
@pytest.mark.parametrize(
    ("model", "put", "take", "f"),
    [
        ("register", done(0, "write", "a", RECORD), RECORD, "read"),
        ("cas-register", done(0, "write", "a", RECORD), RECORD, "read"),
        ("strict-cas-register", done(0, "write", "a", RECORD), RECORD, "read"),
        ("fifo-queue", done(0, "enqueue", None, 17), 17, "dequeue"),
        ("unordered-queue", done(0, "enqueue", None, 17), 17, "dequeue"),
        ("set", done(0, "add", None, 17), [17], "read"),
        ("kv", done(0, "put", ["k", None], ["k", RECORD]), ["k", RECORD], "get"),
    ],
)
def test_what_was_put_is_what_the_completion_says(
    tmp_path: Path, model: str, put: list[Event], take: Any, f: str, by: str
) -> None:
    argument = ["k", None] if model == "kv" else None
    found = judged(write(tmp_path, "edn", [*put, *done(1, f, argument, take)]), model, by=by)
    assert [one.answer for one in found.verdicts] == [Answer.VALID], found


def test_what_a_server_made_of_it_may_be_unknown(tmp_path: Path) -> None:
    """A read of a value that only the operation of unknown outcome can have put there is no violation."""
    events = [
        *done(0, "enqueue", None, 17),
        *done(2, "enqueue", None, None, "info"),
        *done(1, "dequeue", None, 17),
        *done(1, "dequeue", None, 18),
    ]
    [verdict] = judged(write(tmp_path, "edn", events), "fifo-queue").verdicts
    assert verdict.answer is Answer.UNKNOWN
    assert "nobody knows what operation 3 put there" in verdict.why
    assert judged(write(tmp_path, "edn", events[:6]), "fifo-queue").verdicts[0].answer is Answer.VALID
    known = [
        one if one["value"] is not None or one["f"] != "enqueue" else {**one, "value": 17} for one in events
    ]
    assert judged(write(tmp_path, "edn", known), "fifo-queue").verdicts[0].answer is Answer.INVALID


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (done(0, "write", 1, None), "operation 2: this :ok of :write 1 has no :value"),
        (done(0, "write", 1, 2), "operation 2: this :ok of :write 1 says 2"),
        (done(0, "write", word("a"), "b"), "operation 2: this :ok of :write a says b"),
        (
            [done(0, "write", 1, 1)[0], done(0, "read", 1, 1)[1]],
            "operation 2: process 0 completes :read, and",
        ),
        (done(0, "append", 1, 1), "operation 1: register has no :append, only :write, :read"),
        (done(0, "write", 1, 1)[1:], "operation 1: process 0 completes what it did not invoke"),
    ],
)
def test_a_completion_that_contradicts_itself_is_one_line(
    tmp_path: Path, events: list[Event], said: str
) -> None:
    for by in ("", "search"):
        found = judged(write(tmp_path, "edn", events), "register", by=by)
        assert said in found.wrong
        assert not found.verdicts
        assert exit_code([found]) == 2


def test_an_error_in_place_of_a_value_is_none(tmp_path: Path) -> None:
    events = [*done(0, "write", 1, "timed out", "info"), *done(1, "read", None, 1)]
    assert judged(write(tmp_path, "edn", events), "register").verdicts[0].answer is Answer.VALID


def test_a_crash_that_lost_its_key_has_that_of_its_invocation() -> None:
    found = by_key(paired_of([*done(0, "write", [1, 7], None, "info"), *done(1, "read", [1, None], [1, 7])]))
    assert [one.argument for one in found.of[1]] == [7, None]
    assert not found.without


def paired_of(events: Sequence[Event]) -> Any:
    from wrackline.harness.jepsen.operations import paired
    from wrackline.history.jepsen.ops import typed

    return paired(typed(value_of(list(events)))).done


def test_one_object_that_is_refused_refuses_no_other(tmp_path: Path) -> None:
    keyed = [
        *done(0, "write", [1, 7], [1, 7]),
        *done(0, "frob", [2, 7], [2, 7]),
        *done(0, "read", [3, None], [3, 9]),
    ]
    found = judged(write(tmp_path, "edn", keyed), "register", independent=True)
    assert {one.key: one.answer for one in found.verdicts} == {1: Answer.VALID, 3: Answer.INVALID}
    assert "register has no :frob" in found.wrong


def test_any_value_can_be_printed_as_json(tmp_path: Path) -> None:
    odd = f'{{[1 2] #{{1 2.0}}, true {{:k "t"}}, :n {10**30}, #{{}} ##NaN}}'
    path = tmp_path / "odd.edn"
    path.write_text(
        f"{{:process :a :type :invoke :f :write :value {odd}}}"
        f"{{:process :a :type :ok :f :write :value {odd}}}"
        "{:process 1 :type :invoke :f :read} {:process 1 :type :ok :f :read :value 1.0}"
        "{:process :nemesis :type :info :f :kill}"
    )
    found = CliRunner().invoke(check_command, ["-m", "register", "--json", str(path)], standalone_mode=False)
    assert found.return_value == 1
    [file] = json.loads(found.stdout)["files"]
    assert file["left_out"] == 1
    first, second = file["verdicts"][0]["around"]
    assert first["process"] == "a"
    assert first["value"] == {"[1 2]": [1, 2.0], "true": {"k": "t"}, "n": str(10**30), "#{}": None}
    assert second["value"] == 1.0
    found = CliRunner().invoke(check_command, ["-m", "register", str(path)], standalone_mode=False)
    assert "left out: 1 event of Jepsen's own processes" in found.stdout


def test_a_foreign_operation_refuses_no_log_of_a_key(tmp_path: Path) -> None:
    sent = done(0, "send", [[word("send"), 3, 7]], [[word("send"), 3, [0, 7]]])
    polled = done(1, "poll", [[word("poll")]], [[word("poll"), {3: [[0, 8]]}]])
    found = judged(write(tmp_path, "edn", [*sent, *polled, *done(0, "frob", 1, 1)]), "log")
    assert [one.answer for one in found.verdicts] == [Answer.INVALID]
    assert "operation 5: a log has no :frob" in found.wrong
    one_log = [*APPENDED, *done(0, "frob", 1, 1)]
    assert not judged(write(tmp_path, "edn", one_log), "log").verdicts, "it may have changed the log"


# --- words


def test_words_of_others_for_a_register(tmp_path: Path) -> None:
    events = [*done(0, "w", 1, 1), *done(0, "w", 2, 2), *done(1, "r", None, 1)]
    assert judged(write(tmp_path, "edn", events), "register").verdicts[0].answer is Answer.INVALID


def test_micro_operations_under_any_name(tmp_path: Path) -> None:
    for f in ("txn", "read", "update"):
        good = [*done(0, f, [[W, 1, 1]], [[W, 1, 1]]), *done(1, f, [[R, 1]], [[R, 1, 1]])]
        bad = [*good, *done(1, f, [[R, 1]], [[R, 1, None]])]
        answers = [
            judged(write(tmp_path, "edn", one), "multi-register").verdicts[0].answer for one in (good, bad)
        ]
        assert answers == [Answer.VALID, Answer.INVALID]


@pytest.mark.parametrize("form", ["edn", "array"])
@pytest.mark.parametrize("by", ["", "search"])
def test_an_element_may_be_called_empty(tmp_path: Path, form: str, by: str) -> None:
    events = [*done(0, "enqueue", "empty", "empty"), *done(1, "dequeue", None, "empty")]
    assert judged(write(tmp_path, form, events), "fifo-queue", by=by).verdicts[0].answer is Answer.VALID
    nothing = [*done(0, "enqueue", 1, 1), *done(1, "dequeue", None, word("empty"))]
    assert judged(write(tmp_path, form, nothing), "fifo-queue", by=by).verdicts[0].answer is Answer.INVALID


@pytest.mark.parametrize("form", ["edn", "array"])
def test_what_keys_hold_at_first_is_one_rule(tmp_path: Path, form: str) -> None:
    bank = done(0, "read", None, {0: 100, 1: 0})
    kv = done(0, "get", [0, None], [0, 7])
    txn = done(0, "txn", [[R, 0, None]], [[R, 0, 7]])
    for model, events, initial in (
        ("bank", bank, {"0": 100, "1": 0}),
        ("kv", kv, {"0": 7}),
        ("multi-register", txn, {"0": 7}),
    ):
        path = write(tmp_path, form, events)
        assert judged(path, model, initial=initial).verdicts[0].answer is Answer.VALID
        assert judged(path, model, initial={"0": 8}).verdicts[0].answer is Answer.INVALID


@pytest.mark.parametrize("by", ["", "search"])
@pytest.mark.parametrize(
    ("wrote", "read"),
    [(True, 1), (1, True), (False, 0), ("1", 1), ("a", word("a")), ([], {}), (1.0, 1), (None, False)],
)  # fmt: skip
def test_no_value_of_edn_stands_for_another(tmp_path: Path, wrote: Any, read: Any, by: str) -> None:
    for value, answer in ((wrote, Answer.VALID), (read, Answer.INVALID)):
        events = [*done(0, "write", 0.5, 0.5), *done(0, "write", wrote, wrote), *done(1, "read", None, value)]
        assert judged(write(tmp_path, "edn", events), "register", by=by).verdicts[0].answer is answer


def test_keys_of_a_log_that_json_made_texts(tmp_path: Path) -> None:
    sent = done(0, "send", [[word("send"), 3, 7]], [[word("send"), 3, [0, 7]]])
    polled = done(1, "poll", [[word("poll")]], [[word("poll"), {3: [[0, 7]]}]])
    for form in FORMS:
        found = logs(read_operations(write(tmp_path, form, [*sent, *polled])).done)
        assert [log.key for log in found.each] == [3], form
