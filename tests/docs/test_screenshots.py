"""README's pictures: small, of the size that README shows them in, and written as PNG without a library."""

from __future__ import annotations

import importlib.util
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def screenshots() -> ModuleType:
    spec = importlib.util.spec_from_file_location("screenshots", ROOT / "website/screenshots.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at = 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        name, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length) == (zlib.crc32(name + content),)
        yield name, content
        at += 12 + length


def read(png: bytes) -> np.ndarray[Any, Any]:
    """(height, width, 3) of a picture with a palette."""
    parts = dict(chunks(png))
    width, height, depth, kind = struct.unpack_from(">IIBB", parts[b"IHDR"])
    assert (depth, kind) == (8, 3)
    palette = np.frombuffer(parts[b"PLTE"], np.uint8).reshape(-1, 3)
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert not rows[:, 0].any(), "no row is filtered"
    return palette[rows[:, 1:]]


def test_a_picture_of_few_colours_is_kept_as_it_is(screenshots: ModuleType) -> None:
    dice = np.random.default_rng(1)
    colours = dice.integers(0, 256, (screenshots.COLOURS, 3), np.uint8)
    picture = colours[dice.integers(0, len(colours), (40, 61))]
    assert np.array_equal(read(screenshots.png(picture)), picture)


def test_a_rare_colour_becomes_the_nearest_frequent_one(screenshots: ModuleType) -> None:
    grey = np.arange(screenshots.COLOURS, dtype=np.uint8)
    frequent = np.stack([grey, grey, grey], axis=1)
    picture = np.concatenate([frequent, frequent, [[7, 7, 8]]])[None].astype(np.uint8)
    assert read(screenshots.png(picture))[0, -1].tolist() == [7, 7, 7]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pictures_are_there_and_small(screenshots: ModuleType, theme: str) -> None:
    file = screenshots.PICTURES / f"report-{theme}.png"
    assert file.stat().st_size < screenshots.MOST_BYTES
    height, width, _ = read(file.read_bytes()).shape
    assert width == screenshots.WIDTH
    assert 600 < height < 1_200
