"""How facts of a history meet: Spark shuffles and sorts them, numpy compares them range by range."""
