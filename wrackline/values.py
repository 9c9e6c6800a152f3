"""The values of a history: EDN's, which are hashable here and as different from each other as in EDN.

======================  ========================================================================
EDN, JSON               here
======================  ========================================================================
``nil``, ``null``       None
``true``, ``false``     ``TRUE``, ``FALSE``: equal to Python's, and to no number
``1``                   int
``1.5``                 float; a whole one (``1.0``) is ``Whole``, which no int is equal to. JSON's
                        ``1.0`` is the int: its writers do not tell these two apart
``:a``, ``a``           ``Keyword``
``"a"``                 ``Text`` of EDN; of JSON plain str, which is equal to ``Keyword`` and to ``Text``
``[1 2]``, ``(1 2)``    tuple
``#{1 2}``              frozenset
``{:a 1}``              ``Map``
======================  ========================================================================

A literal of Python's in code ("append", True, 1.0) is equal to what it would be read as, so a model can say
``operation.argument["from"]`` or ``case ("r", key, value)``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from enum import Enum
from types import NoneType
from typing import Any, NoReturn

DEEPEST = 100
"""Levels of vectors and maps in one operation; Jepsen's have six or so."""
_WHOLE = re.compile(r"-?(?:0|[1-9]\d*)")


class Keyword(str):
    """A word that is written as a keyword in EDN (``:ok``) and as a string in JSON."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True and not isinstance(other, Text)

    def __ne__(self, other: object) -> bool:
        return not self == other


class Text(str):
    """A string of EDN, which no keyword is equal to."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True and not isinstance(other, Keyword)

    def __ne__(self, other: object) -> bool:
        return not self == other


class Whole(float):
    """A float that is a whole number, or none at all (NaN): no int is equal to it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, float):
            return False
        return float.__eq__(self, other) or (math.isnan(self) and math.isnan(other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return 0 if math.isnan(self) else float.__hash__(self)


class Truth(Enum):
    """The type of ``TRUE`` and ``FALSE``."""

    FALSE = False
    TRUE = True

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, bool) and self.value == other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return "true" if self.value else "false"

    __str__ = __repr__


TRUE, FALSE = Truth.TRUE, Truth.FALSE


class Map(dict[Any, Any]):
    """A dict that is a value: it must not change, and has a hash."""

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def _refuse(self, *_arguments: Any, **_named: Any) -> NoReturn:
        raise TypeError("a value of a history does not change: copy it with dict(...)")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = __ior__ = _refuse


_READY = frozenset({int, str, Text, Keyword, NoneType, Truth, Whole, Map})


class NestedTooDeep(Exception):
    """A value that is nested more than DEEPEST deep."""


def value_of(given: Any, deepest: int = DEEPEST) -> Any:
    """Converts Python data, as JSON's readers give it, to a value. Raises NestedTooDeep."""
    kind = type(given)
    if kind in _READY:
        return given
    if kind is dict and is_flat(given.values()) and is_flat(given):
        return Map(given)
    if kind is bool:
        return TRUE if given else FALSE
    if kind is float:
        return int(given) if given.is_integer() else given
    if deepest <= 0:
        raise NestedTooDeep
    if kind is list or kind is tuple:
        if is_flat(given):
            return tuple(given)
        return tuple([one if type(one) in _READY else value_of(one, deepest - 1) for one in given])
    if isinstance(given, Mapping):
        return Map((value_of(key, deepest - 1), value_of(one, deepest - 1)) for key, one in given.items())
    if isinstance(given, list | tuple):
        return tuple(value_of(one, deepest - 1) for one in given)
    if isinstance(given, set | frozenset):
        return frozenset(value_of(one, deepest - 1) for one in given)
    return given if isinstance(given, Hashable) else repr(given)


def is_flat(values: Iterable[Any]) -> bool:
    """Tells whether all of these are values already, as most of JSON's are."""
    return _READY.issuperset(map(type, values))


def real(number: float) -> float:
    """A float as a value of EDN."""
    return Whole(number) if number.is_integer() or math.isnan(number) else number


def key_of(name: Any) -> Any:
    """The key of a map that JSON may have written: its maps have texts as keys, so one that is spelt like a
    whole number is that number. EDN's own keys stay what they are."""
    return int(name) if type(name) is str and _WHOLE.fullmatch(name) else name


class Initial:
    """The initial value of each key: ``given`` for all, or a map of keys in which those that are not named
    have ``otherwise``. It may come from JSON (``--initial``), so keys are the same that JSON spells alike."""

    def __init__(self, given: Any, otherwise: Any = None) -> None:
        of_each = isinstance(given, Mapping)
        self._of = {str(key): value_of(one) for key, one in given.items()} if of_each else {}
        self._else = value_of(otherwise if given is None or of_each else given)

    def __call__(self, key: Any) -> Any:
        return self._of.get(str(key), self._else) if self._of else self._else


def spelt(value: Any) -> str:
    """A value as EDN has it; of JSON, whose texts may be keywords, without quotes or colon."""
    match value:
        case None:
            return "nil"
        case tuple() | list():
            return "[" + " ".join(map(spelt, value)) + "]"
        case frozenset() | set():
            return "#{" + " ".join(sorted(map(spelt, value))) + "}"
        case Mapping():
            return "{" + ", ".join(f"{spelt(key)} {spelt(one)}" for key, one in value.items()) + "}"
    return str(value)
