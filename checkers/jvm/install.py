"""Let Maven resolve Knossos and Elle from where they are published: Clojars and Maven Central."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from checkers.jvm.classpath import CLASSPATH_FILE, CLASSPATH_VARIABLE, JvmUnavailable

CLOJARS = "https://repo.clojars.org/"
KNOSSOS = "0.3.15"
ELLE = "0.2.6"
"""Later ones are compiled for Java 21, and Spark is content with 17."""
CLOJURE = "1.12.4"
DEADLINE_S = 600.0
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
_POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>wrackline</groupId>
  <artifactId>jvm</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <repositories>
    <repository><id>clojars</id><url>{clojars}</url></repository>
  </repositories>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_DEPENDENCY = (
    "    <dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version></dependency>"
)


@dataclass(frozen=True, slots=True)
class Artifact:
    group: str
    name: str
    version: str


def wanted(knossos: str = KNOSSOS, elle: str = ELLE) -> tuple[Artifact, ...]:
    return (
        Artifact("org.clojure", "clojure", CLOJURE),
        Artifact("knossos", "knossos", knossos),
        Artifact("elle", "elle", elle),
    )


def pom(artifacts: Sequence[Artifact], clojars: str = CLOJARS) -> str:
    lines = [_DEPENDENCY.format(*map(escape, (a.group, a.name, a.version))) for a in artifacts]
    return _POM.format(clojars=escape(clojars), dependencies="\n".join(lines))


def install(
    home: Path,
    artifacts: Sequence[Artifact],
    *,
    clojars: str = CLOJARS,
    progress: Callable[[str], None] = lambda _line: None,
    deadline_s: float = DEADLINE_S,
) -> Path:
    """Resolve the artifacts with all they need; returns the file in ``home`` with their classpath, which
    find_classpath reads. A classpath that was there stays when this fails. Raises JvmUnavailable, OSError."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JvmUnavailable(
            f"no Maven found: install it (Debian: maven), or set {CLASSPATH_VARIABLE} to jars you have"
        )
    home.mkdir(parents=True, exist_ok=True)
    (home / "pom.xml").write_text(pom(artifacts, clojars))
    fresh = home / (CLASSPATH_FILE + ".new")
    fresh.unlink(missing_ok=True)
    names = ", ".join(f"{one.name} {one.version}" for one in artifacts)
    progress(f"Maven resolves {names} (log: {home / 'maven.log'})")
    command = [maven, "-B", "-f", str(home / "pom.xml"), _PLUGIN, f"-Dmdep.outputFile={fresh}"]
    with (home / "maven.log").open("w") as log:
        try:
            code = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, timeout=deadline_s, check=False
            ).returncode
        except subprocess.TimeoutExpired as late:
            raise JvmUnavailable(
                f"Maven did not resolve {names} within {deadline_s:g} s; see {home / 'maven.log'}"
            ) from late
    if code != 0 or not fresh.is_file():
        raise JvmUnavailable(_why((home / "maven.log").read_text(errors="replace"), home))
    fresh.replace(home / CLASSPATH_FILE)
    return home / CLASSPATH_FILE


def _why(said: str, home: Path) -> str:
    """Maven's reason in one line."""
    mend = f"or set {CLASSPATH_VARIABLE} to jars you have (log: {home / 'maven.log'})"
    transfer = re.search(
        r"Could not (?:transfer|find) artifact (\S+) (?:from/to|in) (\S+) \((\S+?)\)(?:: ([^\n]*))?", said
    )
    if transfer:
        artifact, repository, url, reason = transfer.groups()
        reason = (reason or "it is not there").split(" -> ")[0].strip()
        return (
            f"Maven could not get {artifact} from {repository} ({url}): {reason}; check the network, {mend}"
        )
    errors = [line.removeprefix("[ERROR] ") for line in said.splitlines() if line.startswith("[ERROR] ")]
    return f"Maven failed: {errors[0] if errors else 'it gave no reason'}; mend that, {mend}"
