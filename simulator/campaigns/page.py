"""The page of a campaign: what failed, totals of each profile, and the rows of the golden tables."""

from __future__ import annotations

from wrackline.history.wording import plural
from wrackline.pages.template import Templates
from wrackline.simulator.campaigns.campaign import Outcome

_BEFORE = 10


def page(result: Outcome) -> str:
    plan, totals = result.plan, result.totals
    last = result.before[-1] if result.before else None
    unmet = set(result.lacking)
    return Templates("wrackline.simulator.campaigns").render(
        "campaign.html.j2",
        result=result,
        lacking=[one.detail for one in result.conditions if not one.ok],
        first={one.oracle: one.seed for one in reversed(result.findings)},
        facts=[
            ("run", result.name),
            ("began", result.began_at),
            ("swarm", plan.swarm),
            ("new seeds", f"{result.first} to {result.entry.after - 1}" if result.new_seeds else "none"),
            ("corpus", f"{plan.corpus}, {plural(result.kept, 'run')}"),
            ("budget", f"{plan.budget_s / 60:g} min, {plural(plan.jobs, 'job')}"),
            ("CPU", f"{totals.cpu_s:.0f} s"),
            *([("defects", ", ".join(plan.defects))] if plan.defects else ()),
        ],
        profiles=sorted(totals.profiles.items(), key=lambda one: -one[1].seeds),
        most_seeds=max((one.seeds for one in totals.profiles.values()), default=0),
        before=result.before[-_BEFORE:],
        gained=[row for row in last.lacking if row not in unmet] if last else [],
        lost=[row for row in result.lacking if row not in last.lacking] if last else [],
    )
