"""The language of cases: a history written by hand is a line."""
