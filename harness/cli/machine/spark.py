"""``wrackline get spark``: what Spark needs for storage that it does not know."""

from __future__ import annotations

from pathlib import Path

import click

from wrackline.checkers.engine.spark import hadoop
from wrackline.maven import repository_url
from wrackline.progress import progress


def _repository(_context: click.Context, _option: click.Parameter, given: str | None) -> str | None:
    try:
        return given and repository_url(given)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("spark")
@click.option(
    "--repository",
    metavar="URL",
    callback=_repository,
    help="A mirror of Maven Central, or a folder that is one; asked first.",
)
def spark_command(repository: str | None) -> int:
    """Install the jars by which Spark reads and writes s3:// and s3a://, once for this machine (13 MB).

    \b
      wrackline get spark
      wrackline get spark --repository /media/stick/maven

    They are Hadoop's client of S3, of the version that PySpark brings, and the parts of Amazon's SDK that it
    uses. Maven resolves them into its own folder. Executors get them from here, with each analysis
    (docs/spark.md).
    """
    jars = hadoop.install(first=[repository] if repository else [], progress=progress)
    megabytes = sum(jar.stat().st_size for jar in jars) / 1e6
    click.echo(
        f"{len(jars)} jars ({megabytes:.0f} MB) for Hadoop {hadoop.hadoop_version()}, in {_home(jars[0])}"
    )
    return 0


def _home(jar: Path) -> Path:
    """The repository that a jar is in: GROUP/NAME/VERSION/JAR below it."""
    return next((above for above in jar.parents if above.name == "repository"), jar.parent)
