"""The commands of ``wrackline``: where each is, and what ``--help`` says of it, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Entry:
    """A command, or a group of commands."""

    words: str
    """One line of the list of commands."""
    at: str = ""
    """MODULE:NAME of the command, the module below this package. Empty for a group, which has ``below``."""
    below: Mapping[str, Entry] = field(default_factory=dict)
    examples: str = ""
    """Of a group: what its help shows."""
    text: str = ""
    """Of a group: what its help says before that."""


HEADINGS: Mapping[str, Mapping[str, Entry]] = {
    "Start": {
        "doctor": Entry("Check what this machine can do, and say how to mend it.", ".machine.doctor:doctor"),
        "demo": Entry("Make three short runs that show what it is for.", ".runs.known:demo_command"),
        "init": Entry("Write a commented specification.", ".runs.specification:init_command"),
        "validate": Entry("Check specifications; make no run.", ".runs.specification:validate_command"),
        "plan": Entry("Show what a run would do, and when; make no host.", ".runs.plan:plan_command"),
    },
    "Run": {
        "run": Entry("Make a run from each specification, and judge it.", ".runs.run:run_command"),
        "suite": Entry("Make a night of runs: specifications, seeds, versions.", ".runs.suite:suite_command"),
        "bisect": Entry("Find the first version, or commit, that is bad.", ".runs.bisect:bisect_command"),
        "replay": Entry("Repeat the faults of a run on other hosts.", ".runs.replay:replay_command"),
    },
    "Look": {
        "runs": Entry("List runs with their verdicts.", ".verdicts.analyze:runs_command"),
        "report": Entry("Write the report of a run again.", ".verdicts.analyze:report_command"),
        "explain": Entry("Say why a finding is a contradiction.", ".verdicts.explain:explain_command"),
        "compare": Entry("Put two runs, versions or nights side by side.", ".verdicts.site:compare_command"),
        "site": Entry(
            "Show all runs as a site: nights, trends, incidents.",
            below={
                "build": Entry("Write a static site of all runs.", ".verdicts.site:index_command"),
                "serve": Entry("Serve the site live while a night runs.", ".verdicts.site:serve_command"),
            },
            examples="""\
wrackline site build                 results/site/index.html
wrackline site serve                 the same, live""",
        ),
    },
    "Judge": {
        "analyze": Entry("Judge recorded runs again.", ".verdicts.analyze:analyze_command"),
        "check": Entry(
            "Check histories of objects or transactions, those of Jepsen too.",
            ".verdicts.check:check_command",
        ),
    },
    "Known answers": {
        "known": Entry(
            "Make runs whose verdicts are known beforehand.",
            below={
                "defects": Entry(
                    "Put historic bugs back, and see each caught.", ".runs.known:defects_command"
                ),
                "stories": Entry(
                    "Run settings that allow loss, outages and operations.",
                    ".runs.known:stories_command",
                ),
                "findings": Entry(
                    "Find bugs of Apache Kafka again, each beside a control.",
                    ".runs.known:findings_command",
                ),
                "eras": Entry(
                    "Tell each story under the rules of each era of Kafka.",
                    ".runs.known:eras_command",
                ),
            },
            text="""\
They test the judge as much as the broker: what must be caught is caught, and beside it the same run without
the cause (its twin, its control, a later era) must pass. A judge that calls everything good fails at the
first, and one that calls everything bad at the second. All need root.

The option --list of stories, findings and eras says what must come out of each run; a defect must always
be caught. After the runs, each that came out otherwise has a line: NOT AS IT MUST BE, with the reasons.
Each run is a run like any other, in the folder of the results.""",
            examples="""\
wrackline known defects trunc-hw     half a minute, and as much for its twin
wrackline known stories --list
wrackline known findings b59         Apache Kafka 4.4.0 loses records; three minutes
wrackline known eras split           one story under the rules of four eras""",
        ),
    },
    "Simulator": {
        "simulate": Entry(
            "Run the cluster in virtual time, with random faults.", "wrackline.simulator.cli:simulate"
        ),
    },
    "Data": {
        "history": Entry(
            "Import and export histories; write all runs as tables.",
            below={
                "import": Entry(
                    "Make a run of a history of Jepsen's Kafka test.", ".data.jepsen:import_command"
                ),
                "export": Entry("Write the history of a run as EDN or JSON.", ".data.jepsen:export_command"),
                "table": Entry(
                    "Write all runs as tables, for questions in SQL.", ".data.dataset:dataset_command"
                ),
            },
            examples="""\
