"""The sample run of the repository, as material for others."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson

from wrackline.checkers.verdict.seal import SEAL

SAMPLE = Path(__file__).parents[2] / "results" / "sample"


def copy_sample(folder: Path, run_json: dict[str, object]) -> Path:
    """Verdict, metrics and report of the sample with another run.json. The sample's seal does not fit it."""
    shutil.copytree(SAMPLE, folder)
    judged = orjson.loads((folder / "verdict.json").read_bytes())
    del judged[SEAL]
    (folder / "verdict.json").write_bytes(orjson.dumps(judged))
    (folder / "run.json").write_bytes(orjson.dumps(run_json))
    return folder
