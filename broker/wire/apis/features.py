"""UpdateFeatures, and what ApiVersions says of features (KIP-584)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from wrackline.broker.model.messages import admin as a
from wrackline.broker.model.metadata.features import METADATA_VERSION, Levels
from wrackline.broker.wire.api import api, forwarded_access
from wrackline.broker.wire.translation.declarations import Array, FieldPath, message

_LAST_WITH_RESULTS = 1


class Features(NamedTuple):
    """The features in an answer to ApiVersions."""

    supported: Levels
    """Of ``metadata.version``, by this node."""
    level: int | None
    """That the cluster has now, as far as this node knows; None: it has none."""
    epoch: int
    """Grows with whatever the node knows: the offset of its last metadata record."""


AskFeatures = Callable[[], Features | None]
"""None: of a node without a metadata log."""


def in_api_versions(features: Features | None) -> Mapping[str, object]:
    """The fields of an ApiVersions answer."""
    if features is None:
        return {}
    lowest, highest = features.supported
    supported = {"name": METADATA_VERSION, "min_version": lowest, "max_version": highest}
    if (level := features.level) is None:
        return {"supported_features": (supported,)}
    finalized = {"name": METADATA_VERSION, "max_version_level": level, "min_version_level": level}
    return {
        "supported_features": (supported,),
        "finalized_features_epoch": features.epoch,
        "finalized_features": (finalized,),
    }


# --- UpdateFeatures -----------------------------------------------------------------------------------------


def _upgrade_type(said: int) -> int:
    """Version 0 says only whether the level may fall (a bool), which the safe way does."""
    if isinstance(said, bool):
        return a.UpgradeType.SAFE_DOWNGRADE if said else a.UpgradeType.UPGRADE
    return said


class _Result(NamedTuple):
    feature: str
    error: ErrorCode
    message: str | None


@dataclass(frozen=True, slots=True)
class _Response:
    error: ErrorCode
    message: str | None
    results: tuple[_Result, ...] = ()


def _form_of_response(
    response: a.UpdateFeaturesResponse, request: a.UpdateFeaturesRequest, version: int
) -> _Response:
    """Returns the wire form of the response: up to version 1 each feature has an outcome of its own; here
    all have the same."""
    error, why = response.error, response.message
    if version <= _LAST_WITH_RESULTS:
        results = tuple(_Result(update.name, error, why) for update in request.updates)
        return _Response(ErrorCode.none, None, results)
    return _Response(error, why if error is not ErrorCode.none else None)


def _response_of_form(form: _Response) -> a.UpdateFeaturesResponse:
    return a.UpdateFeaturesResponse(form.error, form.message)


APIS = (
    api(
        57,
        "UpdateFeatures",
        forwarded_access(0, 2),
        request=message(
            a.UpdateFeaturesRequest,
            updates=Array(
                "feature_updates",
                message(
                    a.FeatureUpdate,
                    name="feature",
                    level="max_version_level",
                    upgrade_type=FieldPath("upgrade_type", "allow_downgrade", read=_upgrade_type),
                ),
            ),
        ),
        response=message(
            a.UpdateFeaturesResponse,
            form=_Response,
            from_form=_response_of_form,
            to_form=_form_of_response,
            missing=("results",),
        ),
    ),
)
