"""The launcher works on machines that it cannot set up, and installs from a lock file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wrackline.needs import BY_NAME, TABLE

ROOT = Path(__file__).parents[2]
FILES = ("wrack", "requirements.lock", "requirements-dev.lock", "pyproject.toml")


@pytest.fixture
def bare() -> Iterator[Path]:
    """The launcher in a folder where nothing is set up, readable for everybody."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="wl-launcher-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(ROOT / "ansible", folder / "ansible")
        for file in (*FILES, "tests/slowest.py", "wrackline/needs.py"):
            (folder / file).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / file, folder / file)
        yield folder


def call(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)


def complaint(done: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error, of a call that ended with exit code 2 and did nothing."""
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def test_help_teaches_and_sets_nothing_up(bare: Path) -> None:
    done = call(bare / "wrack", "--help")
    assert done.returncode == 0
    for word in ("demo", "doctor", "setup", "lint", "test", "fleet"):
        assert f"./wrack {word}" in done.stdout
    assert sorted(path.name for path in bare.iterdir()) == [
        "ansible",
        "pyproject.toml",
        "requirements-dev.lock",
        "requirements.lock",
        "tests",
        "wrack",
        "wrackline",
    ]


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@pytest.mark.fleet
def test_without_root_it_says_so(bare: Path) -> None:
    """Only where it needs root: for packages that are not there, and for tests."""
    lacking(bare, "sshd", "java")
    line = complaint(call(*NOBODY, bare / "wrack", "demo", "--seed", "7"))
    assert re.fullmatch(
        r"wrack: installing openssh-server openjdk-17-jre-headless\|default-jre-headless needs root; "
        r"run it again as: sudo .*/wrack demo --seed 7",
        line,
    )
    assert "needs root" in complaint(call(*NOBODY, bare / "wrack", "test"))


@pytest.mark.fleet
@pytest.mark.parametrize("command", ["validate x.yaml", "plan x.yaml", "run suites/laptop.yaml", "setup"])
def test_the_core_asks_for_no_package_whatever_the_machine_lacks(set_up: Path, command: str) -> None:
    lacking(set_up, "sshd", "java", "mvn", "qemu-system-x86_64", "virsh", "npm")
    done = call(*NOBODY, set_up / "wrack", *command.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("wrack: set up; " if command == "setup" else f"wrackline {command}\n")
    if command == "setup":
        assert "maven needs root" in complaint(call(*NOBODY, set_up / "wrack", "setup", "kafka"))


def lacking(folder: Path, *programs: str) -> None:
    """The table, on a machine without these."""
    table = folder / "wrackline/needs.py"
    of_one = "def is_there(program: str) -> bool:\n"
    text = table.read_text().replace(of_one, f"{of_one}    if program in {programs}: return False\n")
    assert text != table.read_text()
    table.write_text(text)


@pytest.mark.fleet
def test_on_a_system_it_does_not_know_it_says_what_to_do(bare: Path, tmp_path: Path) -> None:
    other = tmp_path / "os-release"
    other.write_text('ID=plan9\nNAME="Plan 9"\n')
    lacking(bare, "sshd")
    script = f"mount --bind {other} $(readlink -f /etc/os-release) && exec {bare}/wrack setup netns"
    line = complaint(call("unshare", "--mount", "sh", "-c", script))
    assert line.startswith("wrack: this is plan9, and the set-up knows Debian and Ubuntu only")


def test_what_can_be_set_up_is_listed_and_a_wrong_name_is_one_line(bare: Path) -> None:
    done = call(bare / "wrack", "setup", "--help")
    assert done.returncode == 0
    assert set(re.findall(r"(?m)^  ([a-z]+) +\S", done.stdout)) == set(BY_NAME)
    line = complaint(call(bare / "wrack", "setup", "qemo"))
    assert line.startswith("wrack: there is no 'qemo' to set up; there are netns, ")


@pytest.mark.fleet
def test_a_python_that_is_not_supported_is_named(bare: Path, tmp_path: Path) -> None:
    other = tmp_path / "python3"
    program(other, '#!/bin/sh\n[ "$1" = -V ] && echo Python 3.10.12 || exit 1\n')
    script = f"mount --bind {other} $(readlink -f /usr/bin/python3) && exec {bare}/wrack setup"
    line = complaint(call("unshare", "--mount", "sh", "-c", script))
    assert line.startswith("wrack: /usr/bin/python3 is Python 3.10.12, and Wrackline needs 3.11 to 3.14")


STUB = """\
#!/bin/bash
# In the place of Python: says its version, and answers for pytest and for the linters.
case "$*" in
-V) echo "Python 3.11.2" ;;
"-m pytest"*) shift 2; %s ;;
"-m tests.room_sizes") echo "broker 11 of 11" ;;
esac
"""


@pytest.fixture
def set_up(bare: Path) -> Path:
    """The launcher in a folder that it takes for set up, with programs that do nothing and say all is
    well."""
    venv, state = bare / ".venv", bare / ".wrack"
    (venv / "bin").mkdir(parents=True)
    state.mkdir()
    for tool in ("ruff", "mypy", "lint-imports", "ansible-playbook"):
        program(venv / "bin" / tool, "#!/bin/sh\n")
    program(venv / "bin/wrackline", '#!/bin/sh\necho "wrackline $*"\n')
    pytest_is(bare, "true")
    script = (bare / "wrack").read_text().split("arguments=(")[0].replace("here=$(", f"here={bare} #")
    stamps = f'{script}\n{{ libraries_stamp; echo "cluster dev jvm spark"; }} >"$venv/wrack.stamp"'
    subprocess.run(["bash", "-c", stamps], check=True, timeout=180, cwd=bare)
    return bare


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def pytest_is(folder: Path, does: str) -> None:
    program(folder / ".venv/bin/python", STUB % does)


def test_wrack_check_is_wracklines_own_command_and_wrack_lint_runs_the_linters(set_up: Path) -> None:
    done = call(set_up / "wrack", "check", "--model", "log", "history.edn")
    assert (done.returncode, done.stdout) == (0, "wrackline check --model log history.edn\n")
    program(set_up / ".venv/bin/lint-imports", "#!/bin/sh\necho 9 contracts kept\n")
    done = call(set_up / "wrack", "lint")
    assert done.returncode == 0
    assert done.stdout.endswith("s)\nbroker 11 of 11\n")
    assert "contracts" not in done.stdout
    said = [line.split("(")[0].split() for line in done.stdout.splitlines() if line.startswith("lint")]
    assert said == [
        ["lint", "ok", *name.split()]
        for name in (
            *("ruff format", "ruff", "mypy", "mypy of benchmarks and website"),
            *("import rules", "playbook", "launcher", "lines of code"),
        )
    ]
    program(set_up / ".venv/bin/mypy", "#!/bin/sh\necho no such type\nexit 1\n")
    done = call(set_up / "wrack", "lint")
    assert done.returncode == 1
    assert "lint  FAILED  mypy\nno such type\n" in done.stdout


def test_the_help_of_test_is_help(bare: Path) -> None:
    """Nothing is set up for it, nothing is run, and nothing is said to have passed."""
    for word in ("--help", "-h"):
        done = call(bare / "wrack", "test", word)
        assert done.returncode == 0
        assert done.stdout.startswith("./wrack test [--nightly] [--strict] [ARG ...]: ")
        assert "passed, all" not in done.stdout
    assert not (bare / ".wrack").exists()


@pytest.mark.fleet
def test_the_closing_line_counts_the_tests_that_were_run(set_up: Path) -> None:
    pytest_is(set_up, 'echo "3 1" >"$WRACK_TALLY"')
    done = call(set_up / "wrack", "test")
    assert done.returncode == 0
    assert "wrack test: passed: all linters and all 3 tests, 1 skipped, in" in done.stdout.splitlines()[-1]
    done = call(set_up / "wrack", "test", "tests/history")
    assert "all linters and the chosen 3 tests" in done.stdout
    pytest_is(set_up, 'echo "3 1" >"$WRACK_TALLY"; exit 1')
    done = call(set_up / "wrack", "test")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("wrack test: FAILED: pytest (after")
    program(set_up / ".venv/bin/mypy", "#!/bin/sh\nsleep 0.2\necho no such type\nexit 1\n")
    done = call(set_up / "wrack", "test")
    assert done.returncode == 1
    assert "lint  FAILED  mypy\nno such type\n" in done.stdout
    assert done.stdout.splitlines()[-1].startswith(
        "wrack test: FAILED: mypy,mypy of benchmarks and website,pytest (after"
    )
    pytest_is(set_up, 'echo "3 1" >"$WRACK_TALLY"')
    done = call(set_up / "wrack", "test")
    assert done.stdout.splitlines()[-1].startswith(
        "wrack test: FAILED: mypy,mypy of benchmarks and website (after"
    )


@pytest.mark.fleet
def test_nightly_tests_are_a_tier_of_their_own_with_a_closing_line_of_its_own(set_up: Path) -> None:
    pytest_is(set_up, 'echo "3 1" >"$WRACK_TALLY"; echo "pytest $*"')
    done = call(set_up / "wrack", "test", "--nightly", "tests/broker")
    assert done.returncode == 0
    assert re.search(r"(?m)^pytest .*-m nightly tests/broker$", done.stdout)
    last = done.stdout.splitlines()[-1]
    assert last.startswith(
        "wrack test --nightly: passed: all linters and the chosen 3 nightly tests, 1 skipped, in"
    )
    done = call(set_up / "wrack", "test")
    assert "nightly" not in done.stdout
    pytest_is(set_up, "exit 1")
    done = call(set_up / "wrack", "test", "--nightly")
    assert done.stdout.splitlines()[-1].startswith("wrack test --nightly: FAILED: pytest (after")


@pytest.mark.fleet
def test_the_slowest_twenty_are_those_of_the_last_run(set_up: Path) -> None:
    line = complaint(call(set_up / "wrack", "test", "--slowest"))
    assert line == "wrack: there is no record of a run of the tests yet; `./wrack test` writes one"
    cases = "".join(
        f'<testcase classname="tests.fleets.test_a" name="test_{n}" time="{n}.25" />' for n in range(30)
    )
    (set_up / ".wrack/tests.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    done = call(set_up / "wrack", "test", "--slowest")
    assert (done.returncode, done.stderr) == (0, "")
    *slowest, last = done.stdout.splitlines()
    assert slowest == [f"   {n}.2 s  tests/fleets/test_a.py::test_{n}" for n in range(29, 9, -1)]
    assert last == "395 of the 442 s that 30 tests took, one worker's seconds added to another's"


@pytest.mark.fleet
@pytest.mark.parametrize("said", ["true", 'echo "0 7" >"$WRACK_TALLY"'], ids=["nothing", "all skipped"])
def test_a_pytest_that_ran_no_test_has_not_passed(set_up: Path, said: str) -> None:
    pytest_is(set_up, said)
    done = call(set_up / "wrack", "test", "--collect-only")
    assert done.returncode == 2
    assert "passed" not in done.stdout
    assert done.stderr.startswith("wrack: test: pytest ran no test, so nothing is proved")


HAPPENS_ONCE = """\
import os, pytest
from pathlib import Path

