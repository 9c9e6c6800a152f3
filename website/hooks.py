"""What MkDocs calls while it builds the site (mkdocs.yml).

The pages in docs/ are read in the repository, too, so their links are those of files. Here a link to a file
outside docs/ becomes one to the site's own copy of it, and pages are added that are made from the code.
"""

from __future__ import annotations

import posixpath
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # MkDocs loads a hook by its file

import reference

ROOT = Path(__file__).resolve().parents[1]
CONFIGURED = ROOT / "mkdocs.yml"
TAKEN_IN = ("CONTRIBUTING.md", "CHANGELOG.md", "ansible/README.md")
"""Pages that lie outside docs/, by their paths in the repository, which are also their places in the site."""
EXAMPLES = "examples.md"
SHOWN = (".py", ".yaml", ".yml", ".toml", ".md")
_LINK = re.compile(r"\[(?P<text>[^\]\[]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_NESTED = re.compile(r"^ {3}([-*] )", re.MULTILINE)
"""An element of a list inside a numbered one: GitHub wants three spaces before it, Python-Markdown four."""
_AFTER_NESTED = re.compile(r"^( {4,}\S.*\n)(?=\d+\. )", re.MULTILINE)
"""Where the numbered list goes on after it, Python-Markdown wants an empty line."""
_DECISIONS = "decisions/index.md"


def on_config(config: Any) -> Any:
    """A page right in docs/ that the navigation does not name stands at the end of the how-tos."""
    named = CONFIGURED.read_text(encoding="utf-8").partition("\nnav:")[2]
    [how_to] = [part["How to"] for part in config.nav if "How to" in part]
    how_to += [path.name for path in sorted((ROOT / "docs").glob("*.md")) if f" {path.name}\n" not in named]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/."""
    from mkdocs.structure.files import File

    made = {path: (ROOT / path).read_text(encoding="utf-8") for path in TAKEN_IN}
    made |= {
        name: (ROOT / "website" / name).read_text(encoding="utf-8")
        for name in ("site.css", "iframe-worker.js")
    }
    made |= {EXAMPLES: _examples(), _DECISIONS: _decisions(), **reference.pages()}
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links as the site has them. A page is at the same place as in the repository, without `docs/`."""
    source = page.file.src_uri
    inside = source not in TAKEN_IN
    folder = posixpath.dirname(f"docs/{source}" if inside else source)
    blocks = [found.span() for found in _FENCE.finditer(markdown)]

    def link(found: re.Match[str]) -> str:
        """Where the text is the name of a file, the page's title stands in its place."""
        target = found["target"]
        in_code = any(begin <= found.start() < end for begin, end in blocks)
        if in_code or re.match(r"[a-z]+:|/", target):
            return found[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        place, anchor = _place(path, found["anchor"] or "")
        if place is None:
            return found[0]
        text = _title(path) if found["text"].endswith(posixpath.basename(target)) else found["text"]
        return f"[{text}]({posixpath.relpath(place, posixpath.dirname(source) or '.')}{anchor})"

    return _AFTER_NESTED.sub(r"\1\n", _NESTED.sub(r"    \1", _LINK.sub(link, markdown)))


def _place(path: str, anchor: str) -> tuple[str | None, str]:
    """Of a file of the repository in the site; None: MkDocs finds it, or says that it is not there."""
    if path in TAKEN_IN:
        return path, anchor
    if path == "docs/decisions":
        return _DECISIONS, anchor
    if path.startswith("docs/examples"):
        return EXAMPLES, f"#{_anchor(path)}"
    if path.startswith("docs/"):
        return path.removeprefix("docs/"), anchor
    if path == "README.md":
        return "index.md", ""
    if path == "pyproject.toml":
        return EXAMPLES, f"#{_anchor(path)}"
    return None, anchor


@cache
def _title(path: str) -> str:
    """Of a page of the repository; of any other file, its name."""
    file = ROOT / path
    if file.suffix != ".md" or not file.is_file():
        return f"`{file.name}`"
    return file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


# --- pages of files -----------------------------------------------------------------------------------------


def _decisions() -> str:
    lines = ["# Decisions", "", "One short page for each decision that is worth remembering.", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def _examples() -> str:
    """Every file below docs/examples, and the entry points of our own that the page on plugins tells of."""
    lines = ["# Examples", "", "The files in `docs/examples`, as the tests run them."]
    for path in sorted((ROOT / "docs" / "examples").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.is_dir() and path.name.startswith(("wrackline-example", "external-")):
            lines += ["", f"## {path.name} {{ #{_anchor(name)} }}"]
        if path.is_file() and path.suffix in SHOWN and "__pycache__" not in name:
            level = "##" if path.parent.name == "examples" else "###"
            title = path.relative_to(ROOT / "docs" / "examples").as_posix()
            lines += ["", f"{level} {title} {{ #{_anchor(name)} }}", "", *_block(path)]
    lines += ["", f"## Wrackline's own entry points {{ #{_anchor('pyproject.toml')} }}", ""]
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return "\n".join(
        [*lines, "```toml", text[text.index("[project.entry-points") :].partition("[tool.")[0], "```", ""]
    )


def _block(path: Path) -> list[str]:
    language = {".py": "python", ".yml": "yaml", ".md": "markdown"}.get(
        path.suffix, path.suffix.removeprefix(".")
    )
    return [f"````{language}", path.read_text(encoding="utf-8").rstrip(), "````"]


def _anchor(path: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", path.removeprefix("docs/examples").lower()).strip("-")
