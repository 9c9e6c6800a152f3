"""What is done when a night is over: with a real server for the webhook, and folders for the rest."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.harness.nights.test_night import STAND_IN, night
from wrackline.harness.cli.runs.suite import STAMP, suite_command
from wrackline.harness.nights import subprocesses
from wrackline.harness.nights.journal import Did, read
from wrackline.harness.notifications import webhook
from wrackline.harness.records import JOURNAL
from wrackline.harness.specification.spec import SpecError

SECRET = "x7secretx7"


class Chat(ThreadingHTTPServer):
    """Answers each request with ``status``."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.told: list[dict[str, Any]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{SECRET}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Chat)
        self.server.told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    monkeypatch.setattr(subprocesses, "_ENTRY", (sys.executable, str(STAND_IN)))
    monkeypatch.setattr(webhook, "WAIT_S", 0.01)
    with Chat() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        monkeypatch.setenv("CHAT", server.address)
        yield server
        server.shutdown()
        thread.join()


def suite(folder: Path, *specs: tuple[str, str], **after: Any) -> Result:
    file = night(folder, *specs, lasts=0.2, repeat=0, twins=False, after=after)
    results = folder / "results"
    while (results / "nights" / f"n-{datetime.now(UTC):{STAMP}}").exists():
        time.sleep(0.05)  # the folder of a night is named by the second
    asked = [str(file), "--results", str(results)]
    done = CliRunner().invoke(suite_command, asked, standalone_mode=False)
    assert done.exception is None, done.output
    return done


def nights(folder: Path) -> list[Path]:
    return sorted((folder / "results" / "nights").iterdir())


def test_all_that_is_done_for_others(tmp_path: Path, chat: Chat) -> None:
    metrics, store = tmp_path / "wrackline.prom", tmp_path / "store"
    after = {
        "webhook": {"url_env": "CHAT"},
        "metrics": str(metrics),
        "upload": str(store),
        "link": "https://ci/results/",
        "prune": {"days": 7},
    }
    done = suite(tmp_path, ("good", "kill"), ("bad", "pause"), **after)
    assert done.return_value == 1
    [here] = nights(tmp_path)
    [run] = [path for path in (here / "runs").iterdir() if path.name.endswith("-bad")]

    [told] = chat.told
    assert told["text"] == "n: 1 new violation\nbad: 1 faults"
    families = {one.name: one for one in text_string_to_metric_families(metrics.read_text())}
    counts = {one.labels["verdict"]: one.value for one in families["wrackline_night_runs"].samples}
    assert (counts["pass"], counts["violation"], counts["infrastructure"]) == (1, 1, 0)
    copied = store / here.name / "runs" / run.name / "verdict.json"
    assert copied.read_bytes() == (run / "verdict.json").read_bytes()
    assert (store / here.name / "junit.xml").exists()
    assert "after.prune: 0 runs shrunk, 0 removed" in done.output

    [issue] = json.loads((here / "codequality.json").read_text())
    assert (issue["check_name"], issue["severity"]) == ("lost-write", "blocker")
    assert read(here).ended
    everything = b"".join(path.read_bytes() for path in here.rglob("*") if path.is_file())
    assert SECRET.encode() not in everything + done.output.encode()


def test_only_what_no_night_before_has_shown_is_told(tmp_path: Path, chat: Chat) -> None:
    hook = {"webhook": {"url_env": "CHAT"}}
    suite(tmp_path, ("good", "kill"), **hook)
    assert chat.told == [], "there is nothing to tell"
    suite(tmp_path, ("bad", "pause"), **hook)
    suite(tmp_path, ("bad", "pause"), **hook)
    assert [each["text"] for each in chat.told] == ["n: 1 new violation\nbad: 1 faults"]
    first, second = ((here / "summary.markdown").read_text() for here in nights(tmp_path)[1:])
    assert "| bad | **violation** (new) | 1 faults |" in first
    assert "| bad | **violation** | 1 faults |" in second


def test_what_nobody_took_is_told_the_next_night_and_changes_no_verdict(tmp_path: Path, chat: Chat) -> None:
    hook = {"webhook": {"url_env": "CHAT", "tries": 2}}
    chat.status = 500
    failed = suite(tmp_path, ("bad", "pause"), **hook)
    assert failed.return_value == 1
    assert (
        "after.webhook failed, which changes no verdict: the webhook did not take the message after 2 of 2 "
        "tries: HTTP status 500" in failed.output
    )
    assert SECRET not in failed.output
    assert len(chat.told) == 2
    chat.status = 200
    suite(tmp_path, ("bad", "pause"), **hook)
    assert len(chat.told) == 3
    suite(tmp_path, ("bad", "pause"), **hook)
    assert len(chat.told) == 3


def test_a_store_that_fails_keeps_nothing_else_from_being_done(
    tmp_path: Path, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the bucket is\non fire")

    monkeypatch.setattr("wrackline.harness.nights.post_actions.upload", broken)
    hook = {"webhook": {"url_env": "CHAT"}, "upload": str(tmp_path / "store")}
    done = suite(tmp_path, ("good", "kill"), ("bad", "pause"), **hook)
    assert done.return_value == 1
    assert "after.upload failed, which changes no verdict: the bucket is on fire" in done.output
    assert len(chat.told) == 1


def test_a_night_that_was_killed_at_its_end_is_ended_first(tmp_path: Path, chat: Chat) -> None:
    (tmp_path / "secret").write_text(f"{chat.address}\n")
    hook = {"webhook": {"url_file": str(tmp_path / "secret")}}
    suite(tmp_path, ("bad", "pause"), **hook)
    assert len(chat.told) == 1
    [here] = nights(tmp_path)
    journal = here / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    assert json.loads(lines[-1])["did"] == Did.TOLD
    journal.write_bytes(b"".join(lines[:-1]))
    again = suite(tmp_path, ("bad", "pause"), **hook)
    assert "going on with" in again.output
    assert nights(tmp_path) == [here]
    assert read(here).ended
    assert len(read(here).results) == 1

    journal.write_bytes(b"".join(lines[:-1]))
    (here / "night.json").unlink()  # as in CI, where the journals alone come from a cache
    suite(tmp_path, ("bad", "pause"), **hook)
    assert len(nights(tmp_path)) == 2


@pytest.mark.parametrize(
    ("after", "said"),
    [
        ({"webhook": {"url_env": "NO_SUCH"}}, "the variable NO_SUCH holds no address"),
        ({"webhook": {"url_file": "/no/such"}}, "/no/such: cannot be read: No such file"),
        ({"webhook": {"url": f"https://x/{SECRET}"}}, "the address is a secret"),
        ({"webhook": f"https://x/{SECRET}"}, "the address is a secret"),
        ({"webhook": {"url_env": "A", "url_file": "b"}}, "give one of url_env and url_file"),
        ({"metrics": "/no/such/x.prom"}, "/no/such: no such folder"),
        ({"upload": "nosuch://bucket/x"}, "after.upload: nosuch://bucket/x"),
        ({"prune": {"day": 3}}, "did you mean 'days'?"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_run(
    tmp_path: Path, chat: Chat, after: dict[str, Any], said: str
) -> None:
    file = night(tmp_path, ("good", "kill"), after=after)
    asked = [str(file), "--results", str(tmp_path / "results")]
    done = CliRunner().invoke(suite_command, asked, standalone_mode=False)
    assert isinstance(done.exception, SpecError), done.output
    [mistake] = done.exception.mistakes
    assert said in mistake
    assert SECRET not in mistake
    assert not (tmp_path / "results" / "nights").exists()
    assert chat.told == []
