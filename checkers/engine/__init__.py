"""How facts of a history meet: an executor sorts them, numpy compares them range by range."""
