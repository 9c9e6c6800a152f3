"""Actions after a night: who is told, what is copied, what is no longer kept. None of it changes a verdict:
what fails is one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from wrackline.harness.nights import retention
from wrackline.harness.nights.journal import Did, Journal, Signature, read
from wrackline.harness.nights.order import nights
from wrackline.harness.nights.spec import Night
from wrackline.harness.notifications import openmetrics, webhook
from wrackline.harness.notifications.run_summary import RunSummary
from wrackline.harness.notifications.spec import After, Webhook
from wrackline.harness.notifications.upload import check, upload
from wrackline.harness.specification.spec import SpecError

Say = Callable[[str], None]


def check_after(after: After) -> None:
    """Checks before the night what can be known then. Raises SpecError."""
    if after.webhook is not None:
        after.webhook.address()
    if after.metrics is not None and not Path(after.metrics).parent.is_dir():
        raise SpecError(f"after.metrics: {Path(after.metrics).parent}: no such folder")
    if after.upload is not None:
        try:
            check(after.upload)
        except (ImportError, ValueError, OSError) as error:
            raise SpecError(f"after.upload: {after.upload}: {_line(error)}") from error


def known_before(here: Path, night: Night) -> frozenset[Signature]:
    """Signatures of violations of the nights before; without those that were to be told and were not."""
    earlier = (path for path in nights(here.parent, night.name) if path.name < here.name)
    return frozenset().union(*(read(path).told or () for path in earlier))


def carry_out(
    here: Path,
    night: Night,
    journal: Journal,
    summaries: Sequence[RunSummary],
    known: frozenset[Signature],
    say: Say,
) -> None:
    """All that ``night.after`` asks for. Raises OSError when the journal cannot be written."""
    after = night.after
    told = {each.record.signature for each in summaries if each.violates and each.record}
    ended = openmetrics.Ended(night.name, time.time(), journal.spent_s, night.budget)
    if after.metrics is not None:
        into = Path(after.metrics)
        _attempt("metrics", lambda: f"{openmetrics.write(into, ended, summaries)}", say)
    if after.upload is not None:
        to = after.upload
        _attempt("upload", lambda: f"{upload(here, to)} to {to}", say)
    if after.webhook is not None and any(each.new for each in summaries):
        hook = after.webhook
        if not _attempt("webhook", lambda: _tell(hook, after.link, here, night, summaries), say):
            told &= known  # the next night tells of the others
    journal.write(Did.TOLD, signatures=sorted(told))
    if after.prune is not None:
        keeping, results = after.prune, here.parents[1]
        _attempt("prune", lambda: str(retention.prune(results, keeping)), say)


def _attempt(what: str, step: Callable[[], str], say: Say) -> bool:
    """The supervisor of all that a night does for others: storages and chats have errors of their own."""
    try:
        done = step()
    except Exception as error:  # noqa: BLE001 - whatever it is, the verdicts stand
        say(f"after.{what} failed, which changes no verdict: {_line(error)}")
        return False
    say(f"  after.{what}: {done}")
    return True


def _tell(hook: Webhook, link: str, here: Path, night: Night, summaries: Sequence[RunSummary]) -> str:
    new = [each for each in summaries if each.new]
    results = here.parents[1]
    links = [
        f"{link.rstrip('/')}/{quote(each.report.relative_to(results).as_posix())}"
        if link and each.report
        else ""
        for each in new
    ]
    content = webhook.message(night.name, new, links)
    webhook.post(hook.address(), content, timeout_s=hook.timeout_s, tries=hook.tries)
    return f"{len(new)} new violations told"


def _line(wrong: BaseException) -> str:
    return " ".join(f"{wrong}".split())[:300] or type(wrong).__name__
