"""Types of a specification's fields: strict models, and durations.

Both the parser and the JSON schema (wrackline.harness.specification.schema) follow from the types here, so
neither can take what the other refuses. A short form of a part (`guided: NAME`) is declared where the part
is: its validator and its schema side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

JsonSchema = dict[str, Any]
T = TypeVar("T")

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_UNITS_MS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_TEXT = "(?=[0-9])" + "".join(f"(?:({_NUMBER}){unit})?" for unit in _UNITS_MS)
"""Each unit once at most, the greatest first."""
EXAMPLES = "90s, 3m, 1h30m or 500ms"


class Strict(BaseModel):
    """Refuses keys that it does not know, and takes each value for what it is written as: `"5"` and `yes`
    are no numbers."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    follows: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """Key -> its value where it is not written, by the other keys: a default must not refuse what somebody
    has written."""

    @model_validator(mode="after")
    def _let_defaults_follow(self) -> Self:
        for key, follow in self.follows.items():
            if key not in self.model_fields_set:
                self.__dict__[key] = follow(self)  # as the field's own default, it is not written
        return self


Lax = Field(strict=False)
"""For lists and enums, which a YAML file can only write as something that becomes one."""


def _no_boolean(given: Any) -> Any:
    """Python takes True for 1, and Literal does too."""
    if isinstance(given, bool):
        raise ValueError(f"a number or a word is wanted here, not {str(given).lower()}; quote what is a word")
    return given


NoBoolean = BeforeValidator(_no_boolean)


def milliseconds(text: str) -> Decimal | None:
    """Returns the milliseconds of ``1h30m`` and the like; None for text that is no duration."""
    match = re.fullmatch(_TEXT, text)
    if match is None:
        return None
    numbers = zip(match.groups(), _UNITS_MS.values(), strict=True)
    return sum((Decimal(number) * unit for number, unit in numbers if number is not None), Decimal(0))


@dataclass(frozen=True, slots=True)
class Duration:
    """Annotation of a number field that holds a duration: takes text such as ``3m`` too.

    It stands behind the constraints on the number (``Annotated[float, Field(gt=0), SECONDS]``), which then
    hold for both ways to write it."""

    unit: str
    unit_ms: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.number, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        number = handler(core)
        more_than_none = "(?=.*[1-9])" if number.get("exclusiveMinimum") == 0 else ""
        return {"anyOf": [number, {"type": "string", "pattern": f"^{more_than_none}{_TEXT}$"}]}

    def number(self, given: Any) -> Any:
        """Converts text to a number; anything else is left to the number's own check. Raises ValueError."""
        if not isinstance(given, str):
            return given
        result = milliseconds(given)
        if result is None:
            raise ValueError(f"{given!r} is no duration: give a number of {self.unit}, or {EXAMPLES}")
        count = result / self.unit_ms
        return int(count) if count == count.to_integral_value() else float(count)


@dataclass(frozen=True, slots=True)
class Like:
    """Annotation of a text that is written in one way: ``pattern`` for machines, ``words`` for people."""

    pattern: str
    words: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return {**handler(core), "pattern": self.pattern}

    def check(self, given: str) -> str:
        """Raises ValueError."""
        if re.fullmatch(self.pattern, given) is None:
            raise ValueError(f"{given!r} cannot be used: {self.words}")
        return given


@dataclass(frozen=True, slots=True)
class Most:
    """Annotation of a number: the greatest that it may be, and ``why``, or what to do for more."""

    most: float
    why: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return {**handler(core), "maximum": self.most}

    def check(self, given: float) -> float:
        """Raises ValueError."""
        if given > self.most:
            raise ValueError(f"{given:,.12g} is more than {self.most:,}: {self.why}")
        return given


SECONDS = Duration("seconds", 1_000)
MILLISECONDS = Duration("milliseconds", 1)

Seconds = Annotated[float, Field(ge=0), SECONDS]
"""Not negative."""
SomeSeconds = Annotated[float, Field(gt=0), SECONDS]
"""More than none."""


def in_milliseconds(settings: Mapping[str, T]) -> dict[str, T | int]:
    """Settings of others (of the broker, a topic, librdkafka) whose names end in ``ms``, with their
    durations as numbers.

    What is no duration, or no whole number of milliseconds, stays as it is: whoever owns the setting
    refuses it."""
    return {key: _whole_milliseconds(value) if _MS.search(key) else value for key, value in settings.items()}


_MS = re.compile(r"[._]ms$")


def _whole_milliseconds(value: T) -> T | int:
    result = milliseconds(value) if isinstance(value, str) else None
    return value if result is None or result != result.to_integral_value() else int(result)
