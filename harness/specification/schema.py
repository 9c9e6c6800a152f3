"""The JSON schema of a specification, for editors: what `wrackline.harness.specification.spec` parses, in
their words.

It is made from the very models that parse, and says more than they take in no place. What it cannot say is
how one part must fit another, and what only the broker, librdkafka and the length of a run know: `wrackline
validate` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema

from wrackline.harness.specification.spec import Spec
from wrackline.plugins.fields import JsonSchema

TITLE = "A specification of a run of Wrackline"
_NAMED = ("properties", "$defs")
"""Keywords whose values are schemas by name."""


def schema() -> JsonSchema:
    """Returns the schema in the dialect that ``$schema`` names; readers of draft 7 understand it too."""
    made = _tidy(Spec.model_json_schema(schema_generator=_Plain))
    return {"$schema": _Plain.schema_dialect, **made, "title": TITLE}


class _Plain(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: CoreSchema | Any) -> bool:
        """An editor shows the key; `Duration S` beside it says nothing."""
        del schema
        return False


def _tidy(given: Any) -> Any:
    if isinstance(given, list):
        return [_tidy(one) for one in given]
    if not isinstance(given, Mapping):
        return given
    kept: dict[str, Any] = {
        keyword: {name: _tidy(one) for name, one in value.items()} if keyword in _NAMED else _tidy(value)
        for keyword, value in given.items()
        if keyword not in ("default", "discriminator")
    }
    if not isinstance(given.get("default"), Mapping | None):
        kept["default"] = given["default"]  # those of whole parts say again what their keys say
    if "description" in kept:
        kept["description"] = " ".join(kept["description"].replace("``", "`").split())
    if "prefixItems" in kept:  # no draft before 2020-12 knows it, and each of ours has elements of one kind
        first, *others = kept.pop("prefixItems")
        assert all(one == first for one in others)
        kept["items"] = first
    return kept
