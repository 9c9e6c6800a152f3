"""The classpath of Knossos and Elle: given by the user, or left behind by `wrackline get jvm`."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from wrackline.cache import cache_folder
from wrackline.errors import InputError
from wrackline.needs import mend

CLASSPATH_VARIABLE = "WRACKLINE_JVM_CLASSPATH"
CLASSPATH_FILE = "classpath.txt"


class JvmUnavailable(InputError):
    """Knossos and Elle cannot be asked here. One line: what is missing, and how to get it."""


def jvm_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder where `wrackline get jvm` keeps what it resolved."""
    return cache_folder(environment) / "jvm"


def find_classpath(
    given: str | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[str, ...] | None:
    """The entries of the classpath, as absolute paths: as given, else of WRACKLINE_JVM_CLASSPATH, else as
    installed; None where there is none of them. An entry ``dir/*`` stands for the jars in a directory. Raises
    JvmUnavailable for entries that are not there."""
    text = given or environment.get(CLASSPATH_VARIABLE)
    source = "--classpath" if given else CLASSPATH_VARIABLE
    if not text:
        installed = jvm_home(environment) / CLASSPATH_FILE
        if not installed.is_file():
            return None
        text, source = installed.read_text().strip(), str(installed)
    entries = [one for part in text.split(os.pathsep) if part for one in _expanded(part)]
    missing = [entry for entry in entries if not Path(entry).exists()]
    if missing or not entries:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        what = f"{missing[0]} is not there{more}" if missing else "it names no jar"
        raise JvmUnavailable(f"{source}: {what}; point it at the jars of Knossos and Elle")
    # JVMs run in a folder of their own.
    return tuple(str(Path(entry).absolute()) for entry in entries)


def _expanded(part: str) -> Sequence[str]:
    if part.endswith("/*"):
        return sorted(str(jar) for jar in Path(part[:-2]).glob("*.jar"))
    return [part]


def required_classpath(given: str | None = None) -> tuple[str, ...]:
    """Raises JvmUnavailable where JPype, Java or a classpath is missing."""
    if importlib.util.find_spec("jpype") is None:
        raise JvmUnavailable(f"Knossos and Elle need JPype: {mend('jvm')}")
    java_program()
    result = find_classpath(given)
    if result is None:
        raise JvmUnavailable(
            f"no classpath with Knossos and Elle: `wrackline get jvm` resolves one with Maven, "
            f"or set {CLASSPATH_VARIABLE} to their jars"
        )
    return result


def java_program() -> Path:
    """The ``java`` of JAVA_HOME, as JPype takes it, or else of the path. Raises JvmUnavailable."""
    java_home = os.environ.get("JAVA_HOME")
    if java_home and (program := Path(java_home, "bin", "java")).is_file():
        return program.absolute()
    result = shutil.which("java")
    if result is None:
        raise JvmUnavailable(f"no Java found: {mend('java')}")
    return Path(result).absolute()


def available() -> bool:
    """Tells whether Knossos and Elle can be asked here, as far as can be told without starting a JVM."""
    try:
        required_classpath()
    except JvmUnavailable:
        return False
    return True
