"""Finding and getting Knossos and Elle, and the bridge's way of failing, without any of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.operations import NEVER, NOTHING, columns
from wrackline.checkers.exact.transactions.columns import NIL
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.calls import EMPTY, Model, calls_of, events_in_order
from wrackline.checkers.jvm.classpath import CLASSPATH_VARIABLE, JvmUnavailable, find_classpath, jvm_home
from wrackline.checkers.jvm.install import install, wanted
from wrackline.harness.cli.machine.jvm import jvm_command
from wrackline.maven import Artifact, pom, repository_url


def maven(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Maven that does what the script says."""
    program = folder / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def test_what_maven_resolves_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.jar").touch()
    script = (
        f'for a in "$@"; do case $a in -Dmdep.outputFile=*) echo {tmp_path}/a.jar > "${{a#*=}}";; esac; done'
    )
    maven(tmp_path, script, monkeypatch)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    home = jvm_home(environment)
    assert find_classpath(environment=environment) is None
    install(home, wanted())
    assert find_classpath(environment=environment) == (f"{tmp_path}/a.jar",)
    assert "<artifactId>knossos</artifactId>" in (home / "pom.xml").read_text()


UNREACHABLE = (
    "[ERROR] Failed to execute goal on project jvm: Could not resolve dependencies: Failed to collect "
    "dependencies at "
    "knossos:knossos:jar:0.3.15: Could not transfer artifact knossos:knossos:pom:0.3.15 from/to clojars "
    "(https://repo.clojars.org/): transfer failed: Unknown host repo.clojars.org -> [Help 1]"
)


