"""The broker's storage on a disk that keeps, at a crash, any legal part of what was not synced."""
