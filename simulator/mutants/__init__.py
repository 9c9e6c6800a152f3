"""Mutants: deviations of one operator or one line that a machine draws over the broker's core and rules, and
the score of the search and of the tests against them."""
