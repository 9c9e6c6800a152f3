"""Knossos and Elle, for whoever asks them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.classpath import available


@pytest.fixture(scope="package")
def bridge() -> Iterator[Bridge]:
    if not available():
        pytest.skip("no classpath with Knossos and Elle (WRACKLINE_JVM_CLASSPATH)")
    with Bridge(heap="1g") as bridge:
        yield bridge
