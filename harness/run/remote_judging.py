"""Runs in object storage or on HDFS are judged there: Spark's executors read the histories where they are.
This machine sees one run at a time as a folder, while its report is written; what is new in the folder goes
back."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from wrackline.checkers.inputs.course import INFRASTRUCTURE
from wrackline.harness.run.judge import Judged, judge
from wrackline.harness.run.results import NoSuchRun
from wrackline.history.store.addresses import check_reachable, fetch, files_below, matching, send
from wrackline.history.store.folder import PARQUET, RUN_JSON, WAL

_OPENED = (RUN_JSON, INFRASTRUCTURE)
"""What an analysis reads of a run besides its history."""


@dataclass(frozen=True, slots=True)
class RunElsewhere:
    address: str
    files: Mapping[str, int]
    """Path below the address -> bytes."""

    @property
    def name(self) -> str:
        return PurePosixPath(self.address).name


def find_runs(patterns: Iterable[str]) -> list[RunElsewhere]:
    """The runs that the addresses name: each a run's folder, or a folder of runs, with ``*`` and the like as
    a shell has them. Raises NoSuchRun, Unreachable, OSError."""
    result: dict[str, RunElsewhere] = {}
    for pattern in patterns:
        check_reachable(pattern)
        here = [
            run for folder in matching(pattern.rstrip("/")) for run in _runs_in(folder, files_below(folder))
        ]
        if not here:
            raise NoSuchRun(f"{pattern}: no run there (no folder with {PARQUET} or {RUN_JSON} in it)")
        result |= {run.address: run for run in here}
    return list(result.values())


def _runs_in(folder: str, files: Mapping[str, int]) -> Iterator[RunElsewhere]:
    """The folder itself, or those directly in it. Raises NoSuchRun."""
    if any(name in files for name in (PARQUET, RUN_JSON, WAL)):
        if WAL in files and PARQUET not in files:
            raise NoSuchRun(
                f"{folder}: its harness was killed, or still records ({WAL}): copy it to a folder of this "
                "machine, `wrackline analyze` it there, and copy it back"
            )
        yield RunElsewhere(folder, files)
        return
    inside: dict[str, dict[str, int]] = {}
    for path, size in files.items():
        first, _, rest = path.partition("/")
        inside.setdefault(first, {})[rest] = size
    for name, below in inside.items():
        if (PARQUET in below or RUN_JSON in below) and not name.startswith("."):
            yield RunElsewhere(f"{folder}/{name}", below)


def judge_elsewhere(
    runs: Sequence[RunElsewhere],
    *,
    contract: str | None = None,
    master: str = "local[*]",
    properties: Mapping[str, str],
    progress: Callable[[str], None],
    status: Callable[[str], None],
) -> list[Judged]:
    """Judges runs in object storage, as ``judge`` does. Verdicts, findings, metrics and reports are written
    back to the runs' addresses. Raises what ``judge`` does, and OSError."""
    from wrackline.checkers.analysis import Elsewhere  # late: as in `judge`

    room = Path(tempfile.mkdtemp(prefix="wrackline-runs-")).resolve()
    try:
        here = {_opened(run, room / str(number)): run for number, run in enumerate(runs)}
        histories = {
            folder: f"{run.address}/{PARQUET}" for folder, run in here.items() if PARQUET in run.files
        }
        beside = runs[0].address.rpartition("/")[0]
        judged = judge(
            list(here),
            contract=contract,
            master=master,
            properties=properties,
            elsewhere=Elsewhere(histories, f"{beside}/.analysis-{secrets.token_hex(6)}"),
            around=lambda folder: _whole(folder, here[folder]),
            progress=progress,
            status=status,
        )
    finally:
        shutil.rmtree(room, ignore_errors=True)
    return [replace(one, address=here[one.run_dir].address) for one in judged]


def _opened(run: RunElsewhere, room: Path) -> Path:
    """A folder with what the analysis opens."""
    folder = room / run.name
    folder.mkdir(parents=True)
    for name in _OPENED:
        if name in run.files:
            fetch(f"{run.address}/{name}", folder / name)
    return folder


@contextmanager
def _whole(folder: Path, run: RunElsewhere) -> Iterator[None]:
    """The run's folder with everything in it. At the end what is new or another goes to the run's address,
    and the folder is gone: a night need not fit on this machine."""
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {*_OPENED}
    for name in run.files.keys() - written - {*_OPENED}:
        fetch(f"{run.address}/{name}", folder / name)
    before = _stamps(folder)
    yield
    after = _stamps(folder)
    for name in sorted(after):
        if name in written or after[name] != before.get(name):
            send(folder / name, f"{run.address}/{name}")
    shutil.rmtree(folder)


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """File below the folder -> (bytes, time of its last change)."""
    result = {}
    for path in folder.rglob("*"):
        if path.is_file():
            said = path.stat()
            result[path.relative_to(folder).as_posix()] = (said.st_size, said.st_mtime_ns)
    return result
