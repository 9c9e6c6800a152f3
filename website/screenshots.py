"""Pictures of the sample's report for README: `.venv/bin/python website/screenshots.py` makes them again.

Each shows the first screen of `results/sample/report.html`, down to the log on each replica, in one theme.
Chromium draws them, so the same report and the same fonts give the same pictures.
"""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.harness.report.browser import PROGRAM, Browser, browser  # noqa: E402

REPORT = ROOT / "results/sample/report.html"
PICTURES = ROOT / "docs/images"
WIDTH = 1280
MOST_BYTES = 150_000
COLOURS = 256
"""Of a picture: text and flat areas have few more."""
_BELOW = 18
"""Pixels that are shown below the last drawing."""
_END = "document.querySelector('#timeline').getBoundingClientRect().bottom"


_PIXELS = """(async () => {
  const image = await createImageBitmap(await (await fetch('data:image/png;base64,%s')).blob());
  const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext('2d');
  pen.drawImage(image, 0, 0);
  const bytes = pen.getImageData(0, 0, image.width, image.height).data, parts = [];
  for (let at = 0; at < bytes.length; at += 32768)
    parts.push(String.fromCharCode(...bytes.subarray(at, at + 32768)));
  return btoa(parts.join(''));
})()"""


def pixels(page: Browser, theme: str) -> np.ndarray[Any, Any]:
    """(height, width, 3)."""
    page.ask("Emulation.setScrollbarsHidden", hidden=True)
    page.show(REPORT, WIDTH, 900, theme)
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": round(page.value(_END)) + _BELOW, "scale": 1}
    told = page.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    page.ask("Page.navigate", url="about:blank")
    rgba = np.frombuffer(base64.b64decode(page.value(_PIXELS % told["data"])), np.uint8)
    return rgba.reshape(clip["height"], WIDTH, 4)[:, :, :3]


def png(picture: np.ndarray[Any, Any]) -> bytes:
    """With the ``COLOURS`` most frequent colours; all others become the nearest of them."""
    height, width, _ = picture.shape
    colours, at, counts = np.unique(picture.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    palette = colours[np.argsort(-counts)[:COLOURS]]
    apart = colours[:, None, :].astype(np.int32) - palette[None, :, :]
    rows = (apart**2).sum(axis=2).argmin(axis=1).astype(np.uint8)[at].reshape(height, width)
    unfiltered = np.hstack([np.zeros((height, 1), np.uint8), rows])
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(unfiltered.tobytes(), 9)),
        (b"IEND", b""),
    )
    chunks = (
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def main() -> None:
    if PROGRAM is None:
        sys.exit("screenshots: no Chromium here; on Debian: apt-get install chromium")
    PICTURES.mkdir(exist_ok=True)
    with browser() as page:
        for theme in ("light", "dark"):
            made, file = png(pixels(page, theme)), PICTURES / f"report-{theme}.png"
            if len(made) > MOST_BYTES:
                sys.exit(
                    f"screenshots: {file.name} has {len(made):,} bytes, and at most {MOST_BYTES:,} are wanted"
                )
            file.write_bytes(made)
            print(f"{file.relative_to(ROOT)}: {len(made):,} bytes")


if __name__ == "__main__":
    main()
