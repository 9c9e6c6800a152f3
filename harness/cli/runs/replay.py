"""``wrackline replay``: the faults of one run, done again in another."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click

from wrackline.harness.cli.options import set_option
from wrackline.harness.cli.runs.run import run_command
from wrackline.harness.run.replay import replay_of
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.spec import SpecError


@click.command("replay")
@click.argument("source", type=click.Path(file_okay=False, path_type=Path), metavar="RUN")
@click.option("--fleet", metavar="KIND", help="Hosts of this kind instead of the run's own.")
@click.option(
    "--stretch",
    type=click.FloatRange(0.1, 20),
    default=1.0,
    show_default=True,
    help="Multiply all times by this: hosts may be slower than those of the run, or than virtual ones.",
)
@click.option(
    "--write",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.yaml",
    help="Write the specification there and make no run.",
)
@set_option
@click.pass_context
def replay_command(
    ctx: click.Context,
    source: Path,
    fleet: str | None,
    stretch: float,
    write: Path | None,
    settings: tuple[str, ...],
) -> int:
    """Do the faults of RUN again, each at its time and on the same hosts, with another fleet if you like.

    RUN is the directory of a run: one of ours, or one that the simulator wrote. What the simulator has found
    in virtual time can so be tried on real hosts, as far as its faults exist there; what does not is listed.

    \b
      wrackline simulate --seed 7 --history found         a run in virtual time
      wrackline replay found --fleet qemu                 the same faults on virtual machines
      wrackline replay results/20261123T... --stretch 2   a run again, at half the pace
      wrackline simulate --replay results/20261123T...    the other way round: real faults in virtual time

    Exit code: that of `wrackline run`; 2 when RUN is none, or cannot be done again.
    """
    try:
        made = replay_of(source, fleet=fleet, stretch=stretch)
    except SpecError as error:
        raise click.UsageError(str(error)) from error
    for line in made.left_out:
        click.echo(f"left out: {line}", err=True)
    if not made.faults:
        raise click.UsageError(f"{source}: none of its faults exists on real hosts")
    if write is not None:
        write.write_text(made.text)
        try:
            load_checked(write, settings=settings)
        except SpecError as error:
            raise click.UsageError(str(error)) from error
        click.echo(f"{write}: {made.faults} faults; `wrackline run {write}` makes the run")
        return 0
    with tempfile.TemporaryDirectory(prefix="wrackline-replay-") as folder:
        spec = Path(folder) / "replay.yaml"
        spec.write_text(made.text)
        code: int = ctx.invoke(run_command, specs=(spec,), settings=settings)
        return code
