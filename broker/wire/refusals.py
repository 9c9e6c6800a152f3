"""One error for a whole request, said as the response of its API says errors: at the top or per item."""

from __future__ import annotations

from dataclasses import fields
from typing import cast, get_args, get_type_hints

from wrackline.broker.model.messages.requests import Refused, Request, Response
from wrackline.broker.wire.apis import BY_REQUEST


def expand(request: Request, refused: Refused) -> Response:
    """The response of ``request``'s own kind that carries the error."""
    api = BY_REQUEST[type(request)]
    if api.refuse is not None:
        return api.refuse(request, refused.error, refused.message or None)
    model, said = api.response.model, {"error": refused.error, "message": refused.message or None}
    if "error" in (known := _fields(model)):
        return cast(Response, model(**{name: said[name] for name in said if name in known}))
    (items,) = known
    item = get_args(get_type_hints(model)[items])[0]
    subject, *known = _fields(item)
    outcome = {name: said[name] for name in said if name in known}
    return cast(
        Response, model(tuple(item(getattr(each, subject), **outcome) for each in getattr(request, items)))
    )


def _fields(model: type) -> list[str]:
    return [field.name for field in fields(model)]
