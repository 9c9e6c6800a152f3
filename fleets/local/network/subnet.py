"""A subnet as a specification gives it."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import Annotated

from pydantic import AfterValidator, Field


def _a_network_with_room(subnet: str) -> str:
    try:
        network = IPv4Network(subnet)
    except ValueError as error:
        raise ValueError(f"{error}; give it as 198.18.0.0/24") from error
    if network.prefixlen > 26:
        raise ValueError(f"{subnet} has no room for the hosts: /26 is the smallest")
    return subnet


Subnet = Annotated[
    str, Field(json_schema_extra={"pattern": "^[0-9./]+$"}), AfterValidator(_a_network_with_room)
]
