"""Programs that run on a host while a fault is in force: commands that start, look at and end one.

Each fault has a folder per program, ``/run/wrackline/faults/<fault id>/<name>``, with the program's process
id and what it has said. The program has a session of its own, so that ending it ends what it has started, and
the folder is gone after the undo: what stands below ``FOLDER`` is what faults have left.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath

FOLDER = "/run/wrackline/faults"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")
END_S = 5
_RUNS = "ps -o stat= {} 2>/dev/null | grep -q '^[^Z]'"
"""Whether a process is there that has not ended: one that nobody has buried yet answers ``kill -0``."""


def python_command(python: str, file: Path, *arguments: object) -> str:
    """The command of a shell that runs a program of ours by its text, on the standard library alone."""
    return shlex.join((python, "-I", "-S", "-c", file.read_text(encoding="utf-8"), *map(str, arguments)))


def killed(pid: int) -> str:
    """Kills a process, and waits until it is gone: no probe may meet one that is still dying."""
    return (
        f"kill -KILL {pid} 2>/dev/null; "
        f"for i in $(seq 100); do {_RUNS.format(pid)} || break; sleep 0.02; done"
    )


def below(root: PurePosixPath) -> str:
    """`FOLDER` on a machine where what is ours lies below ``root``, as a word of a shell."""
    return shlex.quote(f"{'' if root == PurePosixPath('/') else root}{FOLDER}")


def folder(fault_id: str, name: str, where: str = FOLDER) -> str:
    """Returns the folder of a program's ``pid`` and ``log``. ``where``: what `below` gave. Raises ValueError
    for a name that is no plain word."""
    for word in (fault_id, name):
        if not _NAME.fullmatch(word):
            raise ValueError(f"{word!r}: use up to 40 letters, digits, dots, underscores or dashes")
    return f"{where}/{fault_id}/{name}"


def start(
    fault_id: str, name: str, command: str, *, ready: str = "", wait_s: int = 10, where: str = FOLDER
) -> str:
    """Starts ``command`` (of a shell, whose last program becomes the process) and waits until a line of its
    output matches the basic regular expression ``ready``; without one, until it has been there for a moment.
    Fails with its last lines when it ends before that or is not ready in time. One that runs already is left
    alone."""
    here, one = folder(fault_id, name, where), '-p "$(cat pid)"'
    ready_yet = f"grep -q -e {shlex.quote(ready)} log" if ready else "[ $polls -ge 5 ]"
    return (
        f"mkdir -p {here} && cd {here} && "
        f"{{ [ -s pid ] && {_RUNS.format(one)}; }} || {{ "
        f": >log; setsid sh -c {shlex.quote(f'echo $$ >pid; {command}')} >>log 2>&1 </dev/null & "
        f"polls=0; until [ -s pid ] && {ready_yet}; do polls=$((polls + 1)); "
        f'if [ $polls -gt {wait_s * 20} ]; then echo "{name} was not ready within {wait_s} s:" '
        '"$(tail -n 3 log)" >&2; exit 1; fi; '
        f"if [ -s pid ] && ! {_RUNS.format(one)}; then "
        f'echo "{name} ended at once:" "$(tail -n 3 log)" >&2; exit 1; fi; '
        "sleep 0.05; done; }"
    )


def end(fault_id: str, name: str, *, signal: str = "TERM", where: str = FOLDER) -> str:
    """Ends the program with all that it has started, and prints its log. It is killed when it is still there
    after five seconds. Idempotent: one that is gone already, or never was, is no error."""
    here = folder(fault_id, name, where)
    return (
        f"if [ -d {here} ]; then cd {here} && pid=$(cat pid 2>/dev/null); "
        f'if [ -n "$pid" ]; then kill -{signal} -"$pid" 2>/dev/null; '
        f"polls=0; while {_RUNS.format('-s $pid')}; do polls=$((polls + 1)); "
        f'[ $polls -lt {END_S * 20} ] || {{ kill -KILL -"$pid" 2>/dev/null; break; }}; sleep 0.05; done; fi; '
        f"cat log; cd /; rm -rf {here}; rmdir {where}/{fault_id} 2>/dev/null; fi; true"
    )


def log(fault_id: str, name: str, where: str = FOLDER) -> str:
    """Prints what it has said so far, after a line ``-- running`` or ``-- ended``."""
    here = folder(fault_id, name, where)
    return (
        f"if pid=$(cat {here}/pid 2>/dev/null) && {_RUNS.format('-p $pid')}; then echo '-- running'; "
        f'else echo "-- ended"; fi; cat {here}/log 2>/dev/null; true'
    )


def left(where: str = FOLDER) -> str:
    """Prints what faults have left on a host, a line each: ``<fault id>/<name>``."""
    return f"cd {where} 2>/dev/null && ls -d */* 2>/dev/null; true"
