"""``wrackline get kafka``: versions of Apache Kafka on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from wrackline.maven import repository_url
from wrackline.progress import progress
from wrackline.systems.jvm.store import Store
from wrackline.systems.kafka.install import install, version_of
from wrackline.systems.kafka.releases import NEWEST, parsed
from wrackline.workloads.clients.store import ClientStore
from wrackline.workloads.clients.versions import KAFKA_CLIENTS, LIBRDKAFKA, Package

_BYTES_IN_MB = 1_000_000


@click.command("kafka")
@click.argument("version", required=False, metavar="[VERSION | FILE.tgz]")
@click.option(
    "--repository",
    "repositories",
    multiple=True,
    metavar="URL",
    help="A Maven repository (or a folder that is one) to ask before Maven Central; may be given again.",
)
@click.option("--client", is_flag=True, help="The library kafka-clients, not the server.")
@click.option("--librdkafka", is_flag=True, help="The library librdkafka, as confluent-kafka brings it.")
@click.option("--list", "listing", is_flag=True, help="List the versions that are installed.")
@click.option("--verify", is_flag=True, help="With --list: look at the checksum of every jar.")
@click.option(
    "--remove", "removing", is_flag=True, help="Remove VERSION. A run that uses it at this moment breaks."
)
def kafka_command(
    version: str | None,
    repositories: tuple[str, ...],
    client: bool,
    librdkafka: bool,
    listing: bool,
    verify: bool,
    removing: bool,
) -> int:
    """Install a version of Apache Kafka, for runs with `system: {kind: apache-kafka}`. A run installs the
    version that it needs; this does it beforehand.

    \b
      wrackline get kafka                              the newest that is known: 4.4.0
      wrackline get kafka 3.9.2
      wrackline get kafka 1.1.1                        with the ZooKeeper server that it needs
      wrackline get kafka 4.4.0 --repository https://nexus.example.org/repository/maven-all/
      wrackline get kafka ~/Downloads/kafka_2.13-4.4.0.tgz
      wrackline get kafka --client 4.4.0               kafka-clients, for workload.client.library: java
      wrackline get kafka --librdkafka 2.8.0           for workload.client.library: librdkafka, by pip
      wrackline get kafka --list
      wrackline get kafka --remove 3.9.2

    It needs Java 17 or newer, and Maven with a repository that it reaches, or the release as Apache publishes
    it. What is installed are the jars, what the server makes of an empty disk, and the JVM's archive of its
    classes, with which a node starts three times as fast. Checksums of all jars are kept, and looked at
    before every run. Beside FILE.tgz, its FILE.tgz.sha512 is looked at if it is there. Takes about a minute;
    what Maven downloads it keeps in its own folder (~/.m2).

    Versions lie in /var/lib/wrackline/kafka, which hosts see; WRACKLINE_KAFKA_DIR names another folder (not
    below /tmp, /var/tmp, /run, /root or /home). Exit code: 0, 2 wrong call, 4 it could not be installed.
    """
    package = KAFKA_CLIENTS if client else LIBRDKAFKA if librdkafka else None
    if client and librdkafka:
        raise click.UsageError("--client and --librdkafka are two libraries; give one of them")
    if librdkafka and version is None and not listing:
        raise click.UsageError(f"name the VERSION of {LIBRDKAFKA.name}, {LIBRDKAFKA.newest} for example")
    if listing and (version or removing):
        raise click.UsageError("--list takes no VERSION, and lists all")
    if verify and not listing:
        raise click.UsageError("--verify is said with --list")
    if listing:
        return _list(verify)
    if removing:
        if version is None:
            raise click.UsageError(
                "name the VERSION to remove; `wrackline get kafka --list` says which there are"
            )
        return _remove(version, package)
    return _install(version or NEWEST, repositories, package)


def _install(version: str, repositories: Sequence[str], package: Package | None) -> int:
    try:
        first = [repository_url(one) for one in repositories]
        given = Path(version)
        if package is not None:
            return _install_client(version, package, first)
        tarball = given if given.is_file() else None
        expected = version_of(given) if tarball else version
        parsed(expected)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    release = install(Store(), expected, repositories=first, tarball=tarball, say=progress)
    click.echo(f"Kafka {release.version} is in {release.folder} ({release.size_bytes // _BYTES_IN_MB} MB)")
    return 0


def _install_client(version: str, package: Package, repositories: Sequence[str]) -> int:
    """Raises ValueError, Unavailable."""
    result = ClientStore(package=package).install(version, repositories=repositories, say=progress)
    click.echo(f"{package.name} {result.version} is in {result.folder}")
    return 0


def _list(verify: bool) -> int:
    """The installed versions, oldest first, with their size, where they came from, and the Java that made the
    archive of their classes; then ZooKeeper, and the versions of the client libraries."""
    store = Store()
    releases = store.releases()
    for one in releases:
        if verify:
            one.verify()
        size = f"{one.size_bytes // _BYTES_IN_MB} MB"
        click.echo(f"{one.version:<8} {size:>7}  from {one.origin}; {one.java}")
    for one in store.zookeeper.releases():
        if verify:
            one.verify()
        click.echo(f"{one.version:<8} {one.program}, in {one.folder}")
    if not releases:
        click.echo(f"none in {store.root}; `wrackline get kafka` installs {NEWEST}")
    for package in (KAFKA_CLIENTS, LIBRDKAFKA):
        for library in ClientStore(package=package).all():
            if verify:
                library.verify()
            click.echo(f"{library.version:<8} {package.name}, in {library.folder}")
    return 0


def _remove(version: str, package: Package | None) -> int:
    if package is not None:
        if not ClientStore(package=package).remove(version):
            raise click.UsageError(f"{package.name} {version} is not installed")
        click.echo(f"{package.name} {version} is removed")
        return 0
    if not Store().remove(version):
        raise click.UsageError(
            f"Kafka {version} is not installed; `wrackline get kafka --list` says which are"
        )
    click.echo(f"Kafka {version} is removed")
    return 0
