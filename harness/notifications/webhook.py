"""New violations told to a chat: a POST of JSON as Slack takes it (``text`` and ``blocks``), and others that
take the same.

The address is a secret. No error from here has it, and nothing is logged.
"""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any

import orjson

from wrackline.harness.notifications.run_summary import RunSummary

MOST = 10
"""Runs that one message tells of; the others are counted."""
WAIT_S = 1.0
"""Before the second try; twice as long before each further one."""
LONGEST_WAIT_S = 30.0
_SECTION = 2900
"""Slack refuses a section of more than 3,000 characters."""
_HEADER = 150
_AGAIN = (408, 425, 429)


class NotTold(Exception):
    """Nobody took the message. One line: why, without the address."""


def message(night: str, summaries: Sequence[RunSummary], links: Sequence[str]) -> dict[str, Any]:
    """``summaries``: runs with new violations; ``links``: to their reports, in the same order; empty ones
    where there are none."""
    count = len(summaries)
    title = f"{night}: {count} new violation{'' if count == 1 else 's'}"
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": title[:_HEADER]}},
        *(_section(each, link) for each, link in list(zip(summaries, links, strict=True))[:MOST]),
    ]
    if count > MOST:
        more = {"type": "mrkdwn", "text": f"and {count - MOST} more"}
        blocks.append({"type": "context", "elements": [more]})
    plain = "\n".join(f"{each.name}: {each.headline}" for each in summaries[:MOST])
    return {"text": _escaped(f"{title}\n{plain}"), "blocks": blocks}


def _section(each: RunSummary, link: str) -> dict[str, Any]:
    parts = [f"*{_escaped(each.name)}*", _escaped(each.said)]
    if each.record is not None:
        anomalies, faults, system, version = each.record.signature
        parts.append(_escaped(f"{anomalies} · {faults} · {' '.join((system, version)).strip()}"))
    text = "\n".join(parts)[:_SECTION] + (f"\n<{link}|report>" if link else "")
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def post(address: str, content: dict[str, Any], *, timeout_s: float, tries: int) -> None:
    """Posts the message, with retries, until the webhook takes it. It takes at most ``tries`` times
    ``timeout_s``, and the waits between. Raises NotTold."""
    body = orjson.dumps(content)
    why = ""
    for number in range(tries):
        if number:
            time.sleep(min(WAIT_S * 2 ** (number - 1), LONGEST_WAIT_S))
        why, again = _within(timeout_s, address, body)
        if not why:
            return
        if not again:
            break
    raise NotTold(f"the webhook did not take the message after {number + 1} of {tries} tries: {why}")


def _within(timeout_s: float, address: str, body: bytes) -> tuple[str, bool]:
    """Calls ``_once`` in a thread and waits at most ``timeout_s``. The sockets' own timeouts hold for each
    read alone: a server that sends a byte now and then would keep us for ever."""
    answers: list[tuple[str, bool]] = []
    thread = threading.Thread(
        target=lambda: answers.append(_once(address, body, timeout_s)), name="webhook", daemon=True
    )
    thread.start()
    thread.join(timeout_s)
    return answers[0] if answers else (f"no answer within {timeout_s:g} s", True)


def _once(address: str, body: bytes, timeout_s: float) -> tuple[str, bool]:
    """Posts the message once: returns why it was not taken, empty when it was; and whether it may be taken
    another time."""
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "wrackline"}
    try:
        asked = urllib.request.Request(address, body, headers, method="POST")
        with _opener().open(asked, timeout=timeout_s):
            return "", False
    except urllib.error.HTTPError as refused:
        refused.close()
        return f"HTTP status {refused.code}", refused.code in _AGAIN or refused.code >= 500
    except urllib.error.URLError as wrong:
        why = wrong.reason
        return (why.strerror or type(why).__name__ if isinstance(why, OSError) else "no connection"), True
    except TimeoutError:
        return f"no answer within {timeout_s:g} s", True
    except (OSError, http.client.HTTPException) as wrong:
        return f"the connection broke ({type(wrong).__name__})", True
    except ValueError:
        return "the address is none", False


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A message goes to the address that was given, and to no other."""

    def redirect_request(self, *_given: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirect)
