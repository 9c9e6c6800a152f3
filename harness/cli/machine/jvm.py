"""``wrackline get jvm``: install Knossos and Elle, and see that they answer."""

from __future__ import annotations

import click

from wrackline.checkers.jvm import install as maven
from wrackline.checkers.jvm.bridge import DEFAULT_HEAP, Bridge
from wrackline.checkers.jvm.classpath import CLASSPATH_VARIABLE, JvmUnavailable, jvm_home, required_classpath
from wrackline.harness.cli.options import memory_size
from wrackline.maven import repository_url
from wrackline.progress import progress


@click.command("jvm")
@click.option("--knossos", default=maven.KNOSSOS, show_default=True, metavar="VERSION")
@click.option("--elle", default=maven.ELLE, show_default=True, metavar="VERSION")
@click.option("--clojars", default=maven.CLOJARS, show_default=True, metavar="URL", help="Or a mirror of it.")
@click.option(
    "--repository",
    "repositories",
    multiple=True,
    metavar="URL",
    help="A Maven repository (or a folder that is one) to ask before Clojars and Maven Central; "
    "may be given again.",
)
@click.option("--check", "checking", is_flag=True, help="Install nothing: load both, and say what they are.")
@click.option(
    "--heap",
    default=DEFAULT_HEAP,
    show_default=True,
    metavar="SIZE",
    callback=memory_size,
    help="With --check: most memory of the JVM: 512m, 4g.",
)
@click.option(
    "--classpath",
    metavar="PATH",
    help=f"With --check: jars of Knossos and Elle, separated by colons; ${CLASSPATH_VARIABLE} "
    "or what was installed by default.",
)
def jvm_command(
    knossos: str,
    elle: str,
    clojars: str,
    repositories: tuple[str, ...],
    checking: bool,
    heap: str,
    classpath: str | None,
) -> int:
    """Install Knossos and Elle: referees of what was found, and judges of what the exact checks do not
    decide. All else works without them.

    \b
      wrackline get jvm
      wrackline get jvm --repository https://nexus.example.org/repository/maven-all/
      wrackline get jvm --repository /media/stick/maven
      wrackline get jvm --check                              do they answer?

    They need JPype (pip install 'wrackline[jvm]') and Java 17 or newer. Maven resolves them from Clojars and
    Maven Central, and their classpath is remembered; WRACKLINE_JVM_CLASSPATH names other jars. A repository
    that has everything is the only one that is asked. What Maven downloads it keeps in its own folder
    (~/.m2); its settings.xml (proxies, mirrors, passwords) holds here too. Exit code: 0, or 2 when something
    is missing.
    """
    if checking:
        return _check(heap, classpath)
    try:
        first = [repository_url(one) for one in repositories]
        repository_url(clojars)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    where = maven.install(
        jvm_home(), maven.wanted(knossos, elle), clojars=clojars, first=first, progress=progress
    )
    click.echo(f"the classpath is in {where}; `wrackline get jvm --check` tries it")
    return 0


def _check(heap: str, classpath: str | None) -> int:
    """Raises JvmUnavailable."""
    with Bridge(required_classpath(classpath), heap=heap, progress=progress) as bridge:
        java, clojure = bridge.versions()
        click.echo(f"Java {java}, Clojure {clojure}")
        missing = []
        for name in ("knossos", "elle"):
            try:
                bridge.load(name)
            except JvmUnavailable as error:
                missing.append(str(error))
            else:
                click.echo(f"{name.capitalize()} is there")
    if missing:
        raise JvmUnavailable("; ".join(missing))
    return 0
