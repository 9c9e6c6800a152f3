"""Carries out what concerns the way of clients to a broker: certificates, passwords and quotas."""

from __future__ import annotations

import json

from wrackline.nemesis.faults.admin_steps import (
    DescribeCertificate,
    DescribeCredential,
    MeasureThrottle,
    RestoreCertificate,
    RestoreCredential,
    RotateCertificate,
    RotateCredential,
)
from wrackline.nemesis.faults.steps import FaultError
from wrackline.systems.base import Certified, Passworded, System, Throttling

CHANGE_S = 20.0
"""How long a listener may take to serve another certificate, or brokers to know another password."""
ASK_S = 5.0


def measure_throttle(system: System, step: MeasureThrottle) -> str:
    """Raises FaultError, DeployError."""
    if not isinstance(system, Throttling):
        raise FaultError(f"{system.name} cannot be asked whether it throttles")
    [node] = [one for one in system.nodes if one.node_id == step.node_id]
    return json.dumps({quota: system.throttle_ms(node, quota, timeout_s=ASK_S) for quota in step.quotas})


def certify(system: System, step: RotateCertificate | RestoreCertificate | DescribeCertificate) -> str:
    """Raises FaultError, DeployError."""
    if not isinstance(system, Certified):
        raise FaultError(f"{system.name} has no certificates that could be rotated")
    [node] = [one for one in system.nodes if one.node_id == step.node_id]
    match step:
        case RotateCertificate():
            before = system.served_certificate(node, timeout_s=ASK_S)
            after = system.rotate_certificate(node, timeout_s=CHANGE_S)
            return json.dumps({"before": before, "after": after})
        case RestoreCertificate():
            system.restore_certificate(node, timeout_s=CHANGE_S)
            return ""
        case _:
            return system.served_certificate(node, timeout_s=ASK_S)


def authenticate(system: System, step: RotateCredential | RestoreCredential | DescribeCredential) -> str:
    """Raises FaultError, DeployError."""
    if not isinstance(system, Passworded):
        raise FaultError(f"{system.name} has no passwords that could be rotated")
    match step:
        case DescribeCredential(node_id=node_id):
            [node] = [one for one in system.nodes if one.node_id == node_id]
            return system.lets_in_by(node, timeout_s=ASK_S)
        case _:
            system.change_password(second=isinstance(step, RotateCredential), timeout_s=CHANGE_S)
            return ""
