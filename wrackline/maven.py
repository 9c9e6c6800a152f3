"""Artifacts from Maven repositories, with all they need, resolved by Maven itself: its settings.xml (proxies,
mirrors, passwords) and its own folder (~/.m2) hold here too."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from wrackline.errors import InputError
from wrackline.needs import mend

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
    "    <dependency><groupId>{0}</groupId><artifactId>{1}</artifactId><version>{2}</version>{3}</dependency>"
)
_EXCLUSION = "<exclusion><groupId>{0}</groupId><artifactId>{1}</artifactId></exclusion>"


class MavenFailed(InputError):
    """Maven did not get what was asked for. One line: what is wrong, and how to mend it."""


@dataclass(frozen=True, slots=True)
class Artifact:
    group: str
    name: str
    version: str
    without: tuple[tuple[str, str], ...] = ()
    """(group, name) of what it says that it needs, and does not get."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def pom(
    artifacts: Sequence[Artifact], *, first: Sequence[str] = (), then: Sequence[tuple[str, str]] = ()
) -> str:
    """A project that needs the artifacts. ``first``: URLs of repositories that are asked before all others,
    for Maven's plugin too; ``then``: (id, URL) of those asked after them and before Maven Central."""
    named = [(f"repository-{n}", url) for n, url in enumerate(first, 1)]
    return _POM.format(
        repositories=_repositories("repository", [*named, *then]),
        plugins=_repositories("pluginRepository", named),
        dependencies="\n".join(map(_dependency, artifacts)),
    )


def _dependency(artifact: Artifact) -> str:
    words = map(escape, (artifact.group, artifact.name, artifact.version))
    without = "".join(_EXCLUSION.format(*map(escape, one)) for one in artifact.without)
    return _DEPENDENCY.format(*words, f"<exclusions>{without}</exclusions>" if without else "")


def _repositories(element: str, named: Sequence[tuple[str, str]]) -> str:
    return "\n".join(_REPOSITORY.format(element, name, escape(url, quote=False)) for name, url in named)


def repository_url(given: str) -> str:
    """A folder becomes a file URL. Raises ValueError, in one line."""
    if re.match(r"(https?|file)://", given):
        return given
    if not Path(given).is_dir():
        raise ValueError(f"{given!r} is neither a URL (https://, http://, file://) nor a folder")
    return Path(given).resolve().as_uri()


def resolve(
    home: Path,
    artifacts: Sequence[Artifact],
    *,
    first: Sequence[str] = (),
    then: Sequence[tuple[str, str]] = (),
    otherwise: str,
    progress: Callable[[str], None] = lambda _line: None,
    deadline_s: float = DEADLINE_S,
) -> tuple[Path, ...]:
    """The jars of the artifacts and of all they need, in Maven's own folder. ``home`` keeps the project and
    Maven's log. ``otherwise`` ends the sentence of an error: what can be done without Maven. Raises
    MavenFailed, OSError."""
    maven = shutil.which("mvn")
    if maven is None:
        raise MavenFailed(f"no Maven found: {mend('kafka')}, {otherwise}")
    home.mkdir(parents=True, exist_ok=True)
    project, log = home / "pom.xml", home / "maven.log"
    project.write_text(pom(artifacts, first=first, then=then))
    fresh = home / "classpath.new"
    fresh.unlink(missing_ok=True)
    names = ", ".join(map(str, artifacts))
    progress(f"Maven resolves {names} (log: {log})")
    # -U: what Maven did not find last time, it would not look for again before a day is over.
    command = [maven, "-B", "-U", "-f", str(project), _PLUGIN, f"-Dmdep.outputFile={fresh}"]
    with log.open("w") as into:
        try:
            code = subprocess.run(
                command, stdout=into, stderr=subprocess.STDOUT, timeout=deadline_s, check=False
            ).returncode
        except subprocess.TimeoutExpired as late:
            raise MavenFailed(f"Maven did not resolve {names} within {deadline_s:g} s; see {log}") from late
    if code != 0 or not fresh.is_file():
        raise MavenFailed(_why(log.read_text(errors="replace"), home, f"{otherwise} (log: {log})"))
    jars = tuple(Path(one) for one in fresh.read_text().strip().split(os.pathsep) if one)
    fresh.unlink()
    for jar in jars:
        _check(jar)
    return jars


def _check(jar: Path) -> None:
    """Maven only warns of a download that is not what its checksum says, and does not look at what it has:
    both are held against the checksum that came with it, if one did. Raises MavenFailed."""
    beside = jar.with_name(jar.name + ".sha1")
    if not beside.is_file():
        return
    with jar.open("rb") as file:
        result = hashlib.file_digest(file, "sha1").hexdigest()
    if result not in beside.read_text(errors="replace").lower():
        raise MavenFailed(f"{jar} is not what its repository published (SHA-1 {result}): remove {jar.parent}")


def _why(said: str, home: Path, otherwise: str) -> str:
    """Maven's reason in one line."""
    if "No space left on device" in said:
        return f"Maven ran out of disk space, in its own folder (~/.m2) or in {home}: free some, {otherwise}"
    blocked = re.search(r"Blocked mirror for repositories: \[\S+ \((http://[^,)]*)", said)
    if blocked:
        return f"Maven takes nothing from {blocked.group(1)} without TLS: name it by https://, {otherwise}"
    transfer = re.search(
        r"Could not (?:transfer|find) artifact (\S+) (?:from/to|in) (\S+) \((\S+?)\)(?:: ([^\n]*))?", said
    )
    if transfer:
        artifact, repository, url, reason = transfer.groups()
        reason = (reason or "it is not there").split(" -> ")[0].strip()
        return (
            f"Maven could not get {artifact} from {repository} ({url}): {reason}; check the network, name a "
            f"mirror (--repository), {otherwise}"
        )
    errors = [line.removeprefix("[ERROR] ") for line in said.splitlines() if line.startswith("[ERROR] ")]
    return f"Maven failed: {errors[0] if errors else 'it gave no reason'}; mend that, {otherwise}"
