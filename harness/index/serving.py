"""The site, served live: it is built again when a run ends, and the pages that are open follow.

The server answers three things: pages of the site, ``live.json``, and below ``results/`` the files of runs,
wherever they are. It listens on loopback unless it is told otherwise, and answers a browser only by a name of
loopback then: a page elsewhere that has its name lead here gets nothing.
"""

from __future__ import annotations

import mimetypes
import posixpath
import shutil
import threading
import time
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from operator import is_
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from upath import UPath

from wrackline.harness.index.collect import Entry, Kept, NoRuns, NothingThere, gather
from wrackline.harness.index.runs import below
from wrackline.harness.index.site import Built, Reader, build
from wrackline.harness.records import NotKnown, known_incidents

RESULTS: Final = "results/"
_SHOWN: Final = frozenset(
    {".html", ".json", ".parquet", ".xml", ".yaml", ".log", ".markdown", ".txt", ".toml", ".properties"}
)
"""Files of runs that a browser may have."""
Say = Callable[[str], None]


class Server(ThreadingHTTPServer):
    """Ends at once when it is told to, also while a browser is being answered."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, host: str, port: int, results: UPath, site: Path) -> None:
        """Raises OSError when the port is taken, or the name is none of this machine."""
        self.alone = _is_loopback(host)
        super().__init__((host, port), partial(_Handler, results, site))

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}/"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Renewal:
    """Builds the site now, and again whenever something has changed."""

    def __init__(self, results: UPath, site: Path, reader: Reader, say: Say) -> None:
        self._results, self._site, self._reader, self._say = results, site, reader, say
        self._kept = Kept()
        self._shown: list[Entry] | None = None
        self._known: dict[str, str] = {}

    def once(self) -> Built | None:
        """Builds the site once; None: nothing has changed. Raises NothingThere, OSError."""
        try:
            entries = gather(self._results, self._kept)
        except NoRuns:
            entries = []  # the night has just begun
        try:
            known = known_incidents(self._results)
        except NotKnown as error:
            raise NothingThere(str(error)) from error
        if (
            self._shown is not None
            and known == self._known
            and len(entries) == len(self._shown)
            and all(map(is_, entries, self._shown))
        ):
            return None
        self._shown, self._known = entries, known
        link = below(self._results, RESULTS)
        name = str(self._results)
        return build(
            name, entries, self._site, self._kept, link=link, reader=self._reader, live=True, known=known
        )

    def follow(self, end: threading.Event, every_s: float) -> None:
        """Rebuilds the site at every change until ``end``. What cannot be read now may be readable later: it
        is said, and tried again."""
        trouble = ""
        while not end.wait(every_s):
            began = time.monotonic()
            try:
                built = self.once()
            except (NothingThere, OSError) as error:
                if str(error) != trouble:
                    self._say(f"not built again: {error}")
                trouble = str(error)
                continue
            trouble = ""
            if built is not None:
                self._say(f"{built.runs} runs, built in {time.monotonic() - began:.1f} s")


class _Handler(BaseHTTPRequestHandler):
    server_version = "wrackline"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60
    server: Server

    def __init__(self, results: UPath, site: Path, *rest: Any) -> None:
        self._results, self._site = results, site
        super().__init__(*rest)

    def do_GET(self) -> None:
        self._answer(with_content=True)

    def do_HEAD(self) -> None:
        self._answer(with_content=False)

    def _answer(self, *, with_content: bool) -> None:
        if self.server.alone and not self._asked_by_name_of_loopback():
            return self.send_error(HTTPStatus.FORBIDDEN, "asked by a name that is not of this machine")
        path = _plain(unquote(urlsplit(self.path).path))
        if path is None:
            return self.send_error(HTTPStatus.NOT_FOUND)
        file = self._file(path or "index.html")
        if file is None:
            return self.send_error(HTTPStatus.NOT_FOUND)
        try:
            size = file.stat().st_size
            with file.open("rb") as content:
                self._head(file.name, size)
                if with_content:
                    shutil.copyfileobj(content, self.wfile)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the browser went away
        except OSError:
            self.send_error(HTTPStatus.NOT_FOUND)
        return None

    def _head(self, name: str, size: int) -> None:
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if name.endswith((".log", ".yaml", ".markdown", ".toml", ".properties")):
            kind = "text/plain"
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if kind.startswith("text/") else kind)
        self.send_header("Content-Length", str(size))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()

    def _file(self, path: str) -> UPath | Path | None:
        """The file that a path means; None: it is none that is shown."""
        if path.startswith(RESULTS):
            inside = path.removeprefix(RESULTS)
            file = self._results / inside
            if file.suffix not in _SHOWN or (not self._results.protocol and not _inside(file, self._results)):
                return None
            return file
        page = self._site / path
        return page if _inside(page, self._site) and page.is_file() else None

    def _asked_by_name_of_loopback(self) -> bool:
        host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host") or ""
        return _is_loopback(host.strip("[]"))

    def log_message(self, *_told: Any) -> None:
        """Nobody wants to read of every page."""


def _plain(path: str) -> str | None:
    """A path below the root; None where it leads above it, or is none."""
    if "\0" in path or "\\" in path:
        return None
    plain = posixpath.normpath("/" + path.lstrip("/")).lstrip("/")
    return None if ".." in path.split("/") else plain


def _inside(file: UPath | Path, folder: UPath | Path) -> bool:
    """Tells whether the file is inside of the folder, also where a link on the disk leads elsewhere."""
    return Path(str(file)).resolve().is_relative_to(Path(str(folder)).resolve())
