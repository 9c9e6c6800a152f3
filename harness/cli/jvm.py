"""``wrackline check`` and ``wrackline jvm``: judge a history of one object or of transactions; Knossos and
Elle."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from wrackline.checkers.exact.operations import RepeatedValue
from wrackline.checkers.exact.queue import check_queue
from wrackline.checkers.exact.register import check_register
from wrackline.checkers.jvm import install as maven
from wrackline.checkers.jvm.answers import Answer, Judgement
from wrackline.checkers.jvm.bridge import DEFAULT_DEADLINE_S, DEFAULT_HEAP, Bridge
from wrackline.checkers.jvm.calls import Calls, Model
from wrackline.checkers.jvm.classpath import CLASSPATH_VARIABLE, JvmUnavailable, jvm_home, required_classpath
from wrackline.harness.jepsen.log_histories import OF_VALUES, Log, logs
from wrackline.harness.jepsen.object_histories import ELLE_MODELS, Done, Subject, subjects, transactions
from wrackline.history.jepsen.text import TextError, read
from wrackline.maven import repository_url

UNDECIDED = 3
_NOTHING = "there is no operation of a client in it; nothing to judge"
MOST_SHOWN = 5
classpath_option = click.option(
    "--classpath",
    metavar="PATH",
    help=f"Jars of Knossos and Elle, separated by colons; ${CLASSPATH_VARIABLE} "
    "or what was installed by default.",
)


def _heap(_context: click.Context, _option: click.Parameter, given: str) -> str:
    if not re.fullmatch(r"[1-9]\d*[kKmMgG]", given):
        raise click.BadParameter(f"{given!r} is no size; say 512m or 4g")
    return given


heap_option = click.option(
    "--heap",
    default=DEFAULT_HEAP,
    show_default=True,
    metavar="SIZE",
    callback=_heap,
    help="Most memory of the JVM: 512m, 4g.",
)


@click.command("check")
@click.argument("history", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-m",
    "--model",
    required=True,
    type=click.Choice([*(str(one) for one in Model if one is not Model.SOME_OF_LOG), *ELLE_MODELS]),
    help="What the operations are of.",
)
@click.option("--independent", is_flag=True, help="Values are [key value]: each key is an object of its own.")
@click.option(
    "--holes", is_flag=True, help="Of a log: offsets without a record are no loss (transactions, compaction)."
)
@click.option("--initial", type=int, help="What a register holds at first; nothing (nil) by default.")
@click.option("--consistency", default="strict-serializable", show_default=True, help="For Elle's models.")
@click.option("--search", is_flag=True, help="Ask Knossos even where the exact checks could decide.")
@click.option(
    "--deadline",
    "deadline_s",
    type=click.FloatRange(min=0.1),
    default=DEFAULT_DEADLINE_S,
    show_default=True,
    help="Seconds for Knossos or Elle, per object; what they have not decided by then is unknown.",
)
@heap_option
@classpath_option
def check_command(history: Path, model: str, **options: Any) -> int:
    """Judge HISTORY, an EDN or JSON file as Jepsen and elle-cli write them.

    \b
      wrackline check --model register history.edn         exact, at any size, without a JVM
      wrackline check --model log history.kafka.edn        the same, for each partition of `wrackline export`
      wrackline check --model cas-register history.edn     by Knossos
      wrackline check --model list-append history.json     by Elle

    Registers, FIFO queues and logs with offsets whose values are written once are decided exactly. Everything
    else needs Knossos or Elle (see `wrackline jvm`), which may run into a limit.

    Exit code: 0 valid, 1 not, 3 unknown, 2 wrong input.
    """
    if model in ELLE_MODELS:
        return _elle(history, model, **options)
    if model == Model.LOG:
        of_logs = logs(read(history), independent=options["independent"])
        return _exit_code([_judged_log(one, **options) for one in of_logs])
    return _exit_code(
        [_judged(one, Model(model), **options) for one in _subjects(history, options["independent"])]
    )


def _exit_code(found: Sequence[Answer]) -> int:
    if not found:
        raise TextError(_NOTHING)
    if Answer.INVALID in found:
        return 1
    return UNDECIDED if Answer.UNKNOWN in found else 0


def _subjects(history: Path, independent: bool) -> list[Subject]:
    return subjects(read(history), independent=independent)


def _judged(subject: Subject, model: Model, *, search: bool, initial: int | None, **options: Any) -> Answer:
    name = "history" if subject.key is None else f"key {subject.key}"
    if model in (Model.REGISTER, Model.FIFO_QUEUE) and not search:
        try:
            return _exactly(subject, model, initial, name)
        except RepeatedValue as repeated:
            _say_repeated(name, subject.value(repeated.value), repeated.others)
    return _searched(name, subject.calls(model, initial), subject.possible(), **options)


def _say_repeated(name: str, value: Any, others: int) -> None:
    more = f" (as were {others} others)" if others else ""
    message = f"{name}: value {value!r:.40} was put more than once{more}: only a search can decide"
    click.echo(message, err=True)


def _searched(name: str, calls: Calls, rows: Sequence[Done], **options: Any) -> Answer:
    """Ask Knossos and show its answer. ``rows``: the operations that are the rows of ``calls``."""
    with Bridge(_classpath(options["classpath"]), heap=options["heap"]) as bridge:
        found = bridge.linearizable(calls, deadline_s=options["deadline_s"])
    click.echo(f"{name}: {_linearizable(found.answer)} (Knossos, {len(calls)} operations)")
    if found.answer is Answer.UNKNOWN:
        click.echo(f"  {found.why}")
    if found.row is not None:
        click.echo(f"  there is no place for {_in_words(rows[found.row])}")
    return found.answer


def _exactly(subject: Subject, model: Model, initial: int | None, name: str) -> Answer:
    """Raises RepeatedValue."""
    table = subject.exact(initial)
    breaches: list[Any] = list(check_register(table) if model is Model.REGISTER else check_queue(table))
    answer = Answer.INVALID if breaches else Answer.VALID
    click.echo(f"{name}: {_linearizable(answer)} (exact, {len(table)} operations)")
    done = subject.rows_of_exact()
    for breach in breaches[:MOST_SHOWN]:
        click.echo(f"  {breach.rule}:")
        for row in breach.rows[:8]:
            click.echo(f"    {_in_words(done[row])}")
    if len(breaches) > MOST_SHOWN:
        click.echo(f"  and {len(breaches) - MOST_SHOWN} more")
    return answer


def _judged_log(log: Log, *, search: bool, holes: bool, **options: Any) -> Answer:
    """Each offset below a known end must hold a record, unless ``holes`` are allowed or transactions leave
    some."""
    name = "history" if log.key is None else f"key {log.key}"
    whole = not (holes or log.transactions)
    if not search:
        try:
            return _log_exactly(log, name, whole)
        except RepeatedValue as repeated:
            _say_repeated(name, log.value(repeated.value), repeated.others)
            if not whole:
                click.echo(f"{name}: {_linearizable(Answer.UNKNOWN)} (with holes a search cannot either)")
                return Answer.UNKNOWN
    return _searched(name, *log.calls(holes=whole), **options)


def _log_exactly(log: Log, name: str, whole: bool) -> Answer:
    """Raises RepeatedValue."""
    found = log.violations(holes=whole)
    answer = Answer.INVALID if found else Answer.VALID
    click.echo(
        f"{name}: {_linearizable(answer)} (exact, {len(log)} operations{'' if whole else ', holes allowed'})"
    )
    for wrong, about in found[:MOST_SHOWN]:
        what = f"value {log.value(wrong.offset)}" if wrong.rule in OF_VALUES else f"offset {wrong.offset}"
        click.echo(f"  {wrong.rule}: {what}")
        for one in about[:8]:
            click.echo(f"    {_in_words(one)}")
    return answer


def _elle(history: Path, model: str, *, consistency: str, **options: Any) -> int:
    txns, names = transactions(read(history), model)
    if not len(txns):
        raise TextError(_NOTHING)
    with Bridge(_classpath(options["classpath"]), heap=options["heap"]) as bridge:
        found = bridge.serializable(model, txns, consistency=consistency, deadline_s=options["deadline_s"])
    word = {Answer.VALID: f"{consistency}", Answer.INVALID: f"not {consistency}"}.get(found.answer, "unknown")
    click.echo(f"history: {word} (Elle, {len(txns)} transactions)")
    _show(found, names)
    return {Answer.VALID: 0, Answer.INVALID: 1}.get(found.answer, UNDECIDED)


def _show(found: Judgement, names: Mapping[int, Any]) -> None:
    """``names``: what negative numbers in Elle's words stand for."""
    if found.why:
        click.echo(f"  {found.why}")
    for kind, (count, cases) in found.anomalies.items():
        click.echo(f"  {count} {kind}")
        for case in cases[: 0 if kind == "empty-transaction-graph" else 1]:
            click.echo(f"    {case.text}")
            numbers = {int(number) for number in re.findall(r"(?<![\w.])-\d+", case.text)} & names.keys()
            if numbers:
                click.echo(
                    "    " + ", ".join(f"{n} is {names[n]!r:.40}" for n in sorted(numbers, reverse=True))
                )
    if found.refuted:
        click.echo(f"  not {', not '.join(found.refuted)}")


