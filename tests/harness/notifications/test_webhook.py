"""New violations told to a real server over HTTP: one that takes them, and ones that do not."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.harness.notifications.summaries import violation
from wrackline.harness.notifications import webhook
from wrackline.harness.notifications.webhook import NotTold, message, post

SECRET = "/services/T0/B0/x7secretx7"


@dataclass
class Chat:
    """What it answers, request by request, and what it was sent."""

    answers: list[Callable[[BaseHTTPRequestHandler], None]]
    taken: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}{SECRET}"


def status(code: int, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(code)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def silent(request: BaseHTTPRequestHandler) -> None:
    time.sleep(1.5)
    request.close_connection = True


def trickle(request: BaseHTTPRequestHandler) -> None:
    """A byte now and then: no single read of the client takes long."""
    try:
        for byte in b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 40:
            request.wfile.write(bytes([byte]))
            request.wfile.flush()
            time.sleep(0.1)
    except OSError:
        pass
    request.close_connection = True


def hang_up(request: BaseHTTPRequestHandler) -> None:
    request.connection.shutdown(socket.SHUT_RDWR)
    request.close_connection = True


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    monkeypatch.setattr(webhook, "WAIT_S", 0.05)
    one = Chat([])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            one.taken.append((self.path, dict(self.headers), body))
            (one.answers.pop(0) if one.answers else status(200))(self)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        one.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield one
        server.shutdown()
        thread.join()


def told(chat: Chat, *, tries: int = 3, timeout_s: float = 0.5) -> str:
    """The error; empty when it was taken."""
    try:
        post(chat.address, message("n", [violation("canary")], [""]), timeout_s=timeout_s, tries=tries)
    except NotTold as wrong:
        return str(wrong)
    return ""


def test_it_is_posted_once_as_slack_takes_it(chat: Chat) -> None:
    content = message("nightly", [violation("a<b>&c")], ["https://ci/nights/report.html"])
    post(chat.address, content, timeout_s=5, tries=3)
    [(path, headers, body)] = chat.taken
    assert path == SECRET
    assert headers["Content-Type"] == "application/json; charset=utf-8"
    assert json.loads(body) == {
        "text": "nightly: 1 new violation\na&lt;b&gt;&amp;c: 7 acknowledged records are gone",
        "blocks": [
            {"type": "header", "text": {"type": "plain_text", "text": "nightly: 1 new violation"}},
            {
                "type": "section",
                "text": {
                    "type": "mrkdwn",
                    "text": "*a&lt;b&gt;&amp;c*\n7 acknowledged records are gone; again in 3 of 3\n"
                    "lost-write · power-cut · apache-kafka 4.0.0\n<https://ci/nights/report.html|report>",
                },
            },
        ],
    }


def test_a_message_stays_within_what_slack_takes() -> None:
    many = [violation(f"run-{number}", headline="x" * 5000) for number in range(60)]
    content = message("n" * 300, many, [""] * 60)
    assert len(content["blocks"]) == 1 + webhook.MOST + 1
    assert len(content["blocks"][0]["text"]["text"]) <= 150
    assert all(len(block["text"]["text"]) <= 3000 for block in content["blocks"][1:-1])
    assert content["blocks"][-1]["elements"][0]["text"] == "and 50 more"


@pytest.mark.parametrize("first", [status(500), status(503), status(429), silent, hang_up])
def test_what_may_pass_is_tried_again(chat: Chat, first: Callable[[BaseHTTPRequestHandler], None]) -> None:
    chat.answers.append(first)
    assert told(chat) == ""
    assert len(chat.taken) == 2
    assert chat.taken[0][2] == chat.taken[1][2]


@pytest.mark.parametrize(
    ("answer", "tries", "said"),
    [
        (status(500), 3, "after 3 of 3 tries: HTTP status 500"),
        (status(404), 1, "after 1 of 3 tries: HTTP status 404"),
        (status(302, Location="http://127.0.0.1:1/elsewhere"), 1, "after 1 of 3 tries: HTTP status 302"),
        (silent, 3, "after 3 of 3 tries: no answer within 0.3 s"),
        (trickle, 3, "after 3 of 3 tries: no answer within 0.3 s"),
        (hang_up, 3, "after 3 of 3 tries: the connection broke (RemoteDisconnected)"),
    ],
)
def test_nobody_took_it(
    chat: Chat, answer: Callable[[BaseHTTPRequestHandler], None], tries: int, said: str
) -> None:
    chat.answers += [answer] * 3
    began = time.monotonic()
    assert told(chat, timeout_s=0.3).endswith(said)
    assert len(chat.taken) == tries
    assert time.monotonic() - began < 15


def test_nobody_is_there(chat: Chat) -> None:
    with socket.create_server(("127.0.0.1", 0)) as port:
        chat.port = port.getsockname()[1]
    assert told(chat).endswith("after 3 of 3 tries: Connection refused")


def test_the_address_is_in_no_error_and_no_log(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    chat.answers += [status(500), silent, hang_up, status(404)]
    said = told(chat, tries=9, timeout_s=0.3)
    for address in (f"ftp://x{SECRET}", f"http://[::1{SECRET}", f"http://no such host{SECRET}"):
        with pytest.raises(NotTold) as wrong:
            post(address, {}, timeout_s=1, tries=1)
        said += str(wrong.value)
    assert "x7secretx7" not in said + caplog.text
