"""Headings for the options of ``wrackline simulate``, as data."""

from __future__ import annotations

from collections.abc import Mapping

import click

HEADINGS: Mapping[str, tuple[str, ...]] = {
    "Seeds": (
        *("--seed", "--search", "--jobs", "--keep-going", "--done", "--corpus"),
        *("--vary", "--swarm", "--guided", "--coverage", "--replay"),
    ),
    "Length": ("--seconds", "--steps"),
    "Cluster": (
        *("--profile", "--upgrade-to", "--defect", "--brokers", "--controllers", "--combined"),
        *("--partitions", "--replication-factor", "--min-isr", "--unclean"),
        *("--broker-setting", "--controller-setting"),
    ),
    "Clients": (
        *("--producers", "--consumers", "--askers", "--weak", "--acks", "--idempotent"),
        *("--produce-every-ms", "--ask-every-ms", "--load"),
    ),
    "Faults": (
        *("--faults", "--fault-every-ms", "--pairs", "--chains", "--overlap", "--max-lossy", "--graft"),
        *("--tcp", "--max-skew"),
    ),
    "Judgement": ("--invariants", "--liveness", "--drills", "--codec"),
    "A failure": ("--shrink", "--keep-faults", "--keep-clients"),
    "Output": ("--timeline", "--full", "--lines", "--digest", "--history"),
}
"""Heading -> the options below it, by their first names."""


def with_headings(headings: Mapping[str, tuple[str, ...]]) -> type[click.Group]:
    """A group of commands whose own options stand below ``headings``; the others follow them."""

    class Headed(click.Group):
        def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            records = {
                one.opts[0]: record
                for one in self.get_params(ctx)
                if (record := one.get_help_record(ctx)) is not None
            }
            below = {
                heading: [records.pop(name) for name in names if name in records]
                for heading, names in headings.items()
            }
            for heading, lines in {**below, "Other options": list(records.values())}.items():
                with formatter.section(heading):
                    formatter.write_dl(lines)
            self.format_commands(ctx, formatter)

    return Headed
