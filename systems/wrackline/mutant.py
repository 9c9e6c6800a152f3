"""A broker that deviates in one place, drawn by a machine (`wrackline simulate mutants`): its source is
changed as the broker is packed, so every node of a run starts with the same change.

The changed place says once in the node's log that it was reached.
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from wrackline.mutation import REACHED, mutated, mutations_of

MARK = "MUTANT REACHED"
"""What a node's log has, once in each life of the process, when it runs the changed place."""
_PROGRAM = f"""
def {REACHED}(lives=[]):
    if not lives:
        import sys
        lives.append(print({MARK!r}, file=sys.stderr, flush=True))
"""
_EXAMPLE = "name one as `wrackline simulate mutants` does, broker/rules/replication/isr.py:14"


def check_mutant(name: str) -> str:
    """Returns the name of a mutant, or an empty one, as it is. Raises ValueError where there is none."""
    if not name:
        return name
    file, _, number = name.rpartition(":")
    package = importlib.util.find_spec("wrackline")
    folders = package.submodule_search_locations if package is not None else None
    source = Path(folders[0], file) if folders else Path(file)
    if not file.startswith("broker/") or ".." in source.parts or not source.is_file():
        raise ValueError(f"{name}: there is no such file of the broker; {_EXAMPLE}")
    count = len(mutations_of(file, source.read_text(encoding="utf-8")))
    if not number.isdecimal() or int(number) >= count:
        raise ValueError(f"{name}: {file} has mutants 0 to {count - 1}; {_EXAMPLE}")
    return name


def put_mutant(package: Path, name: str) -> None:
    """Writes the mutant over the source that it changes, below a copy of the package."""
    file, _, number = name.rpartition(":")
    tree = mutated((package / file).read_text(encoding="utf-8"), int(number))
    after = sum(isinstance(each, ast.ImportFrom) and each.module == "__future__" for each in tree.body)
    after += ast.get_docstring(tree, clean=False) is not None
    tree.body[after:after] = ast.parse(_PROGRAM).body
    (package / file).write_text(ast.unparse(tree), encoding="utf-8")
