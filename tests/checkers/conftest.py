"""One Spark session for all tests of the judge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from wrackline.checkers.session import session

    with session("local[2]", memory="1g", brief=True) as spark:
        yield spark
