"""Campaigns in virtual time as cases of a night: the command of each, and its verdict in the files that every
run has. ``wrackline simulate campaign`` makes the search, and says in campaign.json what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import orjson
import yaml

from wrackline.checkers.findings import EXIT_CODES, Meaning, Verdict
from wrackline.checkers.verdict.seal import sealed
from wrackline.harness.nights.spec import Campaign
from wrackline.harness.report.read.files import CAMPAIGN, replace_file
from wrackline.harness.run.judge import VERDICT_JSON
from wrackline.harness.run.live.setup import new_test_id
from wrackline.history.model import PlanInfo, RunInfo
from wrackline.history.store.folder import RUN_JSON
from wrackline.plugins.fields import Strict
from wrackline.release import full_version

SYSTEM = "wrackline"


class CampaignRun(Strict):
    """A campaign of a night, and the folder of its run, which is the same when the night goes on."""

    run: str
    campaign: Campaign

    @classmethod
    def of(cls, campaign: Campaign) -> Self:
        """A new run. Its corpus is the same folder wherever the night goes on from."""
        at = str(Path(campaign.corpus).absolute())
        return cls(run=new_test_id(campaign.name), campaign=campaign.model_copy(update={"corpus": at}))

    @property
    def text(self) -> str:
        head = {"name": self.campaign.name, "fleet": {"kind": "simulated"}}
        return yaml.safe_dump({**head, "simulate": self.campaign.model_dump(mode="json")}, sort_keys=False)

    def arguments(self, runs: Path) -> Sequence[str | Path]:
        one = self.campaign
        return (
            *("simulate", "campaign", "--swarm", one.swarm, "--minutes", str(one.budget / 60)),
            *("--jobs", str(one.jobs), "--corpus", one.corpus, "--into", runs / self.run),
            *(("--seeds", str(one.seeds)) if one.seeds else ()),
            *(word for name in one.defects for word in ("--defect", name)),
        )

    def judge(self, runs: Path) -> Mapping[str, Any] | None:
        """Writes the files of a run, and returns its verdict; None where the campaign did not come to an
        end."""
        folder = runs / self.run
        try:
            outcome = orjson.loads((folder / CAMPAIGN).read_bytes())
        except (OSError, orjson.JSONDecodeError):
            return None
        if "verdict" not in outcome:
            return None
        (folder / RUN_JSON).write_bytes(self._info(outcome).to_json())
        (folder / "spec.yaml").write_text(self.text)
        phases = [{"name": "campaign", "begin_ns": 0, "end_ns": round(outcome["spent_s"] * 1e9)}]
        (folder / "metrics.json").write_bytes(orjson.dumps({"latency": {}, "phases": phases}) + b"\n")
        verdict = sealed(folder, self._verdict(outcome))
        replace_file(folder / VERDICT_JSON, orjson.dumps(verdict, option=orjson.OPT_INDENT_2) + b"\n")
        return verdict

    def _info(self, outcome: Mapping[str, Any]) -> RunInfo:
        return RunInfo(
            test_id=self.run,
            name=self.campaign.name,
            seed=outcome["first"],
            started_at=outcome["began_at"],
            system=SYSTEM,
            workload="swarm",
            acks="all",
            idempotence=False,
            topics=(),
            profile=self.campaign.swarm,
            harness_version=full_version(),
            plan=PlanInfo(outcome["spent_s"], guided="swarm"),
            system_kind=SYSTEM,
        )

    def _verdict(self, outcome: Mapping[str, Any]) -> dict[str, Any]:
        word, totals = Verdict(outcome["verdict"]), outcome["totals"]
        incidents = [_incident(number, one) for number, one in enumerate(outcome["findings"], 1)]
        oracles = [one["oracle"] for one in outcome["findings"]]
        return {
            "test_id": self.run,
            "name": self.campaign.name,
            "verdict": word.value,
            "exit_code": EXIT_CODES[word],
            "headline": outcome["headline"],
            "reasons": outcome["reasons"],
            "contract": {"name": "swarm", "row": "", "promise": "no oracle fires", "because": []},
            "incidents": incidents,
            "incident_counts": {Meaning.VIOLATION.value: len(incidents)} if incidents else {},
            "anomalies": [
                {
                    "anomaly": oracle,
                    "count": oracles.count(oracle),
                    "meaning": Meaning.VIOLATION.value,
                    "why": "an oracle of the simulator fired",
                }
                for oracle in dict.fromkeys(oracles)
            ],
            "conditions": outcome["conditions"],
            "faults": [],
            "counts": {
                "operations": totals["operations"],
                "acked_records": totals["acked"],
                "read_records": totals["read"],
                "seeds": totals["seeds"],
                "rows_met": outcome["rows_met"],
            },
            "engine": {"name": "simulator"},
        }


def _incident(number: int, finding: Mapping[str, Any]) -> dict[str, Any]:
    small = finding["smallest"]
    return {
        "id": f"s{number}",
        "meaning": Meaning.VIOLATION.value,
        "sentence": f"seed {finding['seed']}, {finding['profile']}: {finding['oracle']}: {finding['text']}",
        "anomalies": [{"anomaly": finding["oracle"], "count": 1, "meaning": Meaning.VIOLATION.value}],
        "mechanism": [*(small["faults"] if small else ()), (small or finding)["command"]],
        "faults": [],
        "lines": [],
    }
