"""Models: sequential objects, ours and a user's own, for the search of wrackline.checkers.exact.search."""

from wrackline.checkers.models.loading import known, load
from wrackline.checkers.models.protocol import REFUSED, Model, ModelError, OneOf, Operation, Outcome

__all__ = ["REFUSED", "Model", "ModelError", "OneOf", "Operation", "Outcome", "known", "load"]
