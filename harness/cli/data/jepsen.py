"""``wrackline history export`` and ``wrackline history import``: histories in Jepsen's words, out and in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from wrackline.harness.cli.options import results_option
from wrackline.harness.run import results as stored
from wrackline.history.jepsen.exports import MODELS, Keys, rows
from wrackline.history.jepsen.imports import Settings, import_history
from wrackline.history.jepsen.text import TextError, write
from wrackline.progress import progress


@click.command("export")
@click.argument("name", metavar="RUN")
@click.option(
    "--model",
    type=click.Choice(list(MODELS)),
    default="kafka",
    show_default=True,
    help="kafka: jepsen.tests.kafka's operations; list-append: Elle's; log, register, queue: one per "
    "partition, for `wrackline check --independent` and Knossos.",
)
@click.option(
    "--format", "fmt", type=click.Choice(["edn", "json"]), help="The output's ending by default, else edn."
)
@click.option(
    "-o",
    "--out",
    "--output",
    "output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="RUN's history.MODEL.FORMAT by default.",
)
@results_option
def export_command(name: str, model: str, fmt: str | None, output: Path | None, results: Path) -> int:
    """Write the history of RUN (a directory, an id, the beginning of one, or `last`) in Jepsen's words.

    \b
      wrackline history export last                             history.kafka.edn in the run's directory
      wrackline history export last --model list-append -o appends.json
      elle-cli --model list-append appends.json
      wrackline history export last --model log -o log.edn
      wrackline check --model log --independent log.edn

    Partitions become integer keys; which is which is printed.
    """
    run_dir = stored.find(name, results)
    if fmt is None:
        fmt = "json" if output is not None and output.suffix == ".json" else "edn"
    target = output or run_dir / f"history.{model}.{fmt}"
    keys = Keys()
    count = write(MODELS[model](rows(run_dir), keys), target, fmt, _progress("written"))
    if not count:
        raise TextError(
            f"{run_dir.name}: no operation in it that {model} has a word for; nothing was written to {target}"
        )
    click.echo(f"{target}: {count} operations")
    for (topic, partition), key in sorted(keys.numbers.items(), key=lambda item: item[1]):
        if key != partition or len({topic for topic, _ in keys.numbers}) > 1:
            click.echo(f"  key {key} is {topic}-{partition}")
    return 0


@click.command("import")
@click.argument(
    "history", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="HISTORY.edn"
)
@click.option("--name", help="Name of the run; the file's folder by default.")
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    show_default=True,
    help="What the producers used.",
)
@click.option(
    "--idempotence/--no-idempotence", default=True, show_default=True, help="Was enable.idempotence on?"
)
@click.option("--replication-factor", type=click.IntRange(1), default=3, show_default=True)
@click.option("--min-isr", type=click.IntRange(1), default=2, show_default=True, help="min.insync.replicas.")
@click.option(
    "--isolation",
    type=click.Choice(["read_committed", "read_uncommitted"]),
    help="The consumers' isolation.level, where there are transactions.",
)
@results_option
def import_command(
    history: Path,
    name: str | None,
    acks: str,
    idempotence: bool,
    replication_factor: int,
    min_isr: int,
    isolation: str | None,
    results: Path,
) -> int:
    """Make a run directory of a history of Jepsen's Kafka or Redpanda queue test (EDN, or JSON if it ends in
    .json).

    \b
      wrackline history import store/redpanda/latest/history.edn
      wrackline analyze last

    The history does not say how its producers were set up, so the options do. Faults of an imported history
    are not proved, so a clean one is `inconclusive` and says so. docs/jepsen-histories.md says what becomes
    of each operation.
    """
    if min_isr > replication_factor:
        raise click.UsageError(f"--min-isr {min_isr} is more than --replication-factor {replication_factor}")
    settings = Settings(
        name=_word(name or history.resolve().parent.name or "jepsen"),
        acks=acks,
        idempotence=idempotence,
        replication_factor=replication_factor,
        min_insync_replicas=min_isr,
        isolation=isolation or "",
    )
    run_dir = import_history(history, results, settings, _progress("read"))
    click.echo(f"{run_dir}: `wrackline analyze {run_dir.name}` judges it")
    return 0


def _word(name: str) -> str:
    kept = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip("-.")
    return kept[:60] or "jepsen"


def _progress(what: str) -> Callable[[int], None]:
    def report(done: int) -> None:
        if done % 100_000 == 0:
            progress(f"{done:,} operations {what}")

    return report
