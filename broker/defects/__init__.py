"""Historic bugs (protocol.md section 4): each class replaces one rule by its wrong version."""