def _in_words(one: Done) -> str:
    span = f"operation {one.at}" + (f" to {one.ret}" if one.ret < 1 << 62 else ", never completed")
    return f"process {one.process} :{one.f} {one.value!r:.40} ({span})"


def _linearizable(answer: Answer) -> str:
    words = {Answer.VALID: "linearizable", Answer.INVALID: "not linearizable"}
    return words.get(answer, "unknown whether linearizable")


def _classpath(given: str | None) -> tuple[str, ...]:
    return required_classpath(given)


@click.group("jvm")
def jvm() -> None:
    """Knossos and Elle, as referee of what was found and for what the exact checks do not decide.

    \b
    Optional: everything else works without. It needs
      JPype             pip install 'wrackline[jvm]'
      Java 17 or newer
      their jars        wrackline jvm install, or set WRACKLINE_JVM_CLASSPATH
    """


@jvm.command("install", short_help="Let Maven resolve Knossos and Elle.")
@click.option("--knossos", default=maven.KNOSSOS, show_default=True, metavar="VERSION")
@click.option("--elle", default=maven.ELLE, show_default=True, metavar="VERSION")
@click.option("--clojars", default=maven.CLOJARS, show_default=True, metavar="URL", help="Or a mirror of it.")
@click.option(
    "--repository",
    "repositories",
    multiple=True,
    metavar="URL",
    help="A Maven repository (or a folder that is one) to ask before Clojars and Maven Central; "
    "may be given again.",
)
def install_command(knossos: str, elle: str, clojars: str, repositories: tuple[str, ...]) -> int:
    """Resolve Knossos and Elle with Maven, from Clojars and Maven Central, and remember their classpath.

    \b
      wrackline jvm install
      wrackline jvm install --repository https://nexus.example.org/repository/maven-all/
      wrackline jvm install --repository /media/stick/maven

    A repository that has everything is the only one that is asked. What Maven downloads it keeps in its own
    folder (~/.m2); its settings.xml (proxies, mirrors, passwords) holds here too.
    """
    try:
        first = [repository_url(one) for one in repositories]
        repository_url(clojars)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from wrong
    where = maven.install(
        jvm_home(),
        maven.wanted(knossos, elle),
        clojars=clojars,
        first=first,
        progress=lambda line: click.echo(line, err=True),
    )
    click.echo(f"the classpath is in {where}; `wrackline jvm check` tries it")
    return 0


@jvm.command("check", short_help="See that Knossos and Elle answer.")
@heap_option
@classpath_option
def check_jvm_command(heap: str, classpath: str | None) -> int:
    """Start the JVM, load Knossos and Elle, and say what they are. Exit code 2 when something is missing."""
    with Bridge(required_classpath(classpath), heap=heap) as bridge:
        java, clojure = bridge.versions()
        click.echo(f"Java {java}, Clojure {clojure}")
        missing = []
        for name in ("knossos", "elle"):
            try:
                bridge.load(name)
            except JvmUnavailable as wrong:
                missing.append(str(wrong))
            else:
                click.echo(f"{name.capitalize()} is there")
    if missing:
        raise JvmUnavailable("; ".join(missing))
    return 0