def test_a_repository_that_cannot_be_reached_is_one_line_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven(tmp_path, f"echo '{UNREACHABLE}'; exit 1", monkeypatch)
    (tmp_path / "classpath.txt").write_text("kept")
    with pytest.raises(JvmUnavailable) as wrong:
        install(tmp_path, wanted())
    assert str(wrong.value).startswith(
        "Maven could not get knossos:knossos:pom:0.3.15 from clojars (https://repo.clojars.org/): transfer "
        "failed: Unknown host repo.clojars.org; check the network, name a mirror (--repository), or set "
        "WRACKLINE_JVM_CLASSPATH"
    )
    assert "\n" not in str(wrong.value)
    assert (tmp_path / "classpath.txt").read_text() == "kept"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (
            "[ERROR] Failed: Could not transfer artifact knossos:knossos:jar:0.3.15 from/to clojars "
            "(https://repo.clojars.org/): "
            "GET request failed: No space left on device -> [Help 1]",
            "Maven ran out of disk space, in its own folder (~/.m2) or in ",
        ),
        (
            "[ERROR] Failed: Could not transfer artifact knossos:knossos:pom:0.3.15 from/to "
            "maven-default-http-blocker "
            "(http://0.0.0.0/): Blocked mirror for repositories: [repository-1 (http://nexus.example.org/, "
            "default, releases)]",
            "Maven takes nothing from http://nexus.example.org/ without TLS: name it by https://",
        ),
    ],
)
def test_what_maven_cannot_do_is_one_line(
    told: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven(tmp_path, f"echo '{told}'; exit 1", monkeypatch)
    with pytest.raises(JvmUnavailable) as wrong:
        install(tmp_path, wanted())
    assert str(wrong.value).startswith(said)
    assert "\n" not in str(wrong.value)


def test_a_repository_is_a_url_or_a_folder(tmp_path: Path) -> None:
    assert repository_url("https://nexus.example.org/maven") == "https://nexus.example.org/maven"
    assert repository_url(str(tmp_path)) == f"file://{tmp_path}"
    found = CliRunner().invoke(jvm_command, ["--repository", "nexus"])
    assert (found.exit_code, "'nexus' is neither a URL" in found.output) == (2, True)


def publish(repository: Path, artifact: Artifact, needs: Artifact | None = None) -> None:
    """A jar with nothing in it, as a Maven repository has it."""
    folder = repository / artifact.group.replace(".", "/") / artifact.name / artifact.version
    folder.mkdir(parents=True)
    name = f"{artifact.name}-{artifact.version}"
    with zipfile.ZipFile(folder / f"{name}.jar", "w") as jar:
        jar.writestr("empty.txt", artifact.name)
    project = pom([needs] if needs else [])
    for word, what in (
        ("groupId", artifact.group),
        ("artifactId", artifact.name),
        ("version", artifact.version),
    ):
        project = re.sub(f"<{word}>[^<]*", f"<{word}>{what}", project, count=1)
    (folder / f"{name}.pom").write_text(project.replace("<packaging>pom", "<packaging>jar"))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mvn") is None, reason="no Maven here")
def test_maven_resolves_from_a_repository_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what an artifact needs in its turn. Clojars is not asked for what is found before: it is nowhere
    here."""
    top, below = Artifact("wrackline.test", "top", "1"), Artifact("wrackline.test", "below", "2")
    publish(tmp_path / "mirror", top, needs=below)
    publish(tmp_path / "mirror", below)
    # A local repository of its own, so that these two are in nobody's; Maven's plugins are where they are.
    local = tmp_path / "m2"
    local.mkdir()
    for one in (Path.home() / ".m2" / "repository").glob("*"):
        (local / one.name).symlink_to(one)
    quick = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # two short lives, on processors that others want
    monkeypatch.setenv("MAVEN_OPTS", f"-Dmaven.repo.local={local} {quick}")
    nowhere = "https://127.0.0.1:1/"
    try:
        install(tmp_path / "home", [top], clojars=nowhere, first=[repository_url(str(tmp_path / "mirror"))])
    except JvmUnavailable as wrong:
        if "maven-dependency-plugin" in str(wrong) or "org.apache.maven" in str(wrong):
            pytest.skip(f"Maven has no plugin and no network: {wrong}")
        raise
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    jvm_home(environment).parent.mkdir()
    (tmp_path / "home").rename(jvm_home(environment))
    found = find_classpath(environment=environment)
    assert found is not None
    assert [Path(one).name for one in found] == ["top-1.jar", "below-2.jar"]
    with pytest.raises(JvmUnavailable, match=r"could not get wrackline.test:other:pom:1 .*127.0.0.1"):
        install(tmp_path / "home", [Artifact("wrackline.test", "other", "1")], clojars=nowhere)


def test_without_maven_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JvmUnavailable, match=r"no Maven found: .*setup kafka"):
        install(tmp_path, wanted())


def test_versions_are_text_in_the_pom() -> None:
    assert "<version>1&lt;2</version>" in pom([Artifact("g", "a", "1<2")])


def test_a_classpath_is_checked_where_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.jar", "a.jar"):
        (tmp_path / name).touch()
    found = find_classpath(f"{tmp_path}/*:{tmp_path}")
    assert found == (f"{tmp_path}/a.jar", f"{tmp_path}/b.jar", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert find_classpath("b.jar") == (f"{tmp_path}/b.jar",)
    with pytest.raises(JvmUnavailable, match=rf"{CLASSPATH_VARIABLE}: /no/such.jar is not there and 1 more"):
        find_classpath(environment={CLASSPATH_VARIABLE: "/no/such.jar:/nor/this.jar"})


def test_a_jvm_that_ends_is_reported_with_its_last_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "python"
    java.write_text("#!/bin/sh\necho 'no jvm here' >&2\nexit 7\n")
    java.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(java))
    with (
        Bridge(["/nothing"]) as bridge,
        pytest.raises(JvmUnavailable, match="ended with code 7: no jvm here"),
    ):
        bridge.load("knossos")


@pytest.fixture
def writing_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Instead of JPype, a JVM that writes a file into its folder, says where that is, and does no more.
    Returns where the test is: an empty folder."""
    module, here = tmp_path / "modules" / "jpype", tmp_path / "here"
    module.mkdir(parents=True)
    (module / "config.py").touch()
    (module / "__init__.py").write_text(
        "import os, sys, time\n"
        "class JException(Exception): ...\n"
        "def startJVM(*_, **__):\n"
        "    open('MutableAcc-Object.class', 'w').close()\n"
        "    print(os.getcwd(), file=sys.stderr, flush=True)\n"
        "    time.sleep(float(os.environ.get('JVM_LASTS_S', 0)))\n"
        "    os._exit(7)\n"
    )
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.syspath_prepend(module.parent)
    return here


def test_what_a_jvm_writes_is_gone_when_it_ends(writing_jvm: Path) -> None:
    with Bridge(["/nothing"]) as bridge, pytest.raises(JvmUnavailable, match="with code 7: /") as wrong:
        bridge.load("elle")
    folder = Path(str(wrong.value).rpartition(": ")[2])
    assert folder.name.startswith("wrackline-jvm-")
    assert not folder.exists()
    assert list(writing_jvm.iterdir()) == []


def test_a_jvm_that_nobody_waits_for_removes_its_folder(writing_jvm: Path) -> None:
    folder = writing_jvm.parent / "folder"
    folder.mkdir()
    command = [sys.executable, "-m", "wrackline.checkers.jvm.child", str(folder), "1g", "/nothing"]
    environment = {**os.environ, "JVM_LASTS_S": "60", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stderr is not None
        assert child.stderr.readline().decode().strip() == str(folder)
        assert [file.name for file in folder.iterdir()] == ["MutableAcc-Object.class"]
        child.stdin.close()
        assert child.wait(timeout=30) == 0
    assert not folder.exists()


def test_a_dequeue_nobody_can_model_is_unknown_without_asking() -> None:
    history = columns([(True, 1, 0, 1), (False, 0, 2, NEVER)])
    with Bridge(["/nothing"]) as bridge:
        found = bridge.linearizable(calls_of(history, Model.UNORDERED_QUEUE))
    assert (found.answer, "not modelled" in found.why) == (Answer.UNKNOWN, True)


def test_columns_for_the_jvm() -> None:
    history = columns([(True, 5, 0, 3), (False, NOTHING, 1, 4), (False, 9, 2, NEVER), (True, 6, 3, 8, True)])
    calls = calls_of(history, Model.FIFO_QUEUE)
    assert calls.a.tolist() == [5, EMPTY, NIL]
    assert calls.order().tolist() == [0, 1, 2, -1, -2]
    touching = events_in_order(np.array([0, 5]), np.array([5, 6]))
    assert touching.tolist() == [0, 1, -1, -2], "of equal stamps the invocation comes first"
