"""``wrackline kafka``: versions of Apache Kafka on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from wrackline.maven import repository_url
from wrackline.systems.jvm.store import Store
from wrackline.systems.kafka.install import install, version_of
from wrackline.systems.kafka.releases import NEWEST, parsed
from wrackline.workloads.clients.java.store import ClientStore

_BYTES_IN_MB = 1_000_000
client_option = click.option("--client", is_flag=True, help="The library kafka-clients, not the server.")


@click.group("kafka")
def kafka() -> None:
    """Versions of Apache Kafka on this machine, for runs with `system: {kind: apache-kafka}`.

    \b
    A run installs the version that it needs; these commands do it beforehand.
      wrackline kafka install 4.4.0
      wrackline run suites/kafka-acks-all.yaml --set system.version=3.9.2

    \b
    It needs
      Java 17 or newer
      Maven, and a repository that it reaches; or the release as Apache publishes it
    """


@kafka.command("install", short_help="Install a version, by Maven or from the release itself.")
@click.argument("version", default=NEWEST, metavar="[VERSION | FILE.tgz]")
@click.option(
    "--repository",
    "repositories",
    multiple=True,
    metavar="URL",
    help="A Maven repository (or a folder that is one) to ask before Maven Central; may be given again.",
)
@client_option
def install_command(version: str, repositories: tuple[str, ...], client: bool) -> int:
    """Install VERSION, or the release in FILE.tgz: its jars, what the server makes of an empty disk, and the
    JVM's archive of its classes, with which a node starts three times as fast.

    \b
      wrackline kafka install                              the newest that is known: 4.4.0
      wrackline kafka install 3.9.2
      wrackline kafka install 1.1.1                        with the ZooKeeper server that it needs
      wrackline kafka install 4.4.0 --repository https://nexus.example.org/repository/maven-all/
      wrackline kafka install ~/Downloads/kafka_2.13-4.4.0.tgz

    \b
      wrackline kafka install --client 4.4.0               kafka-clients, for workload.client.library: java

    Checksums of all jars are kept, and looked at before every run. Beside FILE.tgz, its FILE.tgz.sha512 is
    looked at if it is there. Takes about a minute; what Maven downloads it keeps in its own folder (~/.m2).

    Versions lie in /var/lib/wrackline/kafka, which hosts see; WRACKLINE_KAFKA_DIR names another folder (not
    below /tmp, /var/tmp, /run, /root or /home). Exit code: 0, 2 wrong call, 4 it could not be installed.
    """
    try:
        first = [repository_url(one) for one in repositories]
        given = Path(version)
        if client:
            return _install_client(version, first)
        tarball = given if given.is_file() else None
        wanted = version_of(given) if tarball else version
        parsed(wanted)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from wrong
    release = install(
        Store(),
        wanted,
        repositories=first,
        tarball=tarball,
        say=lambda line: click.echo(line, err=True),
    )
    click.echo(f"Kafka {release.version} is in {release.folder} ({release.size_bytes // _BYTES_IN_MB} MB)")
    return 0


def _install_client(version: str, repositories: Sequence[str]) -> int:
    """Raises ValueError, Unavailable."""
    found = ClientStore().install(
        version, repositories=repositories, say=lambda line: click.echo(line, err=True)
    )
    click.echo(f"kafka-clients {found.version} is in {found.folder}")
    return 0


@kafka.command("list", short_help="Which versions are installed.")
@click.option("--verify", is_flag=True, help="Look at the checksum of every jar.")
def list_command(verify: bool) -> int:
    """List the installed versions, oldest first, with their size, where they came from, and the Java that
    made the archive of their classes; then ZooKeeper, and the versions of the client library."""
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
        click.echo(f"none in {store.root}; `wrackline kafka install` installs {NEWEST}")
    for library in ClientStore().all():
        if verify:
            library.verify()
        click.echo(f"{library.version:<8} kafka-clients, in {library.folder}")
    return 0


@kafka.command("remove", short_help="Remove a version.")
@click.argument("version")
@client_option
def remove_command(version: str, client: bool) -> int:
    """Remove an installed VERSION. A run that uses it at this moment breaks."""
    if client:
        if not ClientStore().remove(version):
            raise click.UsageError(f"kafka-clients {version} is not installed")
        click.echo(f"kafka-clients {version} is removed")
        return 0
    if not Store().remove(version):
        raise click.UsageError(f"Kafka {version} is not installed; `wrackline kafka list` says which are")
    click.echo(f"Kafka {version} is removed")
    return 0