wrackline history import store/redpanda/latest/history.edn
wrackline history export last --model list-append
wrackline history table nights.dataset results""",
        ),
        "prune": Entry("Remove all but the history of old runs that passed.", ".data.prune:prune_command"),
    },
    "Parts": {
        "list": Entry(
            "List what there is: faults, anomalies, parts, specifications.",
            below={
                "faults": Entry(
                    "Every fault: what it does, needs, and where it works.",
                    ".parts.faults:faults_command",
                ),
                "anomalies": Entry(
                    "Every anomaly, and which contracts forbid it.",
                    ".parts.anomalies:anomalies_command",
                ),
                "parts": Entry(
                    "Systems, fleets, faults, workloads and checks, and where each is from.",
                    ".parts.plugins:plugins_command",
                ),
                "specs": Entry(
                    "Specifications that come with it: list, print or copy; the schema.",
                    ".runs.specification:specs_command",
                ),
            },
            examples="""\
wrackline list specs
wrackline list faults power-cut""",
        ),
        "new": Entry("Write a package that adds a part of your own.", ".parts.plugins:new_command"),
    },
    "Machine": {
        "fleet": Entry("Make, enter, list and remove hosts on this machine.", ".machine.fleet:fleet"),
        "get": Entry(
            "Install Apache Kafka, Spark's jars, Knossos and Elle, images.",
            below={
                "kafka": Entry(
                    "Versions of Apache Kafka: install, list, remove.", ".machine.kafka:kafka_command"
                ),
                "spark": Entry(
                    "The jars by which Spark reads object storage.", ".machine.spark:spark_command"
                ),
                "jvm": Entry("Knossos and Elle: install, try.", ".machine.jvm:jvm_command"),
                "image": Entry(
                    "What virtual machines boot: build, list, remove.", ".machine.image:image_command"
                ),
            },
            examples="""\
wrackline get kafka 4.4.0
wrackline get kafka --list""",
        ),
    },
}
"""In the order in which a user meets them."""

FORMER: Mapping[str, str] = {
    "defects": "known defects",
    "stories": "known stories",
    "findings": "known findings",
    "eras": "known eras",
    "index": "site build",
    "serve": "site serve",
    "dataset": "history table",
    "export": "history export",
    "import": "history import",
    "anomalies": "list anomalies",
    "examples": "list specs",
    "faults": "list faults",
    "plugins": "list parts",
    "schema": "list specs --schema",
    "image build": "get image",
    "image list": "get image --list",
    "image remove": "get image --remove",
    "jvm check": "get jvm --check",
    "jvm install": "get jvm",
    "kafka install": "get kafka",
    "kafka list": "get kafka --list",
    "kafka remove": "get kafka --remove",
    "spark install": "get spark",
}
"""Names that commands had, and what they mean now. They are not listed, and go on."""

SUGGESTIONS: Mapping[str, str] = {
    "build": "site build",
    "clean": "prune",
    "contracts": "list anomalies",
    "convert": "history export",
    "create": "init",
    "diff": "compare",
    "download": "get",
    "example": "list specs",
    "fuzz": "simulate",
    "get elle": "get jvm",
    "get images": "get image",
    "get knossos": "get jvm",
    "get zookeeper": "get kafka",
    "help": "--help",
    "history dataset": "history table",
    "hosts": "fleet",
    "install": "get",
    "judge": "analyze",
    "lint": "validate",
    "list checks": "list parts",
    "list contracts": "list anomalies",
    "list examples": "list specs",
    "list fleets": "list parts",
    "list models": "check --list",
    "list plugins": "list parts",
    "list runs": "runs",
    "list schema": "list specs --schema",
    "list systems": "list parts",
    "list workloads": "list parts",
    "ls": "runs",
    "models": "check --list",
    "night": "suite",
    "nights": "suite",
    "repeat": "replay",
    "results": "runs",
    "setup": "doctor",
    "show": "report",
    "sim": "simulate",
    "site index": "site build",
    "specs": "list specs",
    "start": "run",
    "test": "run",
    "verify": "validate",
    "web": "site serve",
    "why": "explain",
}
"""Words of other programs, and the command that does that here."""
