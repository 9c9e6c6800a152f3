"""A field of a specification that a part of any origin may stand in: its model is found by name when it is
needed.

It behaves as pydantic's own union of models with a discriminator does (the places of errors, the JSON
schema), except that the union is open.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from wrackline.plugins.fields import JsonSchema
from wrackline.plugins.registry import Entry, Group, PluginError, named, names


@dataclass(frozen=True, slots=True)
class _Tagged:
    """Makes of one model a union with a discriminator, so that errors name the model in their place."""

    key: str
    name: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.tagged_union_schema({self.name: handler(source)}, discriminator=self.key)


def _itself(loaded: Any) -> Any:
    return loaded


@dataclass(frozen=True)
class Door:
    """Annotation of a field that holds a model of ``base``: what stands at ``key`` names the entry point of
    ``group`` whose model reads the rest."""

    group: Group
    base: type[BaseModel]
    key: str
    default: str | None = None
    """What is meant where the key is left out; None: it must be there."""
    model_of: Callable[[Any], Any] = _itself
    """From what an entry point names to the model of its settings."""

    def model(self, name: str) -> type[BaseModel]:
        """Raises PluginError."""
        return self.check(named(self.group, name))

    def usual(self) -> Any:
        """The default settings. Raises PluginError."""
        assert self.default is not None, f"{self.group} has no default"
        return self.model(self.default)()

    def check(self, entry: Entry) -> type[BaseModel]:
        """Returns the entry's model after checking that the entry can stand here. Raises PluginError."""
        model = self.model_of(entry.load())
        if not (isinstance(model, type) and issubclass(model, self.base)):
            raise entry.refused(f"has settings that are no {self.base.__module__}.{self.base.__name__}")
        field = model.model_fields.get(self.key)
        literals = get_args(field.annotation) if field and get_origin(field.annotation) is Literal else ()
        if literals != (entry.name,):
            raise entry.refused(f"must say so in its settings: {self.key}: Literal[{entry.name!r}]")
        checked: type[BaseModel] = model
        return checked

    def models(self) -> dict[str, type[BaseModel]]:
        """All that can be used, by name: one that is broken does not keep a list from the others."""
        result = {}
        for name in names(self.group):
            with contextlib.suppress(PluginError):
                result[name] = self.model(name)
        return result

    # --- for pydantic -------------------------------------------------------------------------------------

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        del source, handler
        as_it_is = core_schema.wrap_serializer_function_ser_schema(_dumped, schema=core_schema.any_schema())
        return core_schema.no_info_plain_validator_function(self._read, serialization=as_it_is)

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        del core
        models = self.models()
        if len(models) == 1:
            [(name, model)] = models.items()
            schema = handler(_reader(model, self.key, name).core_schema)
        else:
            union: Any = Annotated[reduce(or_, models.values()), Field(discriminator=self.key)]
            schema = handler(TypeAdapter(union).core_schema)
        if self.default is not None:  # any other must be named
            schema["oneOf"] = [
                {"$ref": ref}
                if name == self.default
                else {"allOf": [{"$ref": ref}, {"required": [self.key]}]}
                for name, ref in schema["discriminator"]["mapping"].items()
            ]
        return schema

    def _read(self, given: Any) -> Any:
        """Raises what pydantic's own union raises."""
        if isinstance(given, self.base):
            return given
        if not isinstance(given, Mapping):
            raise PydanticKnownError("model_type", {"class_name": self.base.__name__})
        tag = given.get(self.key, self.default)
        if tag is None:
            raise PydanticKnownError("union_tag_not_found", {"discriminator": repr(self.key)})
        known = names(self.group)
        if tag not in known:
            listed = ", ".join(map(repr, known))
            facts = {"discriminator": repr(self.key), "tag": str(tag), "expected_tags": listed}
            raise PydanticKnownError("union_tag_invalid", facts)
        try:
            model = self.model(tag)
        except PluginError as error:
            raise ValueError(str(error)) from error
        return _reader(model, self.key, tag).validate_python({**given, self.key: tag})


def _dumped(value: Any, handler: core_schema.SerializerFunctionWrapHandler) -> Any:
    return handler(value)


@cache
def _reader(model: type[BaseModel], key: str, tag: str) -> TypeAdapter[Any]:
    tagged: Any = Annotated[model, _Tagged(key, tag)]
    return TypeAdapter(tagged)
