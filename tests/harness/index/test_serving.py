"""The site served live: it follows the runs, serves nothing else, and ends cleanly."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from upath import UPath

from tests.harness.index.nights import night
from tests.harness.report.browser import Browser
from wrackline.harness.cli.verdicts import site as command
from wrackline.harness.index.serving import Renewal
from wrackline.harness.index.site import Reader

DEADLINE_S = 60.0
MAIN = "import sys; from wrackline.harness.cli.entry import main; sys.argv[0] = 'wrackline'; main()"


@contextmanager
def serving(results: Path, home: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The command, and the address it has said. Without npm, so nothing is fetched."""
    environment = {
        **os.environ,
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PATH": "/nowhere",
    }
    begun = subprocess.Popen(
        [sys.executable, "-c", MAIN, "serve", "--results", str(results), "--port", "0", "--every", "0.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert begun.stdout is not None
        said = begun.stdout.readline()
        found = re.search(r"http://[\d.]+:\d+", said)
        assert found is not None, said + (begun.stderr.read() if begun.stderr else "")
        yield begun, found[0]
    finally:
        if begun.poll() is None:
            begun.kill()
            begun.communicate(timeout=DEADLINE_S)


def ended(begun: subprocess.Popen[str], by: signal.Signals, home: Path) -> None:
    """It ends in good order when it is told to, and leaves nothing."""
    begun.send_signal(by)
    _, said = begun.communicate(timeout=DEADLINE_S)
    assert begun.returncode == 0, said
    assert "Traceback" not in said
    assert list(home.glob("wrackline-site-*")) == []


def get(url: str, path: str, **headers: str) -> tuple[int, bytes]:
    host, _, port = url.removeprefix("http://").partition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=DEADLINE_S)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def served(ten_nights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    home = tmp_path_factory.mktemp("served")
    results = Path(shutil.copytree(ten_nights, home / "results"))
    (home / "secret.html").write_text("nobody's business")
    (results / "elsewhere.html").symlink_to(home / "secret.html")
    (results / "key.pem").write_text("a key")
    with serving(results, home) as (begun, url):
        yield results, url
        ended(begun, signal.SIGTERM, home)


def test_pages_and_the_files_of_runs_are_served(served: tuple[Path, str]) -> None:
    results, url = served
    status, page = get(url, "/")
    assert (status, b"Verdicts by night" in page) == (200, True)
    [report] = results.glob("2026*/report.html")
    status, content = get(url, f"/results/{report.relative_to(results)}")
    assert (status, content) == (200, report.read_bytes())


@pytest.mark.parametrize(
    "path",
    [
        "/results/../secret.html",
        "/results/%2e%2e/secret.html",
        "/results/..%2fsecret.html",
        "/results//etc/passwd",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/secret.html",
        "/results/elsewhere.html",
        "/results/key.pem",
        "/results/nights/",
        "/kept.json/..",
        "/no-such-page.html",
        "/index.html%00",
    ],
)
def test_nothing_else_is_served(served: tuple[Path, str], path: str) -> None:
    status, content = get(served[1], path)
    assert status == 404
    assert b"nobody" not in content
    assert b"root:" not in content


def test_a_page_elsewhere_whose_name_leads_here_gets_nothing(served: tuple[Path, str]) -> None:
    """DNS rebinding: the browser of a user here asks for a name of somebody else."""
    assert get(served[1], "/", Host="evil.example:8642")[0] == 403
    assert get(served[1], "/", Host="evil.example")[0] == 403
    assert get(served[1], "/", Host="localhost:8642")[0] == 200
    assert get(served[1], "/", Host="[::1]:8642")[0] == 200


def test_it_listens_on_loopback_alone(served: tuple[Path, str]) -> None:
    port = int(served[1].rpartition(":")[2])
    listening = [
        line.split()[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for line in Path(table).read_text().splitlines()[1:]
        if line.split()[3] == "0A" and line.split()[1].endswith(f":{port:04X}")
    ]
    assert listening == [f"0100007F:{port:04X}"]


def test_an_open_page_follows_a_run_that_ends(chromium: Browser, served: tuple[Path, str]) -> None:
    results, url = served
    chromium.ask("Page.navigate", url=f"{url}/runs.html")
    count = "document.querySelectorAll('.rows > li').length"
    chromium.until(f"{count} > 0")
    before = chromium.value(count)
    night(results, 30, [{"name": "just-ended"}])
    chromium.until(f"{count} === {before + 1}")
    assert "just-ended" in chromium.value("document.querySelector('.rows > li').dataset.words")
    assert [said for said in chromium.complaints if "favicon" not in said] == []


def test_it_ends_cleanly_by_ctrl_c(ten_nights: Path, tmp_path: Path) -> None:
    """Also while a browser holds its connection open."""
    with serving(ten_nights, tmp_path) as (begun, url):
        host, _, port = url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port))):
            ended(begun, signal.SIGINT, tmp_path)


def test_a_port_that_is_taken_and_no_runs_are_one_line(
    ten_nights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_reader", lambda: Reader("", "left out here"))

    def refused(*arguments: str) -> str:
        done = CliRunner().invoke(command.serve_command, arguments)
        assert done.exit_code == 2
        return done.output

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = refused("--results", str(ten_nights), "--port", port)
        assert "--port and --host name others" in said
    assert "--port and --host name others" in refused("--results", str(ten_nights), "--host", "192.0.2.1")
    assert "no such folder" in refused("--results", str(tmp_path / "nowhere"))


def test_a_night_that_has_just_begun_is_followed_from_its_first_run(tmp_path: Path) -> None:
    results, site = tmp_path / "results", tmp_path / "site"
    results.mkdir()
    site.mkdir()
    renewal = Renewal(UPath(results), site, Reader("", "left out here"), print)
    built = renewal.once()
    assert built is not None
    assert built.runs == 0
    assert "No run yet" in (site / "index.html").read_text()
    assert renewal.once() is None
    stamp = (site / "live.json").read_bytes()
    folder = night(results, 0, [{}])
    built = renewal.once()
    assert built is not None
    assert built.runs == 1
    assert (site / "live.json").read_bytes() != stamp
    recording = folder / "runs/20261101T020000Z-under-way-0001"
    recording.mkdir()
    (recording / "history.wal").touch()
    assert renewal.once() is not None
    assert "v-none recording" in (site / "index.html").read_text()
