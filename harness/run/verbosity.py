"""Whether progress is said: where `PROGRESS` is enabled for INFO. It is, unless the user wants it quiet.
Where the user wants more of it, `PROGRESS` is enabled for DEBUG."""

from __future__ import annotations

import logging

PROGRESS = logging.getLogger("wrackline.progress")
PROGRESS.setLevel(logging.INFO)
