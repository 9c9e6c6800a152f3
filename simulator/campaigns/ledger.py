"""The folder that campaigns share: ``runs``, the corpus of those that failed, and ``campaigns.jsonl``, a line
for each campaign. By the lines the next one draws seeds that none has drawn, and knows the coverage before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path

from wrackline.simulator.search.corpus import Corpus, CorpusError, Parse

RUNS, CAMPAIGNS = "runs", "campaigns.jsonl"
_SEEDS_A_DAY = 100_000
_DAY_ZERO = date(2020, 1, 1)


@dataclass(frozen=True, slots=True)
class Entry:
    """A campaign that came to its end, or was interrupted."""

    at: str
    """When it began: UTC, ISO 8601."""
    swarm: str
    first: int
    """Its first seed."""
    after: int
    """The seed after its last."""
    seeds: int
    violations: int
    met: int
    """Rows of the golden tables."""
    lacking: tuple[str, ...]
    """The other rows: ``election 12``."""

    @property
    def rows(self) -> int:
        return self.met + len(self.lacking)


@dataclass(frozen=True, slots=True)
class Ledger:
    folder: Path
    parse: Parse

    @property
    def corpus(self) -> Corpus:
        return Corpus(self.folder / RUNS, self.parse)

    def check(self) -> None:
        """Raises CorpusError where the folder cannot be used, or a line of it not be read."""
        if self.folder.exists() and not self.folder.is_dir():
            raise CorpusError(f"{self.folder}: no folder; name a folder for the corpus")
        self.corpus.setups()
        self.entries()

    def first_seed(self, today: date) -> int:
        """Returns the seed after all that campaigns have drawn; in a new folder one that the day decides."""
        ends = [entry.after for entry in self.entries()]
        return max(ends) if ends else (today - _DAY_ZERO).days * _SEEDS_A_DAY

    def before(self, swarm: str, first: int) -> list[Entry]:
        """Returns the campaigns of this swarm before the one that began with this seed, oldest first."""
        by_seed = {entry.first: entry for entry in self.entries() if entry.swarm == swarm}
        return [entry for seed, entry in sorted(by_seed.items()) if seed < first]

    def entries(self) -> list[Entry]:
        """Raises CorpusError."""
        return list(self._entries())

    def _entries(self) -> Iterator[Entry]:
        file = self.folder / CAMPAIGNS
        try:
            lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise CorpusError(f"{file}: {error}; name another folder for the corpus") from error
        for number, line in enumerate(lines, 1):
            try:
                values = json.loads(line)
                entry = Entry(**{item.name: values[item.name] for item in fields(Entry)})
                yield entry
            except (ValueError, KeyError, TypeError) as error:
                raise CorpusError(f"{file}, line {number}: {error!r}; take the line out") from error

    def add(self, entry: Entry) -> None:
        """Raises CorpusError."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / CAMPAIGNS).open("a", encoding="utf-8") as out:
                out.write(json.dumps(asdict(entry)) + "\n")
        except OSError as error:
            raise CorpusError(
                f"{self.folder}: {error.strerror}; name another folder for the corpus"
            ) from error