def happens(what, *, often=1):
    with open("happened", "a+") as file:
        file.seek(0)
        before = file.read().splitlines().count(what)
        file.write(what + "\\n")
    if before < often:
        os._exit(1) if what == "dies" else pytest.fail(f"{what}, for want of a processor")

@pytest.mark.real
def test_real(): happens("real")
@pytest.mark.fleet
def test_twice(): happens("twice", often=2)
def test_pure(): happens("pure")
@pytest.mark.fleet
def test_dies(): happens("dies")
def test_good(): pass
"""


def second_try(set_up: Path, *arguments: str) -> tuple[int, list[str], list[str]]:
    """Exit code, what the launcher itself says at the end, and what happened in the tests."""
    shutil.copy(ROOT / "tests/conftest.py", set_up / "tests/conftest.py")
    (set_up / "tests/test_some.py").write_text(HAPPENS_ONCE)
    pytest_is(set_up, f'exec {sys.executable} -m pytest "$@"')
    done = call(set_up / "wrack", "test", *arguments, "-p", "no:cacheprovider")
    said = [line for line in done.stdout.splitlines() if line.startswith("wrack test: ")]
    return done.returncode, said, (set_up / "happened").read_text().split()


@pytest.mark.fleet
def test_what_fails_once_of_real_processes_passes_at_the_second_try_and_is_named(set_up: Path) -> None:
    code, said, happened = second_try(set_up, "-n", "0", "-k", "real or good")
    assert (code, happened) == (0, ["real", "real"]), said
    _, named, last = said
    assert named == (
        "wrack test: passed at the second try: tests/test_some.py::test_real; "
        "at the first: Failed: real, for want of a processor"
    )
    assert last.startswith(
        "wrack test: passed: all linters and the chosen 2 tests (1 of them at the second try), 0 skipped"
    )


@pytest.mark.fleet
@pytest.mark.parametrize(
    ("arguments", "happens"),
    [
        (["-k", "twice or real"], ["real", "twice"] * 2),
        (["-k", "pure or real"], ["real", "pure", "real"]),
        (["-k", "pure"], ["pure"]),
        (["--strict", "-k", "real"], ["real"]),
        (["-x", "-k", "real"], ["real"]),
    ],
    ids=["it fails again", "of pure tests one is enough", "none may", "not asked for", "others were not run"],
)
def test_no_second_try_makes_good_what_is_wrong(
    set_up: Path, arguments: list[str], happens: list[str]
) -> None:
    code, said, happened = second_try(set_up, *arguments, "-n", "0")
    assert (code, happened) == (1, happens), said
    assert said[-1].startswith("wrack test: FAILED: pytest (after")
    assert any("once more" in line for line in said) == (len(happens) > 2)


@pytest.mark.fleet
def test_many_that_fail_have_no_second_try(set_up: Path) -> None:
    (set_up / "tests/test_many.py").write_text(
        "import pytest\n@pytest.mark.real\n@pytest.mark.parametrize('n', range(11))\n"
        "def test_one(n): open('happened', 'a').write('one '); assert False\n"
    )
    code, _, happened = second_try(set_up, "-n", "0", "tests/test_many.py")
    assert (code, happened) == (1, ["one"] * 11)


@pytest.mark.fleet
def test_a_test_that_kills_its_worker_is_a_failure_with_a_second_try(set_up: Path) -> None:
    code, said, happened = second_try(set_up, "-n", "2", "-k", "dies or good")
    assert (code, happened) == (0, ["dies", "dies"]), said
    assert re.search(r"::test_dies; at the first: worker 'gw\d' crashed while running", said[-2])


@pytest.mark.fleet
def test_ctrl_c_is_one_line(set_up: Path) -> None:
    pytest_is(set_up, "kill -INT $PPID; sleep 0.2; exit 130")
    done = call(set_up / "wrack", "test")
    assert done.returncode == 130
    assert done.stderr.split("\n") == ["", "wrack: stopped", ""]
    assert "passed" not in done.stdout


def pytest_in(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs the tests in a folder, with the hooks of ours. The tally of the suite that runs this is not
    theirs."""
    inherited = {name: value for name, value in os.environ.items() if name != "WRACK_TALLY"}
    shutil.copy(ROOT / "tests/conftest.py", folder)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=360,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "ran"),
    [(["--collect-only"], False), (["--version"], False), ([], True), (["-n", "2"], True)],
    ids=str,
)
def test_the_tally_is_written_only_when_tests_were_run(
    tmp_path: Path, arguments: list[str], ran: bool
) -> None:
    (tmp_path / "test_two.py").write_text(
        "import pytest\ndef test_one(): pass\ndef test_two(): pass\ndef test_no(): pytest.skip('no')\n"
    )
    tally = tmp_path / "tally"
    done = pytest_in(tmp_path, *arguments, "test_two.py", WRACK_TALLY=str(tally))
    assert done.returncode == 0, done.stdout
    assert (tally.read_text() if tally.exists() else "0 0\n") == ("2 1\n" if ran else "0 0\n")


