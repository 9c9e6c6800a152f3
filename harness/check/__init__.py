"""``wrackline check``: histories of objects and of transactions, judged one by one by whoever can decide."""
