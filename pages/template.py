"""Pages from templates, each with a policy by which a browser runs and loads nothing but what the page was
made with.

A page shows text of brokers, clients and files of others. It is escaped; and should that fail once, the
browser still runs no script and applies no style but the very ones of the templates, known by their hashes,
and loads nothing at all.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, meta
from markupsafe import Markup

from wrackline.history import wording

_INLINE = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)
_NONE = "'none'"


class Templates:
    """The templates in the folders ``templates`` of some packages and of this room; of two with one name,
    that of the first package. All text is escaped, and a name that is not there is an error."""

    def __init__(self, *packages: str, may_fetch: bool = False, **filters: Callable[..., Any]) -> None:
        """``may_fetch``: scripts of its pages may fetch from where the page is from. ``filters``: besides
        those for numbers, times and texts that every page has."""
        self._may_fetch = may_fetch
        self._environment = Environment(
            loader=ChoiceLoader([PackageLoader(one, "templates") for one in (*packages, "wrackline.pages")]),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(plural=wording.plural)
        self._environment.filters.update(
            duration=wording.duration,
            milliseconds=wording.milliseconds,
            number=wording.number,
            printable=wording.printable,
            seconds=wording.seconds,
            size=wording.size,
            **filters,
        )
        self._policy = lru_cache(self._make_policy)

    def render(self, name: str, *, script: str = "", **values: Any) -> str:
        """Renders the page of a template that extends ``base.html.j2``, or ``scripted.html.j2`` where it has
        scripts. ``script``: content of an element of ours that comes with the values."""
        page = self._environment.get_template(name).render(policy=self._policy(name, script), **values)
        return wording.printable(page)  # what no HTML may carry can come in through any text of others

    def compile_all(self) -> None:
        """Compiles every template; they stay in memory."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def _make_policy(self, name: str, script: str) -> Markup:
        """The element that goes first into ``<head>``. It allows what stands inline in the template and in
        those that it extends or includes; the page itself is not asked, since it has the text of others."""
        hashes: dict[str, list[str]] = {"style": [], "script": []}
        inline = _INLINE.findall("".join(self._sources(name).values()))
        for kind, content in [*inline, *([("script", script)] if script else [])]:
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            hashes[kind].append(f"'sha256-{digest}'")
        allowed = [f"{kind}-src {' '.join(own or [_NONE])}" for kind, own in hashes.items()]
        allowed += ["connect-src 'self'"] if self._may_fetch else []
        rules = [f"default-src {_NONE}", *allowed, f"base-uri {_NONE}", f"form-action {_NONE}"]
        return Markup('<meta http-equiv="Content-Security-Policy" content="%s">') % Markup("; ".join(rules))

    def _sources(self, name: str) -> dict[str, str]:
        """The text of a template and of all that it refers to, by name."""
        assert self._environment.loader is not None
        sources: dict[str, str] = {}
        waiting = [name]
        while waiting:
            if (one := waiting.pop()) not in sources:
                sources[one] = self._environment.loader.get_source(self._environment, one)[0]
                referred = meta.find_referenced_templates(self._environment.parse(sources[one]))
                waiting += [other for other in referred if other is not None]
        return sources