SIDE_BY_SIDE = """\
import os, time, pytest
%s
@pytest.mark.parametrize("n", range(6))
def test_one(n):
    with open("where", "a") as file: file.write(os.environ["PYTEST_XDIST_WORKER"] + "\\n")
    time.sleep(0.3)
"""


@pytest.mark.parametrize(("mark", "workers"), [("", 1), ("pytestmark = pytest.mark.apart", 2)], ids=str)
def test_side_by_side_a_file_stays_together_unless_it_says_otherwise(
    tmp_path: Path, mark: str, workers: int
) -> None:
    (tmp_path / "test_some.py").write_text(SIDE_BY_SIDE % mark)
    done = pytest_in(tmp_path, "-n", "2", "--rootdir", ".", "-o", "markers=apart")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = (tmp_path / "where").read_text().splitlines()
    assert (len(lines), len(set(lines))) == (6, workers)


DYING = """\
import os, time, pytest
def ran(name):
    with open("ran", "a") as file: file.write(name + "\\n")
"""


def test_a_worker_that_dies_is_one_failed_test_and_nothing_is_run_twice_or_waited_for(tmp_path: Path) -> None:
    """It has done one file, half of another and none of a third; the other worker has been told that there is
    nothing more for it."""
    for name, tests in {
        "a": {"a": ""},
        "b": {"b": "time.sleep(1)", "c": "", "d": ""},
        "e": {"e": "time.sleep(3); os.abort()", "f": ""},
        "g": {"g": ""},
    }.items():
        body = "".join(f"def test_{one}(): ran('{one}'); {does or 'pass'}\n" for one, does in tests.items())
        (tmp_path / f"test_{name}.py").write_text(DYING + body)
    done = pytest_in(tmp_path, "-n", "2", "--rootdir", ".")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 6 passed" in done.stdout
    assert "crashed while running 'test_e.py::test_e'" in done.stdout
    assert sorted((tmp_path / "ran").read_text().split()) == list("abcdefg")


