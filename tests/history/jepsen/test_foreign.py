"""What other checkers write is read as operations with their order, outcomes and values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wrackline.harness.jepsen.object_histories import transactions
from wrackline.harness.jepsen.operations import read_operations
from wrackline.history.jepsen.ops import read_in_order
from wrackline.history.jepsen.text import TextError

Row = tuple[str, str, str, Any]
"""(process, type, f, value)"""


def rows(path: Path) -> list[Row]:
    return [(str(one.process), str(one.type), one.f, one.value) for one in read_in_order(path, list)]


def written(tmp_path: Path, text: str, name: str) -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def completions(path: Path) -> list[Row]:
    return [row for row in rows(path) if row[1] != "invoke"]


# --- transactions without times


def test_polysis_transactions_are_concurrent(tmp_path: Path) -> None:
    found = rows(written(tmp_path, "w(1,5,0,7)\nr(2,0,0,7)\n\nr(1,5,3,8)\n", "h.txt"))
    assert [row[:2] for row in found] == [("0/7", "invoke"), ("3/8", "invoke"), ("0/7", "ok"), ("3/8", "ok")]
    assert found[0][3] == (("w", 1, 5), ("r", 2, None)), "an invocation does not know what will be read"
    assert found[2][3] == (("w", 1, 5), ("r", 2, None)), "0 is what a key holds at first"
    assert found[3][3] == (("r", 1, 5),)


def test_a_zero_that_somebody_wrote_is_a_value(tmp_path: Path) -> None:
    found = completions(written(tmp_path, "w(1,0,0,1)\nr(1,0,1,2)\nr(2,0,1,2)\n", "h.txt"))
    assert found[1][3] == (("r", 1, 0), ("r", 2, None))


def test_dbcops_text(tmp_path: Path) -> None:
    text = "// one\n[x:=1 y==?] [x==1]!\n\n---\n// two\n[y:=12]\n"
    assert completions(written(tmp_path, text, "h.hist")) == [
        ("1/1", "ok", "txn", (("w", "x", 1), ("r", "y", None))),
        ("1/2", "fail", "txn", (("r", "x", 1),)),
        ("2/1", "ok", "txn", (("w", "y", 12),)),
    ]


OF_DBCOP = [
    [{"events": [{"Write": {"variable": 0, "version": 1}}, ["r", 1, None]], "committed": True}],
    [{"events": [{"Read": {"variable": 0, "version": 1}}], "committed": False}],
]
OF_2019 = [
    [
        {
            "events": [
                {"write": True, "variable": 0, "value": 1, "success": True},
                {"write": False, "variable": 1, "value": 0, "success": True},
                {"write": False, "variable": 2, "value": 0, "success": False},
            ],
            "success": True,
        }
    ],
    [{"events": [{"write": False, "variable": 0, "value": 1, "success": True}], "success": False}],
]


@pytest.mark.parametrize("sessions", [OF_DBCOP, OF_2019], ids=["now", "2019"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_dbcops_json(tmp_path: Path, sessions: list[Any], wrapped: bool) -> None:
    content = {"params": {"id": 0}, "info": "", "data": sessions} if wrapped else sessions
    assert completions(written(tmp_path, json.dumps(content), "h.json")) == [
        ("1/1", "ok", "txn", (("w", 0, 1), ("r", 1, None))),
        ("2/1", "fail", "txn", (("r", 0, 1),)),
    ]


def test_a_session_keeps_its_order_where_that_is_asked_for(tmp_path: Path) -> None:
    found = transactions(
        read_operations(written(tmp_path, "[x:=1] [x:=2]\n---\n[x==2]\n", "h.hist")).done, "rw-register"
    )
    assert found.transactions.process.tolist() == [1, 1, 2]
    assert [str(one.process) for one in found.done] == ["1/1", "1/2", "2/1"]


# --- operations with times


def call(client: int, asked: Any, said: Any, begin: int, end: int | None) -> dict[str, Any]:
    return {"ClientId": client, "Input": asked, "Call": begin, "Output": said, "Return": end}


def put(key: str, value: str) -> dict[str, Any]:
    return {"Op": 1, "Key": key, "Value": value}


def test_porcupines_operations_are_in_the_order_of_their_times(tmp_path: Path) -> None:
    calls = [
        call(1, {"Op": 0, "Key": "x", "Value": ""}, {"Value": "1"}, 15, 30),
        call(0, put("x", "1"), {"Value": ""}, 10, 20),
        call(2, {"op": "append", "key": "x", "value": "2"}, None, 20, 0),
        call(0, put("x", "3"), {}, 40, (1 << 63) - 1),
    ]
    for name, text in (("a.json", json.dumps(calls)), ("b.json", "\n".join(map(json.dumps, calls)))):
        assert rows(written(tmp_path, text, name)) == [
            ("0", "invoke", "put", ("x", "1")),
            ("1", "invoke", "get", ("x", None)),
            ("2", "invoke", "append", ("x", "2")),
            ("2", "info", "append", ("x", "2")),
            ("0", "ok", "put", ("x", "1")),
            ("1", "ok", "get", ("x", "1")),
            ("0", "invoke", "put", ("x", "3")),
            ("0", "info", "put", ("x", "3")),
        ]


def test_operations_of_one_client_that_overlap_are_of_two_processes(tmp_path: Path) -> None:
    calls = [call(0, {"op": "put", "value": n}, None, n, n + 5) for n in (1, 2)]
    found = rows(written(tmp_path, json.dumps(calls), "h.json"))
    assert [row[1:] for row in found[:2]] == [("invoke", "write", 1), ("invoke", "write", 2)]
    assert len({row[0] for row in found}) == 2


def test_without_a_key_they_are_of_a_register(tmp_path: Path) -> None:
    calls = [
        call(0, {"op": "write", "value": 1}, None, 1, 2),
        call(0, {"op": "read"}, 1, 3, 4),
        call(0, {"op": "read"}, {"value": 1}, 5, 6),
    ]
    found = completions(written(tmp_path, json.dumps(calls), "h.json"))
    assert [row[1:] for row in found] == [("ok", "write", 1), ("ok", "read", 1), ("ok", "read", 1)]


def test_porcupines_events(tmp_path: Path) -> None:
    events = [
        {"ClientId": 0, "Kind": False, "Value": put("x", "1"), "Id": 0},
        {"ClientId": 1, "Kind": False, "Value": {"Op": 0, "Key": "x"}, "Id": 1},
        {"ClientId": 0, "Kind": True, "Value": {}, "Id": 0},
        {"ClientId": 1, "Kind": True, "Value": {"Value": "1"}, "Id": 1},
        {"ClientId": 1, "Kind": False, "Value": put("x", "2"), "Id": 2},
    ]
    assert [row[:3] for row in rows(written(tmp_path, json.dumps(events), "h.json"))] == [
        ("0", "invoke", "put"), ("1", "invoke", "get"), ("0", "ok", "put"), ("1", "ok", "get"),
        ("1", "invoke", "put"), ("1", "info", "put"),
    ]  # fmt: skip


def test_fields_may_be_written_as_elsewhere(tmp_path: Path) -> None:
    calls = [{"client_id": 3, "input": {"op": "set", "value": 1}, "call": 1, "output": None, "return": 2}]
    assert completions(written(tmp_path, json.dumps(calls), "h.json")) == [("3", "ok", "write", 1)]


def request(kind: str, **content: Any) -> dict[str, Any]:
    empty = {"LeaseGrant": None, "LeaseRevoke": None, "Range": None, "Txn": None, "Defragment": None}
    return {"Type": kind, **empty, **content}


def put_of(key: str, value: str, lease: int = 0) -> dict[str, Any]:
    return {"Type": "put-operation", "Put": {"Key": key, "Value": {"Value": value}, "LeaseID": lease}}


def delete_of(key: str) -> dict[str, Any]:
    return {"Type": "delete-operation", "Delete": {"Key": key}}


def range_of(key: str, **more: Any) -> dict[str, Any]:
    return {"Start": key, "End": "", "Limit": 0, **more}


def txn(*done: dict[str, Any], otherwise: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    content = {"Conditions": None, "OperationsOnSuccess": done, "OperationsOnFailure": otherwise}
    return request("txn", Txn=content)


def there(*values: str) -> dict[str, Any]:
    return {"KVs": [{"Key": "k", "Value": {"Value": value}} for value in values], "Count": len(values)}


def answered(*results: dict[str, Any], failure: bool = False, **more: Any) -> dict[str, Any]:
    return {"Txn": {"Failure": failure, "Results": results}, "Revision": 1, "Error": "", **more}


NOTHING: dict[str, Any] = {"KVs": None, "Count": 0, "Deleted": 0}


@pytest.mark.parametrize(
    ("asked", "said", "end", "expected"),
    [
        (txn(put_of("k", "1")), answered(NOTHING), 9, [("ok", "put", ("k", "1"))]),
        (txn(put_of("k", "1")), {"Txn": None, "Error": "late"}, 0, [("info", "put", ("k", "1"))]),
        (txn(delete_of("k")), answered(NOTHING), 9, [("ok", "delete", ("k", None))]),
        (
            request("range", Range=range_of("k", Revision=0)),
            {"Range": there("7")},
            9,
            [("ok", "get", ("k", "7"))],
        ),
        (
            request("range", Range=range_of("k", Revision=0)),
            {"Range": there()},
            9,
            [("ok", "get", ("k", None))],
        ),
        (request("range", Range=range_of("k", Revision=3)), {"Range": there("7")}, 9, []),
        (request("range", Range=range_of("k", End="l")), {"Range": there("7")}, 9, []),
        (request("range", Range=range_of("k")), {"Range": None, "Error": "late"}, 0, []),
        (
            txn(put_of("k", "1"), otherwise=({"Type": "range-operation", "Range": range_of("k")},)),
            answered(there("4"), failure=True),
            9,
            [("ok", "get", ("k", "4"))],
        ),
        (
            txn(put_of("k", "1"), put_of("l", "2")),
            answered(NOTHING, NOTHING),
            9,
            [("ok", "put", ("k", "1")), ("ok", "put", ("l", "2"))],
        ),
        (request("defragment", Defragment={}), {"Revision": 1}, 9, []),
    ],
)
def test_etcds_requests(tmp_path: Path, asked: Any, said: Any, end: int, expected: list[Any]) -> None:
    last = call(1, txn(put_of("end", "1")), answered(NOTHING), 20, 21)
    text = "\n".join(json.dumps(one) for one in (call(1, asked, said, 5, end), last))
    found = completions(written(tmp_path, text, "operations.json"))
    assert [row[1:] for row in found[:-1]] == expected


def test_what_a_lease_may_take_away(tmp_path: Path) -> None:
    calls = [
        call(1, txn(put_of("k", "1", lease=4)), answered(NOTHING), 1, 2),
        call(1, request("leaseRevoke", LeaseRevoke={"LeaseID": 4}), {"Revision": 3}, 3, 4),
    ]
    found = completions(written(tmp_path, "\n".join(map(json.dumps, calls)), "operations.json"))
    assert found[1][1:] == ("info", "delete", ("k", None))


def test_a_history_of_etcd_is_the_folder_of_its_clients(tmp_path: Path) -> None:
    for client in (1, 2):
        text = json.dumps(call(client, txn(put_of("k", str(client))), answered(NOTHING), client, 9))
        written(tmp_path, text, f"client-{client}/operations.json")
    assert [row[3] for row in completions(tmp_path)] == [("k", "1"), ("k", "2")]
    with pytest.raises(TextError, match="one client of several; give the folder of all"):
        rows(tmp_path / "client-1/operations.json")


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("w(1,1,0,0)\nw(1,1,0)\n", "h.txt", "line 2: no r\\(key,value,session,transaction\\)"),
        ("[x:=1]\n[x=1]\n", "h.hist", "line 2: no x:=1, x==1 or x==\\?"),
        ("[x:=1]\nx:=1\n", "h.hist", "line 2: no transactions"),
        ('[[{"events": 3, "committed": true}]]', "h.json", "transaction 1 of session 1 is none of dbcop's"),
        (
            '{"ClientId": 0, "Input": {"op": "frob"}, "Call": 1, "Return": 2}',
            "h.json",
            "frob is none of get",
        ),
        ('{"ClientId": 0, "Input": {"op": 7}, "Call": 1, "Return": 2}', "h.json", "7 is none of get, read"),
        (
            '{"ClientId": 0, "Input": {"x": 7}, "Call": 1, "Return": 2}',
            "h.json",
            "not name an operation",
        ),
        ('{"ClientId": 0, "Input": {"op": "append"}, "Call": 1}', "h.json", "append needs a key"),
        ('{"ClientId": 0, "Input": {"op": "get"}, "Call": "x"}', "h.json", "Call and Return are no numbers"),
        ('{"ClientId": 0, "Input": 7, "Call": 1, "Return": 2}', "h.json", "operation 1 is none"),
        ('{"Id": 0, "Input": {"op": "get"}, "Call": 1}', "h.json", "it has no clientid"),
        ('{"Kind": "return", "Id": 5, "Value": 1}', "h.json", "nothing called 5 before it returns"),
        ('[[{"events": [7], "committed": true}]]', "h.json", "7 neither reads nor writes"),
        ('[[{"events": []}]]', "h.json", "it has no success"),
        ('{"params": {}, "data": [7]}', "h.json", "session 1 is no list of transactions but 7"),
        (
            json.dumps(call(1, txn({"Type": "range-operation", "Range": {"Start": "k"}}), answered(), 1, 2)),
            "h.json",
            "operation 1 is none",
        ),
    ],
)
def test_what_is_none_of_theirs_is_one_line(tmp_path: Path, text: str, name: str, said: str) -> None:
    path = written(tmp_path, text, name)
    with pytest.raises(TextError, match=said) as wrong:
        rows(path)
    assert str(wrong.value).startswith(str(path))
    assert "\n" not in str(wrong.value)
