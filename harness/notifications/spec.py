"""The settings of ``after`` in the file of a night: what is done when the night is over."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from wrackline.harness.specification.spec import SpecError
from wrackline.plugins.fields import SECONDS, Strict


class Webhook(Strict):
    """Who is told of violations that no night before has shown. The address is a secret: it stands in the
    environment or in a file, and is told to nobody."""

    url_env: str | None = None
    """The variable of the environment that holds the address."""
    url_file: str | None = None
    """The file that holds the address, and nothing else."""
    timeout_s: Annotated[float, Field(gt=0, le=60), SECONDS] = 10.0
    """So long an answer is waited for."""
    tries: Annotated[int, Field(ge=1, le=10)] = 3
    """So often it is tried when nobody answers, or the answer is that it should be tried again (429, 5xx)."""

    @model_validator(mode="before")
    @classmethod
    def _keeps_the_secret(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "url" in given:
            raise ValueError("the address is a secret, so it does not stand here: give url_env or url_file")
        if (given.get("url_env") is None) == (given.get("url_file") is None):
            raise ValueError("give one of url_env and url_file")
        return given

    def address(self) -> str:
        """Raises SpecError, which does not say what was found there."""
        if self.url_env is not None:
            where, result = f"the variable {self.url_env}", os.environ.get(self.url_env, "")
        else:
            where = str(self.url_file)
            try:
                result = Path(where).read_text()
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it is no text"
                raise SpecError(f"after.webhook.url_file: {where}: cannot be read: {why}") from None
        result = result.strip()
        if not result.startswith(("https://", "http://")) or len(result.split()) != 1:
            raise SpecError(f"after.webhook: {where} holds no address that begins with https:// or http://")
        return result


class Keeping(Strict):
    """How long runs are kept (`wrackline prune`). What did not pass is kept for ever."""

    days: Annotated[float, Field(ge=0)] = 14.0
    """Runs that passed and are older are cut down to their history and verdict."""
    drop_days: Annotated[float, Field(ge=0)] | None = None
    """Runs that passed and are older than this are removed; none by default."""
    max_gb: Annotated[float, Field(gt=0)] | None = None
    """More than this (10^9 bytes) is not kept: of what passed the oldest is cut down first, then removed."""


class After(Strict):
    """What is done when the night is over. Whatever of it fails is told, and changes no verdict."""

    metrics: str | None = None
    """A file of metrics (OpenMetrics) that is written, for node_exporter's textfile collector. Its name ends
    with .prom."""
    upload: str | None = None
    """Where the night's folder is copied to: a folder, or an address that fsspec knows (`s3://bucket/nights`)."""
    webhook: Webhook | None = None
    """Who is told of new violations."""
    link: str = ""
    """The address below which the folder of the results can be seen; it is put before the report's path in
    what the webhook is told."""
    prune: Keeping | None = None
    """How long the runs of this and other nights are kept; all of them, where nothing is said."""
