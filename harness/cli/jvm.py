"""``wrackline jvm``: get Knossos and Elle, and see that they answer."""

from __future__ import annotations

import click

from wrackline.checkers.jvm import install as maven
from wrackline.checkers.jvm.bridge import DEFAULT_HEAP, Bridge
from wrackline.checkers.jvm.classpath import CLASSPATH_VARIABLE, JvmUnavailable, jvm_home, required_classpath
from wrackline.harness.cli.options import memory_size
from wrackline.maven import repository_url

classpath_option = click.option(
    "--classpath",
    metavar="PATH",
    help=f"Jars of Knossos and Elle, separated by colons; ${CLASSPATH_VARIABLE} "
    "or what was installed by default.",
)


heap_option = click.option(
    "--heap",
    default=DEFAULT_HEAP,
    show_default=True,
    metavar="SIZE",
    callback=memory_size,
    help="Most memory of the JVM: 512m, 4g.",
)


@click.group("jvm")
def jvm() -> None:
    """Knossos and Elle, as referee of what was found and for what the exact checks do not decide.

    \b
    Optional: everything else works without. It needs
      JPype             pip install 'wrackline[jvm]'
      Java 17 or newer
      their jars        wrackline jvm install, or set WRACKLINE_JVM_CLASSPATH
    """


@jvm.command("install", short_help="Let Maven resolve Knossos and Elle.")
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
def install_command(knossos: str, elle: str, clojars: str, repositories: tuple[str, ...]) -> int:
    """Resolve Knossos and Elle with Maven, from Clojars and Maven Central, and remember their classpath.

    \b
      wrackline jvm install
      wrackline jvm install --repository https://nexus.example.org/repository/maven-all/
      wrackline jvm install --repository /media/stick/maven

    A repository that has everything is the only one that is asked. What Maven downloads it keeps in its own
    folder (~/.m2); its settings.xml (proxies, mirrors, passwords) holds here too.
    """
    try:
        first = [repository_url(one) for one in repositories]
        repository_url(clojars)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from wrong
    where = maven.install(
        jvm_home(),
        maven.wanted(knossos, elle),
        clojars=clojars,
        first=first,
        progress=_told,
    )
    click.echo(f"the classpath is in {where}; `wrackline jvm check` tries it")
    return 0


@jvm.command("check", short_help="See that Knossos and Elle answer.")
@heap_option
@classpath_option
def check_jvm_command(heap: str, classpath: str | None) -> int:
    """Start the JVM, load Knossos and Elle, and say what they are. Exit code 2 when something is missing."""
    with Bridge(required_classpath(classpath), heap=heap, progress=_told) as bridge:
        java, clojure = bridge.versions()
        click.echo(f"Java {java}, Clojure {clojure}")
        missing = []
        for name in ("knossos", "elle"):
            try:
                bridge.load(name)
            except JvmUnavailable as wrong:
                missing.append(str(wrong))
            else:
                click.echo(f"{name.capitalize()} is there")
    if missing:
        raise JvmUnavailable("; ".join(missing))
    return 0


def _told(line: str) -> None:
    click.echo(line, err=True)
