"""UpdateFeatures (key 57) and ControllerRegistration (70, version 0), and how levels are written on the wire
(KIP-584, KIP-919)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages.admin import (
    FeatureUpdate,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    UpgradeType,
)
from wrackline.broker.model.messages.controller import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from wrackline.broker.model.metadata.features import METADATA_VERSION, NOT_SAID, Levels
from wrackline.broker.wire.common import NO_THROTTLE, TopicNames, as_timedelta, milliseconds
from wrackline.broker.wire.schema import NO_UUID, Schema, WireError

_PLAINTEXT = 0
_LAST_WITH_RESULTS = 1


class Features(NamedTuple):
    """What ApiVersions says of features."""

    supported: Levels
    """Of ``metadata.version``, by this node."""
    level: int | None
    """That the cluster has now, as far as this node knows; None: it has none."""
    epoch: int
    """Grows with whatever the node knows: the offset of its last metadata record."""


AskFeatures = Callable[[], Features | None]
"""None: of a node without a metadata log."""


def said_by(features: Features | None, schema: Schema) -> dict[str, object]:
    """The fields of an ApiVersions answer; none in a version that has no such fields."""
    if features is None or not schema.flexible:
        return {}
    lowest, highest = features.supported
    fields: dict[str, object] = {
        "supported_features": (
            schema.make(
                "SupportedFeatureKey", name=METADATA_VERSION, min_version=lowest, max_version=highest
            ),
        )
    }
    if (level := features.level) is not None:
        fields["finalized_features_epoch"] = features.epoch
        fields["finalized_features"] = (
            schema.make(
                "FinalizedFeatureKey", name=METADATA_VERSION, max_version_level=level, min_version_level=level
            ),
        )
    return fields


def levels_in(features: Iterable[Any]) -> Levels:
    """Of a registration; ``NOT_SAID`` where it says nothing of the metadata's."""
    for one in features:
        if one.name == METADATA_VERSION:
            return Levels(one.min_supported_version, one.max_supported_version)
    return NOT_SAID


def features_of(schema: Schema, levels: Levels) -> tuple[Any, ...]:
    """As registrations have them."""
    lowest, highest = levels
    name = METADATA_VERSION
    return (schema.make("Feature", name=name, min_supported_version=lowest, max_supported_version=highest),)


# --- UpdateFeatures ----------------------------------------------------------------------------------------


def decode_update(entity: Any, _: TopicNames) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        tuple(
            FeatureUpdate(update.feature, update.max_version_level, _upgrade_type(update))
            for update in entity.feature_updates
        ),
        milliseconds(entity.timeout),
        getattr(entity, "validate_only", False),
    )


def _upgrade_type(update: Any) -> int:
    """Version 0 says only whether the level may fall, which the safe way does."""
    if hasattr(update, "upgrade_type"):
        return int(update.upgrade_type)
    return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE


def encode_update_request(schema: Schema, request: UpdateFeaturesRequest) -> Any:
    return schema.make(
        "UpdateFeaturesRequest",
        timeout=as_timedelta(request.timeout_ms),
        feature_updates=tuple(
            schema.make(
                "FeatureUpdateKey", feature=name, max_version_level=level, upgrade_type=int(upgrade_type)
            )
            for name, level, upgrade_type in request.updates
        ),
        validate_only=request.validate_only,
    )


def encode_update_response(
    schema: Schema, request: UpdateFeaturesRequest, response: UpdateFeaturesResponse
) -> Any:
    """Up to version 1 each feature has an outcome of its own; here all have the same."""
    outcomes = {}
    if schema.version <= _LAST_WITH_RESULTS:
        outcomes["results"] = tuple(
            schema.make(
                "UpdatableFeatureResult",
                feature=update.name,
                error_code=response.error,
                error_message=response.message,
            )
            for update in request.updates
        )
    refused = response.error is not ErrorCode.none and not outcomes
    return schema.make(
        "UpdateFeaturesResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error if refused else ErrorCode.none,
        error_message=response.message if refused else None,
        **outcomes,
    )


def decode_update_response(entity: Any, _: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(entity.error_code, entity.error_message)


# --- ControllerRegistration --------------------------------------------------------------------------------


def decode_registration(entity: Any, _: TopicNames) -> ControllerRegistrationRequest:
    """Raises WireError when the controller names no listener."""
    if not entity.listeners:
        raise WireError(f"controller {entity.controller_id} registers without a listener")
    listener = entity.listeners[0]
    return ControllerRegistrationRequest(
        entity.controller_id,
        entity.incarnation_id or NO_UUID,
        listener.host,
        listener.port,
        levels_in(entity.features),
    )


def encode_registration_request(schema: Schema, request: ControllerRegistrationRequest) -> Any:
    listener = schema.make(
        "Listener", name="CONTROLLER", host=request.host, port=request.port, security_protocol=_PLAINTEXT
    )
    return schema.make(
        "ControllerRegistrationRequest",
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        listeners=(listener,),
        features=features_of(schema, request.levels),
    )


def encode_registration_response(
    schema: Schema, _: ControllerRegistrationRequest, response: ControllerRegistrationResponse
) -> Any:
    return schema.make(
        "ControllerRegistrationResponse",
        throttle_time=NO_THROTTLE,
        error_code=response.error,
        error_message=response.message,
    )


def decode_registration_response(
    entity: Any, _: ControllerRegistrationRequest
) -> ControllerRegistrationResponse:
    return ControllerRegistrationResponse(entity.error_code, entity.error_message)
