"""Hadoop's client of S3 for Spark: PySpark brings Hadoop without it. Maven gets it once, into its own
folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from wrackline import maven
from wrackline.cache import cache_folder
from wrackline.maven import DEADLINE_S, Artifact

_SDK = "software.amazon.awssdk"
SDK_VERSION = "2.35.4"
"""What Hadoop 3.5.0 is built with. Hadoop asks for the whole SDK, one jar of 600 MB: these are its parts."""
_PARTS = ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")
_SPARK_HAS = tuple(
    (group, "*")
    for group in ("io.netty", "org.slf4j", "commons-logging", "commons-codec", "org.apache.httpcomponents")
)


def hadoop_version() -> str:
    """Returns the version of the Hadoop that PySpark brings. Raises LookupError where there is no PySpark,
    or no jar of it."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise LookupError("PySpark is not installed")
    for jar in (Path(spec.origin).parent / "jars").glob("hadoop-client-api-*.jar"):
        match = re.fullmatch(r"hadoop-client-api-(.+)\.jar", jar.name)
        if match:
            return match[1]
    raise LookupError(f"no jar of Hadoop beside {spec.origin}")


def wanted() -> tuple[Artifact, ...]:
    client = Artifact(
        "org.apache.hadoop",
        "hadoop-aws",
        hadoop_version(),
        without=((_SDK, "bundle"), ("org.wildfly.openssl", "*")),
    )
    return client, *(Artifact(_SDK, part, SDK_VERSION, without=_SPARK_HAS) for part in _PARTS)


def _list_of_jars(environment: Mapping[str, str]) -> Path:
    return cache_folder(environment) / "spark" / f"s3-hadoop-{hadoop_version()}.txt"


def install(
    *,
    first: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _line: None,
    deadline_s: float = DEADLINE_S,
    environment: Mapping[str, str] = os.environ,
) -> tuple[Path, ...]:
    """Resolve the jars and remember where they are. ``first``: URLs of repositories that are asked before
    Maven Central. What was installed stays when this fails. Raises MavenFailed, OSError."""
    into = _list_of_jars(environment)
    jars = maven.resolve(
        into.parent,
        wanted(),
        first=first,
        otherwise="or name a mirror of Maven Central with --repository",
        progress=progress,
        deadline_s=deadline_s,
    )
    fresh = into.with_suffix(".new")
    fresh.write_text("".join(f"{jar}\n" for jar in jars))
    fresh.replace(into)
    return jars


def installed_jars(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...] | None:
    """Returns the installed jars; None where nothing was installed, or some of it is gone."""
    try:
        jars = tuple(Path(line) for line in _list_of_jars(environment).read_text().splitlines())
    except FileNotFoundError:
        return None
    return jars if jars and all(jar.is_file() for jar in jars) else None
