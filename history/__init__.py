"""The one record format: every operation and every fault of a run, on one clock."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wrackline.history.store.folder import HistoryError

if TYPE_CHECKING:
    from wrackline.history.store.files import history_files, read_info, write_info
    from wrackline.history.store.recorder import Recorder, RecordingFailed

__all__ = ["HistoryError", "Recorder", "RecordingFailed", "history_files", "read_info", "write_info"]
_LATE = {
    "Recorder": "recorder",
    "RecordingFailed": "recorder",
    "history_files": "files",
    "read_info": "files",
    "write_info": "files",
}
"""Name -> its module in `store`. Each imports Arrow, for which nobody should wait who has no history."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.store.{_LATE[name]}"), name)
