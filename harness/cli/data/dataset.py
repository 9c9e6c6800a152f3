"""``wrackline history table``: the runs of all nights as tables, for questions in SQL."""

from __future__ import annotations

from pathlib import Path

import click

from wrackline.harness.cli.options import WrongInput, results_option
from wrackline.harness.dataset import write_dataset
from wrackline.history.store.addresses import check_reachable, is_elsewhere
from wrackline.progress import progress


@click.command("table")
@click.argument("dataset", metavar="DATASET")
@click.argument("places", nargs=-1, metavar="[RUNS]...")
@results_option
def dataset_command(dataset: str, places: tuple[str, ...], results: Path) -> int:
    """Write runs, findings, metrics and faults to DATASET as tables of Parquet files, partitioned by night.

    RUNS are folders with nights or runs in them (by default that of --results). DATASET and RUNS may be
    addresses: s3a://bucket/..., hdfs://host:8020/... A night that is there already is written anew, so the
    command can be called after each night with all of them. docs/export-to-sql.md has columns and queries.

    \b
      wrackline history table nights.dataset results
      wrackline history table s3a://bucket/dataset s3a://bucket/nights
    """
    expected = places or (str(results),)
    for place in (dataset, *expected):
        if is_elsewhere(place):
            check_reachable(place)
    for place in expected:
        if not is_elsewhere(place) and not Path(place).is_dir():
            raise WrongInput(f"{place}: no such folder; give one with runs in it")
    written = write_dataset(expected, dataset, progress=progress)
    if not written:
        raise WrongInput(f"no run below {', '.join(expected)}; nothing was written")
    for one in written:
        click.echo(f"{one.night}: " + ", ".join(f"{count:,} {name}" for name, count in one.rows.items()))
    return 0
