"""Pictures of the sample's report for README: `.venv/bin/python website/screenshots.py` makes them again.

Each shows the first screen of `results/sample/report.html`, down to the log on each replica, in one theme.
Chromium draws them, so the same report and the same fonts give the same pictures.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.harness.report.browser import PROGRAM, Browser, browser  # noqa: E402

REPORT = ROOT / "results/sample/report.html"
PICTURES = ROOT / "docs/images"
WIDTH = 1280
MOST_BYTES = 150_000
_BELOW = 18
"""Pixels that are shown below the last drawing."""
_END = "document.querySelector('#timeline').getBoundingClientRect().bottom"


def picture(page: Browser, theme: str) -> bytes:
    """PNG."""
    page.ask("Emulation.setScrollbarsHidden", hidden=True)
    page.show(REPORT, WIDTH, 900, theme)
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": round(page.value(_END)) + _BELOW, "scale": 1}
    told = page.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    return base64.b64decode(told["data"])


def main() -> None:
    if PROGRAM is None:
        sys.exit("screenshots: no Chromium here; on Debian: apt-get install chromium")
    PICTURES.mkdir(exist_ok=True)
    with browser() as page:
        for theme in ("light", "dark"):
            made, file = picture(page, theme), PICTURES / f"report-{theme}.png"
            if len(made) > MOST_BYTES:
                sys.exit(
                    f"screenshots: {file.name} has {len(made):,} bytes, and at most {MOST_BYTES:,} are wanted"
                )
            file.write_bytes(made)
            print(f"{file.relative_to(ROOT)}: {len(made):,} bytes")


if __name__ == "__main__":
    main()
