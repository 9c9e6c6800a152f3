"""Many files and keys, one after another, with at most one JVM at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.placement import Limits
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.calls import Model as KnossosModel
from wrackline.checkers.jvm.classpath import JvmUnavailable, required_classpath
from wrackline.checkers.models.checker import Checker
from wrackline.checkers.models.loading import known, load_decider
from wrackline.checkers.models.protocol import Model, ModelError, Operation
from wrackline.harness.check.objects import LOG, Asking, decide, decide_log
from wrackline.harness.check.results import Judged, Verdict
from wrackline.harness.check.rules import decide_by_rule
from wrackline.harness.check.transactions import decide_transactions, levels_of
from wrackline.harness.jepsen.log_histories import logs
from wrackline.harness.jepsen.object_histories import ELLE_MODELS, Subject, asked, transactions, untold
from wrackline.harness.jepsen.operations import by_key, read_operations, without_key
from wrackline.history.jepsen.foreign import CLIENTS
from wrackline.history.jepsen.text import TextError
from wrackline.values import spelt, value_of

NOTHING = "there is no operation of a client in it; nothing to judge"
_ENDINGS = (".edn", ".json", ".jsonl")
_NO_HISTORIES = ("results.edn",)
_BANK = "bank"


@dataclass(frozen=True, slots=True)
class Question:
    """The settings of a check, the same for every file."""

    model: str
    by: str = ""
    """"": exactly where possible, else by our own search. search, knossos, both, elle."""
    independent: bool = False
    holes: bool = False
    initial: Any = None
    total: Any = None
    """What all accounts have together."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Arguments of the model."""
    consistency: str = "strict-serializable"
    """Of transactions: one level, or several with commas between them, each with a verdict of its own."""
    deadline_s: float = 60.0
    memory_bytes: int = 2 << 30
    classpath: str | None = None


