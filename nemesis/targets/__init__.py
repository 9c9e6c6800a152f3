"""Whom a fault hits: roles, and who has them when the fault begins."""
