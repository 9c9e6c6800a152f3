"""Which core a role runs."""

from __future__ import annotations

from broker.core.broker import Broker
from broker.core.config import ControllerConfig
from broker.core.controller import Controller
from broker.rules.profile import Rules
from broker.server.config import Settings
from broker.server.shell import Core


def make_core(settings: Settings, rules: Rules) -> Core:
    if isinstance(settings.node, ControllerConfig):
        return Controller(settings.node, rules)
    return Broker(settings.node, rules)
