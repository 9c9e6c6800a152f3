"""Wrong input of every kind that newcomers were seen to give. One rule for all: a line on standard error that
names the place and the mend, nothing else, exit code 2."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from wrackline.harness.cli.main import main
from wrackline.plugins.registry import LISTS_ALL

HERE = "share one machine; for more name machines of your own, fleet.kind inventory, or test a cluster"
RUNS_ALREADY = "say external, which tests a cluster that runs already, with its addresses in system.bootstrap"
FOLDERS = "say process, which needs no root"
SCHEDULED = "name: a\nnemesis: {schedule: [{at_s: 3, duration_s: 2, inject: {%s}}]}\n"
MOST = b"# " + 4_000_000 * b"x"

FILES: dict[str, tuple[str | bytes, str]] = {
    # what is no YAML, or not ours
    "5,000 brackets": ("name: " + 5_000 * "[", "nested more than 50 deep: a bracket is too many"),
    "5,000 braces": ("name: " + 5_000 * "{a: ", "nested more than 50 deep: a bracket is too many"),
    "5,000 dashes": ("name: \n " + 5_000 * "- ", "nested more than 50 deep: a bracket is too many"),
    "itself": ("name: &a [*a]", "nested more than 50 deep: a bracket is too many"),
    "megabytes": (MOST, "more than 1,000,000 bytes: no specification is so long; is this the right file?"),
    "nothing": ("", "it is empty; `wrackline init` writes a specification to start from"),
    "a comment": ("# later\n", "it is empty; `wrackline init` writes a specification to start from"),
    "a list": ("- a\n", "this is a list, not keys with values; at least `name: NAME` must be there"),
    "a text": (
        "hello\n",
        "this is a single value, not keys with values; at least `name: NAME` must be there",
    ),
    "a number": ("7\n", "this is a single value, not keys with values; at least `name: NAME` must be there"),
    "a tab": (
        "name: a\nfleet:\n\tbrokers: 3\n",
        "line 3, column 1: a tab: YAML is indented with spaces only",
    ),
    "two documents": (
        "name: a\n---\nname: b\n",
        "line 2, column 1: a second document begins: one file holds",
    ),
    "a program": (
        "name: !!python/object/apply:os.system [ls]\n",
        "the tag 'python/object/apply:os.system' is",
    ),
    "a tag": (
        "name: !mine x\n",
        "line 1, column 7: the tag '!mine' is none that a specification takes: take it",
    ),
    "UTF-16": ("name: a\n".encode("utf-16"), "the text is UTF-16 or UTF-32: save it as UTF-8"),
    "UTF-32": ("name: a\n".encode("utf-32"), "the text is UTF-16 or UTF-32: save it as UTF-8"),
    "Latin-1": (b"name: a\n# \xe9\n", "line 2: byte 0xe9 is not UTF-8: save it as UTF-8"),
    "a NUL": (b"name: a\0b\n", "line 1: the character U+0000 is none of a text: take it out"),
    "an open quote": ('name: "a\n', "line 1, column 7: a quote that begins here is never closed"),
    "an open bracket": ("a: [1, 2\nb: 3\n", "line 1, column 4: a bracket that begins here is never closed"),
    "a second colon": ("name: a: b\n", "line 1, column 8: a second ':' in one line: quote the value, or"),
    "an at sign": ("name: @a\n", "line 1, column 7: no value begins with '@': quote it"),
    "a star": ("name: *a\n", "line 1, column 7: '*a' refers to nothing: quote it where it is text"),
    "an odd indent": ("a:\n  - 1\n b: 3\n", "line 3, column 2: indented unlike the lines above it"),
    "no such day": (
        "name: 2020-13-45\n",
        "line 1, column 7: '2020-13-45' is read as timestamp and is none: quote",
    ),
    "no such number": (
        "seed: !!int x\n",
        "line 1, column 7: 'x' is read as int and is none: quote it where it",
    ),
    "a key twice": ("name: a\nname: b\n", "line 2, column 1: key 'name' is there twice"),
    # names
    "name: My Run": (
        "name: My Run\n",
        "name: 'My Run' cannot be used: use a-z, 0-9 and -, up to 40 characters",
    ),
    "name: 5": ("name: 5\n", "name: input should be a valid string, not 5: quote it"),
    "name: yes": ("name: yes\n", "name: input should be a valid string, not true: quote it"),
    "topic: a b": (
        "name: a\ntopic: {name: a b}\n",
        "topic.name: 'a b' cannot be used: use letters, digits, '.'",
    ),
    "lane": (
        "name: a\nnemesis: {lanes: {A B: {faults: [kill]}}}\n",
        "'A B' cannot be used: use a-z, 0-9 and -",
    ),
    **{
        f"kind: {kind}": (
            f"name: a\nsystem: {{kind: {kind}}}\n",
            f"system.kind: there is no '{kind}'; {said}",
        )
        for kind, said in {
            "kafka": f"say apache-kafka; {LISTS_ALL}",
            "kraft": f"say apache-kafka; {LISTS_ALL}",
            "redpanda": RUNS_ALREADY,
            "confluent": RUNS_ALREADY,
            "msk": RUNS_ALREADY,
            "warpstream": RUNS_ALREADY,
            "wracline": "did you mean 'wrackline'? known here: apache-kafka, external, wrackline",
        }.items()
    },
    **{
        f"fleet: {kind}": (f"name: a\nfleet: {{kind: {kind}}}\n", f"fleet.kind: there is no '{kind}'; {said}")
        for kind, said in {
            "docker": FOLDERS,
            "laptop": FOLDERS,
            "kvm": "say qemu, or libvirt, which make virtual machines",
            "ssh": "say inventory, which names machines that there are",
            "netn": "did you mean 'netns'? known here: ",
        }.items()
    },
    "version: 4.0": (
        "name: a\nsystem: {kind: apache-kafka, version: 4.0}\n",
        "system.version: the number 4.0 is no version: quote it and give it in full, such as '4.0.0'",
    ),
    "version: four": (
        "name: a\nsystem: {kind: apache-kafka, version: four}\n",
        "system.version: 'four' is no version of Apache Kafka: give it in full, 4.4.0 for example",
    ),
    "session_timout_ms": (
        "name: a\nsystem: {config: {session_timout_ms: 400}}\n",
        "system.config.session_timout_ms: unknown key 'session_timout_ms', did you mean 'session_timeout_ms'",
    ),
    "taget": (
        SCHEDULED % "fault: kill, taget: leader",
        "nemesis.schedule[0].inject: unknown key 'taget'; did",
    ),
    "kil": (
        SCHEDULED % "fault: kil",
        f"there is no 'kil'; did you mean 'kill'? {LISTS_ALL}",
    ),
    "crash": (SCHEDULED % "fault: crash", f"there is no 'crash'; say kill; {LISTS_ALL}"),
    "jepson": (
        "name: a\nnemesis: {preset: jepson}\n",
        "nemesis.preset: no preset 'jepson'; did you mean 'jepsen'?",
    ),
    "guided": (
        "name: a\nnemesis: {guided: b01-trunkate-to-hw}\n",
        "nemesis.guided: no guided schedule 'b01-trunkate-to-hw'; did you mean 'b01-truncate-to-hw'? docs/",
    ),
    "too late": (
        "name: a\nnemesis: {schedule: [{at_s: 50, duration_s: 20, fault: kill}]}\n",
        "nemesis.schedule[0]: kill ends at 70 s, but the run lasts 60 s; let it last longer",
    ),
    # bounds
    "rate": (
        "name: a\nworkload: {rate: 1.0e12}\n",
        "workload.rate: 1e+12 is more than 1,000,000: one machine",
    ),
    "brokers": (
        "name: a\nfleet: {brokers: 12}\n",
        f"fleet.brokers: 12 is more than 9: hosts that are made here {HERE}",
    ),
    "101 brokers": (
        "name: a\nfleet: {kind: inventory, inventory: hosts, brokers: 101}\n",
        "x.yaml: fleet.brokers: 101 is more than 100: more are asked one by one, which takes longer than",
    ),
    "spares": ("name: a\nfleet: {spares: 9}\n", "fleet.spares: 9 is more than 8: hosts that are made here"),
    "partitions": (
        "name: a\ntopic: {partitions: 201}\n",
        f"topic.partitions: 201 is more than 200: hosts of fleet.kind netns {HERE}",
    ),
    "more partitions": (
        "name: a\nsystem: {kind: external, bootstrap: ['n:1']}\ntopic: {partitions: 10001}\n",
        "topic.partitions: 10,001 is more than 10,000: take several runs, each with a topic of its own",
    ),
    "25 h": (
        "name: a\nworkload: {duration_s: 25h}\n",
        "workload.duration_s: 90,000 is more than 86,400: hosts of",
    ),
    "months": (
        "name: a\nsystem: {kind: external, bootstrap: ['n:1']}\nworkload: {duration_s: 2000h}\n",
        "workload.duration_s: 7,200,000 is more than 4,838,400: a run is judged whole, so make several",
    ),
    "large records": (
        "name: a\nworkload: {record_bytes: 2000000}\n",
        "workload.record_bytes: 2,000,000 is more than 1,048,576: a broker takes no more unless",
    ),
}
"""What is wrong -> what a specification says, and what is said of it."""

CALLS: dict[str, tuple[list[str], str]] = {
    "no such file": (["validate", "no.yaml"], "no.yaml: no such file; `wrackline init` writes one"),
    "--set": (
        ["validate", "fine.yaml", "--set", "seed=["],
        "--set seed=[: line 1, column 2: a value is missing",
    ),
    "place": (
        ["validate", "fine.yaml", "--set", "nemesis.schedule[3].at_s=4"],
        "--set nemesis.schedule[3].at_s=4: nemesis.schedule has 0 elements, no '3'",
    ),
    "--results": (["runs", "--results", "nosuch"], "nosuch: no such folder; --results names the one that"),
    "index": (
        ["index", "--results", "nosuch"],
        "nosuch: no such folder; --results names the one of the runs",
    ),
    "defect": (["defects", "trunk-hw"], "no defect suite 'trunk-hw'; did you mean 'trunc-hw'"),
    "finding": (["findings", "b58"], "no finding 'b58'; did you mean 'b59'"),
    "story": (["stories", "rack-los"], "no story 'rack-los'; did you mean 'rack-loss'?"),
    "era": (["eras", "zombie-leeder"], "no story 'zombie-leeder'; did you mean 'zombie-leader'?"),
    "fault": (
        ["faults", "kil"],
        "there is no fault 'kil'; did you mean 'kill'? `wrackline ",
    ),
    "example": (["examples", "registr"], "there is no example 'registr'; did you mean 'register'?"),
    **{
        f"{option} {given}": (["simulate", option, given], f"{option} {shown}: give a number from {bounds}")
        for option, given, shown, bounds in (
            ("--seconds", "-1", "-1", "0.1 to 604,800"),
            ("--seconds", "0", "0", "0.1 to 604,800"),
            ("--seconds", "nan", "nan", "0.1 to 604,800"),
            ("--steps", "0", "0", "1 to 1,000,000,000"),
            ("--producers", "-1", "-1", "0 to 100"),
            ("--produce-every-ms", "0", "0", "0.1 to 3,600,000"),
            ("--fault-every-ms", "-5", "-5", "1 to 86,400,000"),
            ("--pairs", "2", "2", "0 to 1"),
            ("--chains", "-0.5", "-0.5", "0 to 1"),
            ("--max-skew", "7", "7", "0 to 0.5"),
        )
    },
    **{
        f"{command} {option} {given}": ([command, *more, option, given], f"{option}: give {said}, not ")
        for command, more, option, given, said in (
            ("validate", ["fine.yaml"], "--seed", "abc", "a whole number of 0 or more"),
            ("plan", ["fine.yaml"], "--seed", "1.5", "a whole number of 0 or more"),
            ("run", ["fine.yaml"], "--seed", "-4", "a whole number of 0 or more"),
            ("simulate", [], "--seed", "abc", "a whole number"),
            ("simulate", [], "--seconds", "long", "a number"),
            ("simulate", [], "--brokers", "99", "a whole number from 1 to 9"),
            ("simulate", [], "--jobs", "many", "a whole number from 1 to 64"),
            ("findings", [], "--runs", "0", "a whole number of 1 or more"),
            ("serve", [], "--port", "70000", "a whole number from 0 to 65535"),
            ("prune", [], "--days", "x", "a number of 0 or more"),
            ("replay", ["last"], "--stretch", "0", "a number from 0.1 to 20"),
        )
    },
}
"""What is wrong -> how the program is called, and what it says."""


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on standard error."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    [line] = said.err.splitlines()
    return line


@pytest.mark.parametrize("what", FILES)
def test_a_wrong_specification_is_refused_in_one_line(
    what: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content, said = FILES[what]
    Path("x.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    began = time.process_time()
    line = refused(capsys, "validate", "x.yaml")
    assert line.startswith("x.yaml: ")
    assert said in line
    assert len(line) < 400
    assert time.process_time() - began < 20


@pytest.mark.parametrize("what", CALLS)
def test_a_wrong_call_is_refused_in_one_line(
    what: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fine.yaml").write_text("name: a\nnemesis: {schedule: []}\n")
    arguments, said = CALLS[what]
    line = refused(capsys, *arguments)
    assert line.startswith(("wrackline", "no.yaml: ", "--set "))
    assert said in line
    assert len(line) < 400


@pytest.mark.parametrize(
    ("hosts", "said"),
    [
        ("a b", "host name 'a b': use up to 10 of a-z and 0-9, a letter first, such as n1"),
        ("n1,n1", "two hosts with one name in n1, n1: name them apart"),
        (",", "has no hosts: name some, with commas between, such as n1,n2,n3"),
    ],
)
def test_hosts_that_cannot_be_named_are_wrong_input_and_no_trouble_of_hosts(
    hosts: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert said in refused(capsys, "fleet", "up", "--hosts", hosts)


def test_a_simulation_that_acknowledges_nothing_is_never_clean(capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--search", "2"]):
        with pytest.raises(SystemExit) as ended:
            main(["simulate", "--producers", "0", "--seconds", "1", "--faults", "none", *more])
        said = capsys.readouterr()
        assert ended.value.code == 3
        assert "clean" not in said.out
        assert (
            said.err
            == "no record was acknowledged, so nothing is shown; let it last longer, or give it producers\n"
        )


def test_a_version_that_nobody_knows_is_a_warning(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("name: a\nsystem: {kind: apache-kafka, version: 9.9.9}\n")
    with pytest.raises(SystemExit) as ended:
        main(["validate", str(file)])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (0, f"{file}: fine\n")
    assert "warning: system.version: Kafka 9.9.9 is not on this machine, and newer than" in said.err
