"""``dataclass`` for rows that are made by the thousand: frozen for the type checker, plain slots when it
runs.

``frozen`` sets each field through ``object.__setattr__`` at run time, which makes an event of 17 fields four
times as dear. mypy refuses an assignment to a field all the same; equality and hash are those of a frozen
dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses

    def dataclass(*, frozen: bool = False, **options: bool):
        """The arguments of ``dataclasses.dataclass``."""
        return dataclasses.dataclass(unsafe_hash=frozen, **options)
