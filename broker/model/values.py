"""``dataclass`` for values (messages, events, effects): frozen for the type checker, plain when it runs.

``dataclasses`` makes ``frozen`` hold at run time by setting each field through ``object.__setattr__``, which
costs four to five times what plain slots do; the core makes dozens of such values per event. mypy refuses an
assignment to a field all the same. Equality and hash are those of a frozen dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kio.schema.errors import ErrorCode

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass

    from mypy_extensions import mypyc_attr as mypyc_attr
else:
    import dataclasses

    def mypyc_attr(**_options: bool):
        """What mypyc reads where it compiles a class; to Python it says nothing."""
        return lambda cls: cls

    def dataclass(*, frozen: bool = False, **options: bool):
        """The arguments of ``dataclasses.dataclass``."""
        return dataclasses.dataclass(unsafe_hash=frozen, **options)


NO_ERROR: Final = ErrorCode.none
"""The same object: to look a member up in its enumeration costs as much as to call a function (until Python
3.12), and hardly anything is asked as often as whether there was an error."""
