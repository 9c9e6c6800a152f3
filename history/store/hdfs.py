"""HDFS for fsspec, by the library hdfs-native: no Java, and no native library of Hadoop's."""

from __future__ import annotations

import ctypes
from typing import Any

from hdfs_native.fsspec import HdfsFileSystem


class Hdfs(HdfsFileSystem):
    """A client that lives as long as its process. fsspec drops its clients in every forked child, and this
    one would then wait there for its threads, which no child has: whatever is started after HDFS was read,
    such as Spark's JVM, would never begin."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.client))
