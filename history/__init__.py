"""The one record format: every operation and every fault of a run, on one clock."""

from wrackline.history.files import HistoryError, history_files, read_info, write_info
from wrackline.history.recorder import Recorder, RecordingFailed

__all__ = ["HistoryError", "Recorder", "RecordingFailed", "history_files", "read_info", "write_info"]
