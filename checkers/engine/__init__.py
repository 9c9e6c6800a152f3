"""The engine joins the facts of a history: an executor sorts them, numpy compares them range by range."""
