"""What every page of ours carries: a policy by which a browser runs and loads nothing but what the page was
made with.

A page shows text of brokers, clients and files of others. It is escaped; and should that fail once, the
browser still runs no script and applies no style but the very ones of the template, known by their hashes,
and loads nothing at all.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

_INLINE = re.compile(r"<(style|script)>(.*?)</\1>", re.DOTALL)


def policy(template: str, *, asks: bool = False) -> Markup:
    """The element that goes first into ``<head>``. ``template``: text of ours with the page's inline styles
    and scripts in it, as they will be in the page; never the page itself, which has the text of others in
    it. ``asks``: its script may fetch from where the page is from."""
    hashes: dict[str, list[str]] = {"style": [], "script": []}
    for kind, content in _INLINE.findall(template):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        hashes[kind].append(f"'sha256-{digest}'")
    allowed = [f"{kind}-src {' '.join(found or [_NONE])}" for kind, found in hashes.items()]
    allowed += ["connect-src 'self'"] if asks else []
    rules = [f"default-src {_NONE}", *allowed, f"base-uri {_NONE}", f"form-action {_NONE}"]
    return Markup('<meta http-equiv="Content-Security-Policy" content="%s">') % Markup("; ".join(rules))


def environment(*packages: str) -> Environment:
    """Finds templates in the folders ``templates`` of these packages, the first that has one. All text is
    escaped, and a name that is not there is an error."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def source(templates: Environment, name: str) -> str:
    """A template's own text."""
    assert templates.loader is not None
    return templates.loader.get_source(templates, name)[0]


def rendered(package: str, name: str, **values: Any) -> str:
    """The page of a template in a package's folder ``templates``. Its head begins with ``{{ policy }}``."""
    templates = environment(package)
    return templates.get_template(name).render(policy=policy(source(templates, name)), **values)


_NONE = "'none'"