class Judge:
    """Judges files. Use it as a context: it ends the JVM."""

    def __init__(self, question: Question, progress: Callable[[str], None] = lambda _line: None) -> None:
        """Raises ModelError."""
        self._question, self._progress = question, progress
        self._jvm: Bridge | None = None
        self._checker: Checker | None = None
        self._stack = ExitStack()
        self._asking = self._prepared()

    def __enter__(self) -> Judge:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @property
    def jvms(self) -> int:
        """Returns how many JVMs were started: one, and one more for each that had to be ended."""
        return 0 if self._jvm is None else self._jvm.started

    def _prepared(self) -> Asking:
        asked = self._question
        own = asked.model not in ELLE_MODELS
        settings = dict(asked.settings)
        if asked.initial is not None:
            settings["initial"] = asked.initial
        if asked.total is not None:
            if asked.model == _BANK:
                raise ModelError(
                    f"{_BANK} decides about each balance; --total is of bank-totals, the sums alone"
                )
            settings["total"] = asked.total
        if not own and settings:
            raise ModelError(f"model {asked.model} takes no {', '.join(settings)}")
        if asked.by in ("knossos", "both") and asked.model not in _of_knossos():
            raise ModelError(f"Knossos has no model {asked.model}, only {', '.join(_of_knossos())}")
        if asked.by == "elle" and own:
            raise ModelError(f"Elle has no model {asked.model}, only {', '.join(ELLE_MODELS)}")
        if not own:
            levels_of(asked.consistency)
        decider = load_decider(asked.model, **settings) if own else None
        if isinstance(decider, Checker):
            self._checker = decider
            if asked.by == "search":
                raise ModelError(f"our own search has no model {asked.model}; leave --by out")
        return Asking(
            asked.model,
            decider if isinstance(decider, Model) else None,
            asked.by,
            value_of(asked.initial),
            asked.holes,
            Limits(asked.deadline_s, asked.memory_bytes),
            self._bridge,
            self._progress,
        )

    def _bridge(self) -> Bridge:
        if self._jvm is None:
            heap = f"{self._question.memory_bytes >> 20}m"
            classpath = required_classpath(self._question.classpath)
            self._jvm = self._stack.enter_context(Bridge(classpath, heap=heap, progress=self._progress))
        return self._jvm

    def judge(self, file: Judged, told: Callable[[Verdict], None] = lambda _verdict: None) -> None:
        """Add all verdicts of a file to it, and what is wrong with it; ``told`` gets each verdict as soon as
        it is there. What cannot be judged keeps nothing else from being judged."""
        error: list[str] = []
        try:
            path = Path(file.file)
            self._progress(f"reading {path}")
            result = read_operations(path)
            file.left_out = result.left_out
            for object_ in self._objects(path, result.done, error):
                try:
                    for verdict in self._with_jvms(object_):
                        file.verdicts.append(verdict)
                        told(verdict)
                except (TextError, ModelError) as refused:
                    error.append(str(refused))
            if not file.verdicts and not error:
                raise TextError(NOTHING)
        except (TextError, ModelError, JvmUnavailable, OSError) as refused:
            said = refused.strerror if isinstance(refused, OSError) and refused.strerror else str(refused)
            error.append(said)
        if error:
            more = f" (and {len(error) - 1:,} more like it)" if len(error) > 1 else ""
            file.wrong = (error[0] if error[0].startswith(file.file) else f"{file.file}: {error[0]}") + more

    def _objects(
        self, path: Path, done: Sequence[Operation], wrong: list[str]
    ) -> Iterator[Callable[[], Iterable[Verdict]]]:
        """Yields for each object the function that decides it. ``wrong`` gets a line for each operation
        that is of none. Raises TextError."""
        question = self._question
        if question.model in ELLE_MODELS:
            yield from self._of_transactions(path, done, wrong)
        elif question.model == LOG:
            result = logs(done, independent=question.independent)
            wrong += result.refused
            for at, log in enumerate(result.each, 1):
                self._progress(f"{path}: key {log.key} ({at} of {len(result.each)})")
                yield partial(decide_log, log, self._asking)
        elif question.independent:
            keyed = by_key(done)
            wrong += map(without_key, keyed.without)
            for at, (key, those) in enumerate(keyed.of.items(), 1):
                self._progress(f"{path}: object {at} of {len(keyed.of)}, {len(those)} operations")
                yield partial(self._decide, key, those)
        elif done:
            self._progress(f"{path}: {len(done)} operations")
            yield partial(self._decide, None, done)

    def _decide(self, key: Any, done: Sequence[Operation]) -> Iterator[Verdict]:
        """Raises TextError, ModelError, JvmUnavailable."""
        asking = self._asking
        decider = self._checker or asking.model
        assert decider is not None
        words = asked(done, asking.name, decider)
        unknown = untold(done, words, decider.puts)
        for verdict in (
            decide(Subject(key, done, words), asking)
            if self._checker is None
            else [decide_by_rule(key, done, words, self._checker, self._progress)]
        ):
            if unknown is not None and verdict.answer is Answer.INVALID:
                why = (
                    f"nobody knows what operation {unknown.at} put there: the server adds to what others put"
                )
                verdict = replace(verdict, answer=Answer.UNKNOWN, why=why)
            yield verdict

    def _of_transactions(
        self, path: Path, done: Sequence[Operation], wrong: list[str]
    ) -> Iterator[Callable[[], Iterable[Verdict]]]:
        """Yields for each consistency level that is asked about the function that decides it. Raises
        TextError."""
        question = self._question
        result = transactions(done, question.model)
        txns = result.transactions
        if result.foreign:
            wrong += [
                f"operation {one.at}: a transaction's value is a list of [f k v], not {spelt(one.value):.40}"
                for one in result.foreign
            ]
        if not len(txns):
            if result.foreign:
                return
            raise TextError(NOTHING)
        self._progress(f"{path}: {len(txns)} transactions")
        for level in levels_of(question.consistency):
            asking = replace(self._asking, level=level)
            yield partial(map, partial(decide_transactions, result), [asking])

    def _with_jvms(self, judge: Callable[[], Iterable[Verdict]]) -> list[Verdict]:
        """Says of what was not decided that the JVM had to be ended for it."""
        before = self.jvms, self._pid
        result = list(judge())
        if self._pid is None and (self.jvms, self._pid) != before:
            result = [
                replace(one, why=f"{one.why}; that JVM was ended") if one.answer is Answer.UNKNOWN else one
                for one in result
            ]
        return result

    @property
    def _pid(self) -> int | None:
        return None if self._jvm is None else self._jvm.pid


def _of_knossos() -> tuple[str, ...]:
    return tuple(str(one) for one in KnossosModel if one is not KnossosModel.SOME_OF_LOG)


def models() -> tuple[str, ...]:
    """The names of all models and checkers that come with Wrackline or are installed."""
    return (*known(), *ELLE_MODELS)


def histories(given: Sequence[Path]) -> list[Path]:
    """The files, and those of the folders: each history.edn (or history.*.json ...) below one, as in Jepsen's
    store; where there is none, each .edn, .json and .jsonl file in it. A folder with the operations of etcd's
    clients is one history. Raises TextError."""
    result: dict[Path, Path] = {}
    for one in given:
        files = _in_folder(one) if one.is_dir() else [one]
        for file in files:
            result.setdefault(file.resolve(), file)
    return list(result.values())


def _in_folder(folder: Path) -> list[Path]:
    of_etcd = sorted({file.parents[1] for file in folder.rglob(CLIENTS)})
    if of_etcd:
        return of_etcd
    below = [file for file in folder.rglob("history*") if file.is_file() and _is_history(file)]
    result = below or [file for file in folder.iterdir() if file.is_file() and _is_history(file)]
    if not result:
        raise TextError(f"{folder}: no history in it; a file that ends in {', '.join(_ENDINGS)} was expected")
    return sorted(result)


def _is_history(file: Path) -> bool:
    name = file.name.lower().removesuffix(".gz")
    return name.endswith(_ENDINGS) and name not in _NO_HISTORIES