def locked(*files: str) -> dict[str, str]:
    """Name -> version."""
    text = "".join((ROOT / file).read_text() for file in files)
    found = re.findall(r"(?m)^([\w.-]+)==([^ ]+) (?:;.*)?\\$", text)
    assert len(found) == text.count("==") - text.count("_name ==")
    return {canonicalize_name(name): version for name, version in found}


def test_the_locks_fit_the_project() -> None:
    """What users install is in the first, what is for development alone in the second."""
    product, dev = locked("requirements.lock"), locked("requirements-dev.lock")
    assert not product.keys() & dev.keys()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = dict(project["optional-dependencies"])
    for pinned, wanted in (
        (product | dev, extras.pop("dev")),
        (product, [*project["dependencies"], *(line for lines in extras.values() for line in lines)]),
    ):
        for requirement in map(Requirement, wanted):
            if requirement.name == project["name"]:
                continue  # by its extras, which are looked at by themselves
            version = pinned.get(canonicalize_name(requirement.name))
            assert version is not None, f"{requirement} is not locked: run `./wrack lock`"
            assert requirement.specifier.contains(version), (
                f"{requirement}, but locked is {version}: run `./wrack lock`"
            )


def test_every_extra_is_what_a_need_brings() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {one.extra for one in TABLE if one.extra} == extras.keys() - {"setup"}


@pytest.mark.parametrize("file", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_names_no_place_to_fetch_from(file: str) -> None:
    lock = (ROOT / file).read_text()
    assert not re.search(r"://|^\s*--(?!hash)|find-links|trusted-host", lock, re.MULTILINE)
    assert all("--hash=sha256:" in one for one in re.split(r"(?m)^(?=\w)", lock)[1:])
