"""Let Maven resolve Knossos and Elle from where they are published, Clojars and Maven Central, or from a
mirror."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from wrackline.checkers.jvm.classpath import CLASSPATH_FILE, CLASSPATH_VARIABLE, JvmUnavailable

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
{repositories}
  </repositories>
  <pluginRepositories>
{plugins}
  </pluginRepositories>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
_REPOSITORY = "    <{0}><id>{1}</id><url>{2}</url></{0}>"
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


def pom(artifacts: Sequence[Artifact], clojars: str = CLOJARS, first: Sequence[str] = ()) -> str:
    """``first``: repositories that are asked before Clojars and Maven Central, for Maven's plugin too."""
    lines = [_DEPENDENCY.format(*map(escape, (a.group, a.name, a.version))) for a in artifacts]
    named = [(f"repository-{n}", url) for n, url in enumerate(first, 1)]
    return _POM.format(
        repositories=_repositories("repository", [*named, ("clojars", clojars)]),
        plugins=_repositories("pluginRepository", named),
        dependencies="\n".join(lines),
    )


def _repositories(element: str, named: Sequence[tuple[str, str]]) -> str:
    return "\n".join(_REPOSITORY.format(element, name, escape(url)) for name, url in named)


def repository_url(given: str) -> str:
    """A folder becomes a file URL. Raises ValueError, in one line."""
    if re.match(r"(https?|file)://", given):
        return given
    if not Path(given).is_dir():
        raise ValueError(f"{given!r} is neither a URL (https://, http://, file://) nor a folder")
    return Path(given).resolve().as_uri()


def install(
    home: Path,
    artifacts: Sequence[Artifact],
    *,
    clojars: str = CLOJARS,
    first: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _line: None,
    deadline_s: float = DEADLINE_S,
) -> Path:
    """Resolve the artifacts with all they need; returns the file in ``home`` with their classpath, which
    find_classpath reads. A classpath that was there stays when this fails. ``first``: URLs of repositories to
    ask before Clojars and Maven Central. Raises JvmUnavailable, OSError."""
    maven = shutil.which("mvn")
    if maven is None:
        raise JvmUnavailable(
            f"no Maven found: install it (Debian: maven), or set {CLASSPATH_VARIABLE} to jars you have"
        )
    home.mkdir(parents=True, exist_ok=True)
    (home / "pom.xml").write_text(pom(artifacts, clojars, first))
    fresh = home / (CLASSPATH_FILE + ".new")
    fresh.unlink(missing_ok=True)
    names = ", ".join(f"{one.name} {one.version}" for one in artifacts)
    progress(f"Maven resolves {names} (log: {home / 'maven.log'})")
    # -U: what Maven did not find last time, it would not look for again before a day is over.
    command = [maven, "-B", "-U", "-f", str(home / "pom.xml"), _PLUGIN, f"-Dmdep.outputFile={fresh}"]
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
    if "No space left on device" in said:
        return f"Maven ran out of disk space, in its own folder (~/.m2) or in {home}: free some, {mend}"
    blocked = re.search(r"Blocked mirror for repositories: \[\S+ \((http://[^,)]*)", said)
    if blocked:
        return f"Maven takes nothing from {blocked.group(1)} without TLS: name it by https://, {mend}"
    transfer = re.search(
        r"Could not (?:transfer|find) artifact (\S+) (?:from/to|in) (\S+) \((\S+?)\)(?:: ([^\n]*))?", said
    )
    if transfer:
        artifact, repository, url, reason = transfer.groups()
        reason = (reason or "it is not there").split(" -> ")[0].strip()
        return (
            f"Maven could not get {artifact} from {repository} ({url}): {reason}; check the network, name a "
            "mirror (--repository), "
            f"{mend}"
        )
    errors = [line.removeprefix("[ERROR] ") for line in said.splitlines() if line.startswith("[ERROR] ")]
    return f"Maven failed: {errors[0] if errors else 'it gave no reason'}; mend that, {mend}"
