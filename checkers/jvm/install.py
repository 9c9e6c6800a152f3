"""Maven resolves Knossos and Elle from where they are published, Clojars and Maven Central, or from a
mirror."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from wrackline import maven
from wrackline.checkers.jvm.classpath import CLASSPATH_FILE, CLASSPATH_VARIABLE, JvmUnavailable
from wrackline.maven import DEADLINE_S, Artifact, MavenFailed

CLOJARS = "https://repo.clojars.org/"
KNOSSOS = "0.3.15"
ELLE = "0.2.6"
"""Later ones are compiled for Java 21, and Spark is content with 17."""
CLOJURE = "1.12.4"


def wanted(knossos: str = KNOSSOS, elle: str = ELLE) -> tuple[Artifact, ...]:
    return (
        Artifact("org.clojure", "clojure", CLOJURE),
        Artifact("knossos", "knossos", knossos),
        Artifact("elle", "elle", elle),
    )


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
    try:
        jars = maven.resolve(
            home,
            artifacts,
            first=first,
            then=[("clojars", clojars)],
            otherwise=f"or set {CLASSPATH_VARIABLE} to jars you have",
            progress=progress,
            deadline_s=deadline_s,
        )
    except MavenFailed as error:
        raise JvmUnavailable(str(error)) from error
    fresh = home / (CLASSPATH_FILE + ".new")
    fresh.write_text(os.pathsep.join(map(str, jars)) + "\n")
    fresh.replace(home / CLASSPATH_FILE)
    return home / CLASSPATH_FILE
