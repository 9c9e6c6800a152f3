"""Jepsen's checkers that look for no order: a page each, over the operations of one object."""
